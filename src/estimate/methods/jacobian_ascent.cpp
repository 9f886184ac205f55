// SPDX-License-Identifier: Apache-2.0
// jacobian-ascent: lower bound from pairs of points, moved uphill.
//
// Needs      derivatives and ranges of all operators on the way.
// Gives      lower bound, proved: the difference quotient of two points, both outputs enclosed by
//            interval evaluation. Holds whether or not the function is differentiable there.
// Cost       an evaluation and a gradient at both ends per segment and step; the first answer after
//            two steps of one segment, then batches as large as a step of 0.2 s allows. Ends when
//            restarts bring nothing new. The same seed walks the same way; time only cuts it short
//            (and, for models of more than some ms per gradient, decides the batch).
// Certifies  the two points.
// Theory     docs/theory/composition.md [composition-4], [composition-6].
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/checkpoint.h"
#include "bounds/boxes.h"
#include "estimate/jacobian_norm.h"
#include "estimate/method.h"
#include "estimate/methods/segment_moves.h"
#include "estimate/quotient.h"

namespace lipscope {
namespace {

constexpr Index kBatch = 64;          // segments
constexpr double kStepSeconds = 0.2;  // of a batch
constexpr std::size_t kElite = 12;    // segments that breed
constexpr int kStale = 15;            // rounds without progress before an epoch ends
constexpr double kProgress = 1e-5;    // what counts as progress, relative
constexpr double kWorthProof = 1e-2;  // what is worth a proof on the way
constexpr double kPatience = 3;       // seconds, added to the time the last progress took

std::string jacobian_ascent_unsupported(const Query& query) {
  if (input_size(*query.graph) == 0) return "no floating input";
  if (element_count(query.graph->value(query.graph->outputs()[0]).type.shape) == 0)
    return "empty output";
  if (query.domain.ball && query.domain.ball->radius == 0) return "the domain is one point";
  for (const Node& node : query.graph->nodes()) {
    if (!node.op->differentiable()) {
      return "node '" + node.name + "': operator " + std::string(node.op->name()) +
             " has no derivative";
    }
  }
  return {};
}

// Steps of a climb and how much of its length a segment keeps in each.
struct Move {
  int steps;
  double decay;
  bool nudge = false;
};
constexpr Move kRestart{32, 0.8}, kTurns[] = {{10, 0.5}, {5, 0.25}, {10, 0.5}, {2, 0.5, true}};

class Ascent {
 public:
  explicit Ascent(const MethodRun& run)
      : run_(run),
        graph_(*run.query.graph),
        norms_(run.query.norms),
        size_(static_cast<std::size_t>(input_size(graph_))),
        projection_(graph_, run.query.domain),
        moves_(size_, norms_.in, projection_, run.context.seed) {}

  void first_answer() {
    std::vector<Segment> first{moves_.fresh(0)};
    first[0].reach = moves_.extent(first[0].x);  // long: sure to survive the proof
    climb(first, 2, 0.5);
    keep(first);
    prove(1);
  }

  void search() {
    first_answer();
    if (proved_ == 0) prove(4);
    Index entries = 0;
    for (const Value& value : graph_.values()) entries += element_count(value.type.shape);
    for (Index epoch = 0, dull = 0; dull < 8 + entries / 8 && !is_over(); ++epoch) {
      const double before = champion_.value;
      if (epoch > 0) elite_.clear();
      if (epoch % 4 == 3) keep(fame_);
      run_epoch();
      if (!elite_.empty()) fame_.push_back(elite_[0]);
      std::ranges::sort(fame_, std::ranges::greater{}, &Segment::value);
      if (fame_.size() > kElite) fame_.resize(kElite);
      dull = champion_.value > before * (1 + kProgress) ? 0 : dull + 1;
    }
    if (!run_.should_stop()) polish();
    prove(run_.should_stop() ? 1 : 6);
  }

 private:
  template <class V>
  auto part(V& all, std::size_t k) const {
    return std::span(all).subspan(k * size_, size_);
  }
  double elapsed() const { return run_.now() - start_; }
  bool is_over() const { return run_.should_stop() || elapsed() > 2 * progressed_ + kPatience; }

