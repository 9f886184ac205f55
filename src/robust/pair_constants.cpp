// SPDX-License-Identifier: Apache-2.0
#include "robust/pair_constants.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/memory_budget.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "bounds/boxes.h"
#include "lipscope/select.h"
#include "pieces/small.h"
#include "robust/last_layer.h"
#include "robust/margin_needs.h"
#include "robust/margin_sdp.h"
#include "robust/own_budget.h"

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
  PairSearch(const Graph& graph, const Norm& norm, double seconds, const RunContext& context)
      : graph_(graph),
        norm_(norm),
        context_(context),
        seconds_(seconds),
        whole_(*context.clock, context.clock->now() + seconds, seconds) {
    found_.classes = element_count(graph.value(graph.outputs()[0]).type.shape);
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
  enum class Stage { kQuick, kFine, kPieces };

  void find_all(const MarginNeeds* needs, const PairConstants* known) {
    split();
    if (known != nullptr) {
      found_.upper = known->upper;
    } else {
      find_cheap();
    }
    if (layer_ && layer_->before.nodes().empty()) return;  // that is exact
    sdp_ = MarginSdp::read(graph_);
    factor_ = factor_to_euclid_up(norm_, input_size(graph_));
    if (sdp_ || std::isfinite(found_.upper[0].value)) {
      const bool beside = sdp_ && team() > 1 && !context_.clock->counts_work();
      if (pairs_.size() >= 3 && !beside) find_shared();
      context_.clock->counts_work() ? improve_all()
                                    : improve_in_order(needs, pairs_.size() >= 3 && beside);
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

  // Of the margin of any pair, by the constant of all logits together.
  [[nodiscard]] Bound shared_sdp() const {
    const OwnBudget budget(*context_.clock, part_of_time(0.5), 0.1 * seconds_);
    const double logits = stopped_at_most([&] { return sdp_->logits(budget); });
    return {mul_up(mul_up(logits, sqrt_up(2)), factor_), Guarantee::kProved, "lipsdp"};
  }

  void keep_for_all(const Bound& bound) {
    for (std::size_t k = 0; k < pairs_.size(); ++k) keep(k, bound);
  }

  // One bound for all pairs, where one for each may come too late.
  void find_shared() {
    if (sdp_) {
      keep_for_all(shared_sdp());
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
        const double constant = sdp_->margin(i, j, stage == Stage::kFine, budget);
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

  // `shared`: the bound of all pairs is still to be found, beside the first ones.
  void improve_in_order(const MarginNeeds* needs, bool shared) {
    for (const Stage stage : stages()) {
      std::vector<bool> done(pairs_.size());
      double hope = stage == Stage::kFine ? 0.99 : 0.4, longest = 0;
      while (true) {
        const std::vector<std::size_t> batch =
            next_pairs(needs, hope, done, team() - (shared ? 1 : 0));
        if (batch.empty() && !shared) break;
        if (!(whole_.seconds_left() > 0.8 * longest)) {
          found_.finished = false;
          return;
        }
        show_progress();
        const double start = whole_.clock().now();
        for (const double gain : improve(batch, stage, std::exchange(shared, false)))
          if (stage == Stage::kQuick) hope = std::clamp(0.95 * gain, hope / 1.5, 0.9);
        for (const std::size_t k : batch) done[k] = true;
        longest = whole_.clock().now() - start;
      }
    }
  }

  void show_progress() const {
    if (!context_.progress) return;
    Bracket largest;
    largest.add_upper(*std::ranges::max_element(found_.upper, {}, &Bound::value));
    context_.progress({"constants of margins", &largest});
  }

  [[nodiscard]] std::vector<std::size_t> next_pairs(const MarginNeeds* needs, double hope,
                                                    const std::vector<bool>& done,
                                                    std::size_t team) const {
    const std::vector<double> weights =
        needs != nullptr ? needs->weights(found_, hope) : std::vector<double>(pairs_.size(), 1.0);
    std::vector<std::size_t> order(pairs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t k) { return done[k] || !(weights[k] > 0); });
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t k) { return weights[k]; });
    if (order.size() > team) order.resize(team);
    return order;
  }

  // By how much each got smaller. `shared`: finds the bound of all pairs, too.
  std::vector<double> improve(const std::vector<std::size_t>& batch, Stage stage, bool shared) {
    std::vector<Bound> bounds(batch.size(), kNone);
    Bound all = kNone;
    const auto one = [&](std::size_t b) {
      if (b == batch.size()) {
        all = shared_sdp();
        return;
      }
      const OwnBudget budget(*context_.clock, whole_.end(), 0);
      bounds[b] = improved(batch[b], stage, budget);
    };
    const Index tasks = std::ssize(batch) + (shared ? 1 : 0);
    if (tasks == 1) {
      one(0);
    } else {
      parallel_for(tasks, 1, [&](Index first, Index last) {
        for (Index b = first; b < last; ++b) one(at(b));
      });
    }
    keep_for_all(all);
    std::vector<double> gains;
    for (std::size_t b = 0; b < batch.size(); ++b) {
      if (std::isfinite(bounds[b].value) && found_.upper[batch[b]].value > 0)
        gains.push_back(bounds[b].value / found_.upper[batch[b]].value);
      keep(batch[b], bounds[b]);
    }
    return gains;
  }

  // Every pair has the same work.
  void improve_all() {
    if (pairs_.size() > kFewPairs) return;
    const double share = 0.8 * seconds_ / static_cast<double>(pairs_.size());
    std::vector<Bound> bounds(pairs_.size(), kNone);
    parallel_for(std::ssize(pairs_), 1, [&](Index first, Index last) {
      for (Index k = first; k < last; ++k) {
        const OwnBudget budget(*context_.clock, 0, share);
        for (const Stage stage : stages()) {
          if (budget.over()) break;
          const Bound bound = improved(at(k), stage, budget);
          if (bound.value < bounds[at(k)].value) bounds[at(k)] = bound;
        }
      }
    });
    for (std::size_t k = 0; k < pairs_.size(); ++k) keep(k, bounds[k]);
  }

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
  double factor_ = 1;  // from l2 to the norm
};

}  // namespace

const Bound& PairConstants::at(Index i, Index j) const { return upper[pair_place(classes, i, j)]; }

PairConstants cheap_pair_constants(const Graph& graph, const Norm& norm, double seconds,
                                   const RunContext& context) {
  return PairSearch(graph, norm, seconds, context).run_cheap();
}

PairConstants pair_constants(const Graph& graph, const Norm& norm, double seconds,
                             const RunContext& context, const MarginNeeds* needs,
                             const PairConstants* known) {
  return PairSearch(graph, norm, seconds, context).run(needs, known);
}

}  // namespace lipscope
