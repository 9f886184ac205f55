// SPDX-License-Identifier: Apache-2.0
#include "robust/pair_constants.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>

#include "base/memory_budget.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "bounds/boxes.h"
#include "lipscope/select.h"
#include "net/small.h"
#include "robust/last_layer.h"
#include "robust/margin_needs.h"
#include "robust/margin_sdp.h"
#include "robust/own_budget.h"
#include "robust/shared_margins.h"

namespace lipscope {
namespace {

using Methods = std::vector<std::string>;

const Methods kCheap = {"layer-product", "dag"};
// Where the semidefinite bound cannot take the whole network.
const std::vector<Methods> kOthers = {{"layer-product", "dag", "lipsdp"},
                                      {"seqlip", "loop-transform", "eclipse-fast"}};
// Searches over pieces close the gap for networks of some dozen units.
const Methods kSearch = {"exact-global"};
constexpr Index kSmallModel = 3000;  // parameters
constexpr std::size_t kFewPairs = 300;

const Bound kNone{kInf, Guarantee::kProved, "none"};

Bound best_proved(const Query& query, const Methods& methods, const OwnBudget& budget,
                  const RunContext& context) {
  // Cheap methods take no notice of the time.
  const Budget limits{.time = std::chrono::duration<double>(std::max(1e-3, budget.seconds_left())),
                      .methods = methods};
  RunContext own = context;
  own.clock = budget.shared(context.clock);
  own.progress = {};
  const auto found = find_bracket(query, limits, own).bracket.upper(Guarantee::kProved);
  return found.value_or(kNone);
}

// |x|_2 <= factor |x|_p for vectors of n entries.
double factor_to_euclid_up(const Norm& norm, Index n) {
  if (norm == Norm::infinity()) return sqrt_up(static_cast<double>(n));
  if (norm.p() <= 2) return 1;
  return pow_up(static_cast<double>(n), sub_up(0.5, div_down(1, norm.p())));
}

class PairSearch {
 public:
  PairSearch(Problem& problem, const Norm& norm, double seconds, const RunContext& context)
      : problem_(problem),
        graph_(problem.graph()),
        norm_(norm),
        context_(context),
        seconds_(seconds),
        whole_(*context.clock, context.clock->now() + seconds, seconds) {
    found_.classes = element_count(graph_.value(graph_.outputs()[0]).type.shape);
    for (Index i = 0; i < found_.classes; ++i) {
      for (Index j = i + 1; j < found_.classes; ++j) pairs_.emplace_back(i, j);
    }
    found_.upper.assign(pairs_.size(), kNone);
  }

  // What there is when the run has to end at once, or memory ends, is valid, too. `known`: the
  // cheap ones.
  PairConstants run(const MarginNeeds* needs, const PairConstants* known) {
    try {
      find_all(needs, known);
    } catch (const Stopped&) {
      found_.finished = false;
    } catch (const std::bad_alloc&) {
      found_.finished = false;
      relieve_memory();
    }
    return std::move(found_);
  }

  PairConstants run_cheap() {
    found_.finished = false;
    (void)stopped_at_most([&] {
      split();
      find_cheap();
      return 0.0;
    });
    return std::move(found_);
  }

 private:
  // kLast: the last functions alone, behind what all pairs share.
  enum class Stage { kLast, kQuick, kFine, kPieces };
  struct Task {
    Stage stage;
    std::size_t pair;
  };
  // What workers share.
  struct Queue {
    Stage stage;
    double hope;
    bool shared;  // is still to be found
    double longest = 0;
    std::vector<bool> taken = {}, done = {};
    std::mutex mutex = {};
  };

  void find_all(const MarginNeeds* needs, const PairConstants* known) {
    split();
    if (known != nullptr) {
      found_.upper = known->upper;
    } else {
      find_cheap();
    }
    if (layer_ && layer_->before.nodes().empty()) return;  // that is exact
    sdp_ = MarginSdp::read(problem_);
    factor_ = factor_to_euclid_up(norm_, input_size(graph_));
    if (!sdp_ && !std::isfinite(found_.upper[0].value)) return;
    const bool several = pairs_.size() >= 3;
    if (context_.clock->counts_work()) {
      if (several) find_for_all();
      if (several && sdp_) shared_ = found_shared(shared_weights(nullptr));
      improve_all();
    } else {
      if (several && !sdp_) find_for_all();
      improve_in_order(needs, several && sdp_);
    }
  }