  // Starts from scratch, then rounds of moves from the best so far: long and short climbs, and
  // nudges that change the cell and little else.
  void run_epoch() {
    double top = 0;
    for (std::ptrdiff_t stale = 0, turn = 0; stale < kStale && !is_over(); ++turn, ++round_) {
      const bool restart = elite_.empty() || round_ == 0 || round_ == 3;
      const Move move = restart ? kRestart : kTurns[turn % std::ssize(kTurns)];
      std::vector<Segment> members;
      for (Index i = batch(); i > 0; --i) {
        members.push_back(restart || (!move.nudge && i % 8 == 0) ? moves_.fresh()
                          : move.nudge                           ? moves_.nudged(elite_)
                                                                 : moves_.kicked(elite_));
      }
      climb(members, move.steps, move.decay);
      keep(members);
      if (elite_.empty()) return;
      stale = elite_[0].value > top * (1 + kProgress) ? 0 : stale + 1;
      top = elite_[0].value;
      if (champion_.value > proved_for_ * (1 + kWorthProof)) prove(3);
    }
  }

  // Smooth functions: closer to the top than the last improvement that counted.
  void polish() {
    if (!(champion_.value > 0)) return;
    std::vector<Segment> copies(static_cast<std::size_t>(batch()) / 4 + 1);
    double reach = moves_.extent(champion_.best.x);
    for (Segment& m : copies) {
      m = {.x = champion_.best.x, .d = champion_.best.d, .reach = reach, .best = {}};
      reach *= 0.5;
    }
    climb(copies, 24, 0.7);
    keep(copies);
  }

  Index batch() const {
    Index most = 1;
    const Index wanted = round_ < 5 ? Index{2} << round_ : kBatch;
    while (most < wanted && 2 * static_cast<double>(most) * pair_seconds_ <= kStepSeconds)
      most *= 2;
    return most;
  }

  // Moves every segment uphill while it shrinks by `decay` per step [composition-6].
  void climb(std::vector<Segment>& members, int steps, double decay) {
    std::vector<double> a(members.size() * size_), b(a.size());
    for (int step = 0; step < steps; ++step) {
      if (step > 0 && run_.should_stop()) return;
      const double start = run_.now();
      charge(30 * static_cast<double>(members.size()) * static_cast<double>(size_));
      for (std::size_t k = 0; k < members.size(); ++k) {
        const Segment& m = members[k];
        const double t = m.reach / std::max(1e-300, vector_norm(m.d, kEuclidean));
        const std::vector<double> center = with_room(m, t);
        for (std::size_t i = 0; i < size_; ++i) {
          part(a, k)[i] = center[i] + t * m.d[i];
          part(b, k)[i] = center[i] - t * m.d[i];
        }
        projection_.apply(part(a, k));
        projection_.apply(part(b, k));
      }
      const PairQuotients q = pair_quotients(graph_, norms_, a, b, noise_);
      for (std::size_t k = 0; k < members.size(); ++k) {
        Segment& m = members[k];
        if (q.value[k] > m.value) {
          m.value = q.value[k];
          const double t = m.reach / std::max(1e-300, vector_norm(m.d, kEuclidean));
          m.best = {with_room(m, t), m.d, t};
        }
        move(m, part(q.at_a, k), part(q.at_b, k));
        m.reach *= decay;
        if (k % 4 == 0 && 2 * step < steps) moves_.tilt(m, 1);
      }
      const double seconds = run_.now() - start;
      pair_seconds_ = std::min(pair_seconds_, seconds / static_cast<double>(members.size()));
    }
  }

  // The middle of a segment next to x that lies in the box where it fits: at a corner, one around x
  // itself would lose a half in every entry.
  std::vector<double> with_room(const Segment& m, double t) const {
    std::vector<double> center = m.x;
    for (std::size_t i = 0; i < size_; ++i) {
      const double half = std::abs(t * m.d[i]);
      const double low = projection_.low()[i] + half, high = projection_.high()[i] - half;
      if (low <= high) center[i] = std::clamp(center[i], low, high);
    }
    return center;
  }

  void move(Segment& m, std::span<const double> at_a, std::span<const double> at_b) const {
    std::vector<double> sum(size_), difference(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      sum[i] = at_a[i] + at_b[i];
      difference[i] = at_a[i] - at_b[i];
    }
    // What leads out of the box moves nothing and is no part of the way.
    for (std::size_t i = 0; i < size_; ++i) {
      if (difference[i] > 0 ? m.x[i] >= projection_.high()[i] : m.x[i] <= projection_.low()[i])
        difference[i] = 0;
    }
    const double turn = vector_norm(sum, kEuclidean), lift = vector_norm(difference, kEuclidean);
    if (turn > 0 && std::isfinite(turn)) dual_vector(sum, norms_.in.dual(), m.d);
    if (!(lift > 0) || !std::isfinite(lift)) return;
    for (std::size_t i = 0; i < size_; ++i) m.x[i] += m.reach / lift * difference[i];
    projection_.apply(m.x);
  }

  // The best few of different value.
  void keep(const std::vector<Segment>& members) {
    for (const Segment& m : members) {
      if (!(m.value > 0)) continue;
      if (m.value > champion_.value * (1 + kProgress)) progressed_ = elapsed();
      if (m.value > champion_.value) champion_ = m;
      const auto twin = std::ranges::find_if(
          elite_, [&](const Segment& e) { return std::abs(e.value - m.value) <= 1e-6 * m.value; });
      if (twin == elite_.end()) {
        elite_.push_back(m);
      } else if (m.value > twin->value) {
        *twin = m;
      }
    }
    std::ranges::sort(elite_, std::ranges::greater{}, &Segment::value);
    if (elite_.size() > kElite) elite_.resize(kElite);
  }

  void prove(int trials) {
    if (!(champion_.value > 0)) return;
    proved_for_ = champion_.value;
    ProvedPair pair = prove_along(run_.query, projection_, champion_.best, trials, proved_, noise_,
                                  [this] { return run_.should_stop(); });
    learn(pair.loss);
    if (pair.value <= proved_) return;
    proved_ = pair.value;
    run_.report({pair.value, Guarantee::kProved, "jacobian-ascent"},
                {.proof = QuotientProof{std::move(pair.witness)}});
  }

  // Deep networks: intervals widen from layer to layer and short segments cannot be proved. What
  // was found under a wrong idea of the loss is measured anew.
  void learn(double loss) {
    if (loss <= 2 * noise_) return;
    const double before = std::exchange(noise_, loss);
    for (auto* held : {&elite_, &fame_}) {
      std::erase_if(*held, [&](Segment& m) {
        const double length = 2 * m.best.reach * vector_norm(m.best.d, norms_.in);
        m.value -= (loss - before) / length;
        return !(m.value > 0);
      });
    }
    const double length = 2 * champion_.best.reach * vector_norm(champion_.best.d, norms_.in);
    champion_.value = std::max(proved_, champion_.value - (loss - before) / length);
    proved_for_ = std::min(proved_for_, champion_.value);
  }

  const MethodRun& run_;
  const Graph& graph_;
  const NormPair& norms_;
  std::size_t size_;
  DomainProjection projection_;
  SegmentMoves moves_;
  double start_ = run_.now();
  std::vector<Segment> elite_, fame_;
  Segment champion_;
  int round_ = 0;
  double proved_ = 0, proved_for_ = 0, progressed_ = 0, noise_ = 0, pair_seconds_ = 1e9;
};

void run_jacobian_ascent(const MethodRun& run) { Ascent(run).search(); }
void run_jacobian_ascent_first(const MethodRun& run) { Ascent(run).first_answer(); }

}  // namespace

std::vector<Method> method_jacobian_ascent() {
  return {{.info = {.id = "jacobian-ascent",
                    .side = "lower",
                    .summary = "pairs of points moved uphill, proved by interval evaluation",
                    .theory = "composition-4",
                    .guarantee = Guarantee::kProved},
           .unsupported = jacobian_ascent_unsupported,
           .run = run_jacobian_ascent,
           .run_first = run_jacobian_ascent_first}};
}

}  // namespace lipscope