  // As many pairs at once as there are threads, and room for their proofs.
  [[nodiscard]] std::size_t team() const {
    constexpr double kMostDoubles = 5e8;
    const auto all = static_cast<std::size_t>(std::max(1, threads()));
    if (!sdp_) return all;
    const double room = kMostDoubles / std::max(1.0, sdp_->doubles());
    return std::clamp<std::size_t>(static_cast<std::size_t>(room), 1, all);
  }

  void keep(std::size_t pair, const Bound& bound) {
    if (bound.value < found_.upper[pair].value) found_.upper[pair] = bound;
  }

  // The constant of everything before the last layer times the norm of a difference of its rows.
  void keep_products(const Bound& before) {
    if (!std::isfinite(before.value)) return;
    if (differences_.empty()) {
      for (const auto& [i, j] : pairs_)
        differences_.push_back(difference_norm_up(layer_->rows, i, j, norm_));
    }
    for (std::size_t k = 0; k < pairs_.size(); ++k)
      keep(k, {mul_up(before.value, differences_[k]), Guarantee::kProved, before.method});
  }

  // |f_i - f_j| <= 2^(1/q*) |f|_q: the factors are sqrt 2 for l2 and 2 for l-infinity.
  void keep_by_all_logits(const Methods& methods) {
    Bound two = best_proved({&graph_, {norm_, Norm(2)}, {}}, methods, whole_, context_);
    two.value = mul_up(two.value, sqrt_up(2));
    Bound most = best_proved({&graph_, {norm_, Norm::infinity()}, {}}, methods, whole_, context_);
    most.value = mul_up(most.value, 2);
    keep_for_all(two.value <= most.value ? two : most);
  }

  [[nodiscard]] Graph margin_of(std::size_t pair) const {
    Selection row;
    row.margin = pairs_[pair];
    return select(graph_, row).graph;
  }

  void split() {
    constexpr double kMostProducts = 4e8;
    layer_ = split_last_layer(graph_);
    if (layer_ &&
        static_cast<double>(pairs_.size()) * static_cast<double>(layer_->rows.cols) > kMostProducts)
      layer_.reset();
  }

  void find_cheap() {
    if (layer_) {
      const Query query{&layer_->before, {norm_, norm_}, {}};
      keep_products(layer_->before.nodes().empty() ? Bound{1, Guarantee::kProved, "layer-product"}
                                                   : best_proved(query, kCheap, whole_, context_));
      return;
    }
    if (pairs_.size() > kFewPairs) return keep_by_all_logits(kCheap);
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
      const Graph margin = margin_of(k);
      keep(k, best_proved({&margin, {norm_, norm_}, {}}, kCheap, whole_, context_));
    }
  }

  [[nodiscard]] double part_of_time(double share) const {
    return whole_.clock().now() + share * whole_.seconds_left();
  }

  void keep_for_all(const Bound& bound) {
    for (std::size_t k = 0; k < pairs_.size(); ++k) keep(k, bound);
  }

  // Of the margin of any pair, by the constant of all logits together.
  [[nodiscard]] Bound bound_of_any() const {
    const OwnBudget budget(*context_.clock, part_of_time(0.5), 0.1 * seconds_);
    const double logits = stopped_at_most([&] { return sdp_->logits(budget); });
    return {mul_up(mul_up(logits, sqrt_up(2)), factor_), Guarantee::kProved, "lipsdp"};
  }

  // One bound for all pairs, where one for each may come too late.
  void find_for_all() {
    if (sdp_) {
      keep_for_all(bound_of_any());
    } else if (layer_ && !layer_->before.nodes().empty()) {
      const OwnBudget budget(*context_.clock, part_of_time(0.4), 0.4 * seconds_);
      for (const Methods& methods : kOthers) {
        const Query query{&layer_->before, {norm_, norm_}, {}};
        Bound before = kNone;
        (void)stopped_at_most([&] {
          before = best_proved(query, methods, budget, context_);
          return 0.0;
        });
        keep_products(before);
      }
    } else if (pairs_.size() > kFewPairs) {
      for (const Methods& methods : kOthers) keep_by_all_logits(methods);
    }
  }

  // How much the constants of pairs count for what they share: more where they limit samples.
  [[nodiscard]] std::vector<double> shared_weights(const MarginNeeds* needs) const {
    std::vector<double> weights(pairs_.size(), 1.0);
    if (needs != nullptr) {
      const std::vector<double> needed = needs->weights(found_, 0.4);
      const double all = std::accumulate(needed.begin(), needed.end(), 0.0);
      for (std::size_t k = 0; k < weights.size() && all > 0; ++k)
        weights[k] += static_cast<double>(pairs_.size()) * needed[k] / all;
    }
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const double constant = found_.upper[k].value;
      if (constant > 0 && std::isfinite(constant)) weights[k] /= constant * constant;
    }
    return weights;
  }

  [[nodiscard]] std::optional<MarginSdp> found_shared(const std::vector<double>& weights) const {
    const OwnBudget budget(*context_.clock, part_of_time(0.5), 0.06 * seconds_);
    std::optional<MarginSdp> shared;
    (void)stopped_at_most([&] {
      shared = shared_margins(*sdp_, weights, budget);
      return 0.0;
    });
    return shared;
  }

  // What was found, or infinity where the run had to end at once or there was no memory for it.
  template <class Work>
  [[nodiscard]] static double stopped_at_most(const Work& work) {
    try {
      return work();
    } catch (const Stopped&) {
      return kInf;
    } catch (const std::bad_alloc&) {
      relieve_memory();
      return kInf;
    }
  }

  [[nodiscard]] Bound improved(std::size_t pair, Stage stage, const OwnBudget& budget) const {
    Bound best = kNone;
    const auto [i, j] = pairs_[pair];
    const auto take = [&](const Bound& bound) {
      if (bound.value < best.value) best = bound;
    };
    (void)stopped_at_most([&, i = i, j = j] {
      if (sdp_ && stage != Stage::kPieces) {
        const MarginSdp& sdp = stage == Stage::kLast ? *shared_ : *sdp_;
        const double constant = sdp.margin(i, j, stage == Stage::kFine, budget);
        take({mul_up(constant, factor_), Guarantee::kProved, "lipsdp"});
        return 0.0;
      }
      const Graph margin = margin_of(pair);
      const Query query{&margin, {norm_, norm_}, {}};
      if (stage == Stage::kPieces) {
        take(best_proved(query, kSearch, budget, context_));
      } else {
        for (const Methods& methods : kOthers) {
          if (best.method != "lipsdp") take(best_proved(query, methods, budget, context_));
        }
      }
      return 0.0;
    });
    return best;
  }

  [[nodiscard]] std::vector<Stage> stages() const {
    std::vector<Stage> list{Stage::kQuick};
    if (graph_.parameter_count() <= kSmallModel) {
      list.push_back(Stage::kPieces);
    } else if (sdp_) {
      list.push_back(Stage::kFine);
    }
    return list;
  }

  // `shared`: what all pairs have in common is still to be found, beside the first ones.
  void improve_in_order(const MarginNeeds* needs, bool shared) {
    for (const Stage stage : stages()) {
      Queue queue{.stage = stage,
                  .hope = stage == Stage::kFine ? 0.99 : 0.4,
                  .shared = std::exchange(shared, false)};
      queue.taken.resize(pairs_.size());
      queue.done.resize(pairs_.size());
      last_taken_.resize(pairs_.size());
      parallel_for(static_cast<Index>(team()), 1, [&](Index first, Index last) {
        for (Index worker = first; worker < last; ++worker) work_on(queue, needs);
      });
      if (!found_.finished) return;
    }
  }

  // Until there is nothing left, or not enough time for it.
  void work_on(Queue& queue, const MarginNeeds* needs) {
    std::unique_lock lock(queue.mutex);
    while (true) {
      const bool shared = std::exchange(queue.shared, false);
      const std::optional<Task> task = shared ? std::nullopt : next_task(queue, needs);
      if (!task && !shared) return;
      const bool quick = task && task->stage == Stage::kLast;
      if (!(whole_.seconds_left() > (quick ? 0 : 0.8 * queue.longest))) {
        found_.finished = false;
        return;
      }
      show_progress();
      const double start = whole_.clock().now();
      if (shared) {
        const std::vector<double> weights = shared_weights(needs);
        lock.unlock();
        std::optional<MarginSdp> made = found_shared(weights);
        const Bound any = made ? kNone : bound_of_any();
        lock.lock();
        shared_ = std::move(made);
        keep_for_all(any);
        continue;
      }
      lock.unlock();
      const OwnBudget budget(*context_.clock, whole_.end(), 0);
      const Bound bound = improved(task->pair, task->stage, budget);
      lock.lock();
      const double gain = bound.value / found_.upper[task->pair].value;
      keep(task->pair, bound);
      if (quick) continue;
      queue.done[task->pair] = true;
      queue.longest = whole_.clock().now() - start;
      if (task->stage == Stage::kQuick && std::isfinite(gain))
        queue.hope = std::clamp(0.98 * gain, queue.hope / 1.5, 0.95);
    }
  }

  void show_progress() const {
    if (!context_.progress) return;
    Bracket largest;
    largest.add_upper(*std::ranges::max_element(found_.upper, {}, &Bound::value));
    context_.progress({"constants of margins", &largest});
  }

  // The pair whose constant decides most, and what is quick comes first.
  [[nodiscard]] std::optional<Task> next_task(Queue& queue, const MarginNeeds* needs) {
    const std::vector<double> weights = needs != nullptr
                                            ? needs->weights(found_, queue.hope, queue.done)
                                            : std::vector<double>(pairs_.size(), 1.0);
    const auto take = [&](Stage stage, std::vector<bool>& taken,
                          double least) -> std::optional<Task> {
      std::optional<std::size_t> best;
      for (std::size_t k = 0; k < pairs_.size(); ++k) {
        if (!taken[k] && weights[k] >= least && (!best || weights[k] > weights[*best])) best = k;
      }
      if (!best) return std::nullopt;
      taken[*best] = true;
      return Task{stage, *best};
    };
    constexpr double kSome = 1e-300;
    std::optional<Task> task;
    if (shared_) {
      const bool cheap = shared_->operations() < 0.02 * sdp_->operations();
      task = take(Stage::kLast, last_taken_, cheap ? 0 : kSome);
    }
    if (!task) task = take(queue.stage, queue.taken, kSome);
    if (!task && shared_) task = take(Stage::kLast, last_taken_, 0);
    return task;
  }

  // Every pair has the same work.
  void improve_all() {
    if (pairs_.size() > kFewPairs) return;
    const double each = seconds_ / static_cast<double>(pairs_.size());
    std::vector<Bound> bounds(pairs_.size(), kNone);
    parallel_for(std::ssize(pairs_), 1, [&](Index first, Index last) {
      for (Index k = first; k < last; ++k) {
        if (shared_) {
          const OwnBudget budget(*context_.clock, 0, 0.04 * each);
          bounds[to_size(k)] = improved(to_size(k), Stage::kLast, budget);
        }
        const OwnBudget budget(*context_.clock, 0, 0.8 * each);
        for (const Stage stage : stages()) {
          if (budget.over()) break;
          const Bound bound = improved(to_size(k), stage, budget);
          if (bound.value < bounds[to_size(k)].value) bounds[to_size(k)] = bound;
        }
      }
    });
    for (std::size_t k = 0; k < pairs_.size(); ++k) keep(k, bounds[k]);
  }

  Problem& problem_;
  const Graph& graph_;
  Norm norm_;
  const RunContext& context_;
  double seconds_;
  OwnBudget whole_;
  PairConstants found_;
  std::vector<std::pair<Index, Index>> pairs_;
  std::optional<LastLayer> layer_;
  std::vector<double> differences_;  // norms, by pair
  std::optional<MarginSdp> sdp_;
  std::optional<MarginSdp> shared_;  // behind what the pairs have in common
  std::vector<bool> last_taken_;     // pairs, for shared_
  double factor_ = 1;                // from l2 to the norm
};

}  // namespace

const Bound& PairConstants::at(Index i, Index j) const { return upper[pair_place(classes, i, j)]; }

PairConstants cheap_pair_constants(Problem& problem, const Norm& norm, double seconds,
                                   const RunContext& context) {
  return PairSearch(problem, norm, seconds, context).run_cheap();
}

PairConstants pair_constants(Problem& problem, const Norm& norm, double seconds,
                             const RunContext& context, const MarginNeeds* needs,
                             const PairConstants* known) {
  return PairSearch(problem, norm, seconds, context).run(needs, known);
}

}  // namespace lipscope
