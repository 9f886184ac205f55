// SPDX-License-Identifier: Apache-2.0
#include "search/search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/parallel.h"
#include "base/rounding.h"

namespace lipscope {
std::vector<double> of_unstable_units(const Slopes& slopes, const Multipliers& multipliers) {
  std::vector<double> list;
  for (std::size_t k = 0; k < multipliers.size(); ++k) {
    for (std::size_t i = 0; i < slopes[k].size(); ++i) {
      if (slopes[k][i].lo != slopes[k][i].hi) list.push_back(multipliers[k][i]);
    }
  }
  return list;
}

PieceSearch::PieceSearch(const LayeredNet& net, const NormDecomposition& parts,
                         const SearchRegion& region, TryPoint try_point, double lower)
    : net_(net),
      parts_(parts),
      part_net_(net, parts),
      try_point_(std::move(try_point)),
      lower_(lower),
      branching_(net) {
  workers_.push_back({make_bounder(part_net_.get(), parts), region.clone()});
}

std::vector<Split> PieceSearch::splits_of(const Worker& worker, const Slopes& slopes) const {
  std::vector<Split> found;
  const std::size_t hidden = net_.hidden();
  for (std::size_t k = 0; k < hidden; ++k) {
    for (std::size_t i = 0; i < slopes[k].size(); ++i) {
      if (slopes[k][i].lo == slopes[k][i].hi) continue;
      if (const auto at = worker.region->split_at({k, i})) {
        const UnitId turned{parts_.transposed ? hidden - 1 - k : k, i};
        found.push_back({{k, i}, *at, worker.bounder->weight(turned)});
      }
    }
    if (!found.empty() && worker.region->by_layers()) break;
  }
  Branching::keep_best(found);
  return found;
}

void PieceSearch::look_at(const std::vector<double>& point, double norm) {
  constexpr int kPatience = 30;
  const bool more = norm > seen_ * (1 + 1e-9) || failed_proofs_ < kPatience;
  if (!more || !(norm > lower_ * (1 + 1e-9))) return;
  seen_ = std::max(seen_, norm);
  lower_ = std::max(lower_, try_point_(point));
  // At a kink, or with rounding as large as the piece, less is proved than was seen.
  if (lower_ < 0.999 * norm) ++failed_proofs_;
}

PieceSearch::Bounded PieceSearch::bounded(Worker& worker, Open open) const {
  constexpr double kPerUnit = 500;  // of the small linear programs and what is kept of a part
  double units = 0;
  for (const DenseLayer& layer : net_.layers) units += static_cast<double>(layer.out);
  charge(kPerUnit * units);
  Bounded part;
  SearchRegion::Finding view = worker.region->examine(open.path, open.point);
  part.empty = view.empty;
  part.proof = std::move(view.proof);
  if (!view.empty) {
    if (!view.point.empty() && view.point != open.point)
      part.norm_at_point = plain_norm(part_net_.get(), parts_,
                                      part_net_.slopes(worker.region->slopes_at(view.point)));
    open.point = std::move(view.point);
    const Slopes slopes = part_net_.slopes(view.slopes);
    open.bound = worker.bounder->upper_bound(slopes, open.part, good_enough_bound(), open.state);
    if (std::isnan(open.bound)) open.bound = kInf;
    part.multipliers = of_unstable_units(slopes, worker.bounder->multipliers());
    open.splits = splits_of(worker, view.slopes);
  }
  part.open = std::move(open);
  return part;
}

void PieceSearch::add(Bounded part) {
  CaseTree::Node& node = tree_.nodes[part.open.node];
  if (part.empty) {
    node.empty = std::move(part.proof);
    return;
  }
  node.multipliers = std::move(part.multipliers);
  if (part.norm_at_point > 0) look_at(part.open.point, part.norm_at_point);
  if (part.open.bound <= good_enough_bound() || part.open.splits.empty())
    return close(part.open.bound);
  bytes_ += size_of(part.open);
  open_.push(std::move(part.open));
}

double PieceSearch::size_of(const Open& open) {
  return static_cast<double>(
      sizeof(Open) + open.path.size() * sizeof(Side) + open.splits.size() * sizeof(Split) +
      open.state.size() * sizeof(float) + open.point.size() * sizeof(double));
}

bool PieceSearch::full() const {
  constexpr double kMostBytes = 1.5e9;
  constexpr std::size_t kMostNodes = 500'000;
  return bytes_ > kMostBytes || tree_.nodes.size() > kMostNodes;
}

void PieceSearch::start() {
  for (Index part = 0; part < parts_.count; ++part) {
    tree_.nodes.emplace_back();
    add(bounded(workers_[0], {.node = tree_.nodes.size() - 1, .part = part}));
  }
  for (Index part = 0; part < parts_.count; ++part)
    tree_.input_weights.push_back(workers_[0].bounder->input_weights(part));
}

void PieceSearch::prepare_workers(std::size_t count) {
  while (workers_.size() < count) {
    workers_.push_back({make_bounder(part_net_.get(), parts_), workers_[0].region->clone()});
    for (Index part = 0; part < parts_.count; ++part) {
      LIPSCOPE_CHECK(workers_.back().bounder->use_input_weights(
          part, tree_.input_weights[static_cast<std::size_t>(part)]));
    }
  }
}

std::vector<PieceSearch::Bounded> PieceSearch::bounded(const std::vector<Open>& parts,
                                                       const std::vector<Trial>& trials) {
  std::vector<Bounded> found(2 * trials.size());
  const auto step = static_cast<std::size_t>(workers_.size());
  parallel_for(std::ssize(workers_), 1, [&](std::int64_t from, std::int64_t to) {
    for (auto worker = static_cast<std::size_t>(from); worker < static_cast<std::size_t>(to);
         ++worker) {
      for (std::size_t i = worker; i < found.size(); i += step) {
        const Trial& trial = trials[i / 2];
        Open child = parts[trial.part];
        child.path.push_back({trial.split.unit, trial.split.at, i % 2 != 0});
        found[i] = bounded(workers_[worker], std::move(child));
      }
    }
  });
  return found;
}

void PieceSearch::set_score(const Open& open, const Bounded& below, const Bounded& above,
                            Trial& trial) {
  // Below what is enough nothing matters.
  const auto gain = [&](const Bounded& side) {
    const double left =
        side.empty ? good_enough_bound() : std::max(good_enough_bound(), side.open.bound);
    return open.bound < kInf ? std::max(0.0, 1 - left / open.bound) : 0;
  };
  trial.score = Branching::score(gain(below), gain(above));
  branching_.learn(trial.split.unit, gain(below), gain(above));
}

void PieceSearch::split(const std::vector<Open>& parts) {
  std::vector<Trial> trials;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const std::vector<Split>& splits = parts[part].splits;
    for (const std::size_t s : branching_.advise(splits)) trials.push_back({part, splits[s]});
  }
  std::vector<Bounded> found = bounded(parts, trials);
  for (std::size_t t = 0; t < trials.size(); ++t)
    set_score(parts[trials[t].part], found[2 * t], found[2 * t + 1], trials[t]);
  for (std::size_t t = 0; t < trials.size();) {
    const std::size_t part = trials[t].part;
    std::size_t best = t;
    for (; t < trials.size() && trials[t].part == part; ++t) {
      if (trials[t].score > trials[best].score) best = t;
    }
    ++splits_;
    CaseTree::Node& node = tree_.nodes[parts[part].node];
    node.split = trials[best].split.unit;
    node.at = trials[best].split.at;
    node.multipliers.clear();
    node.children = {tree_.nodes.size(), tree_.nodes.size() + 1};
    for (const std::size_t side : {2 * best, 2 * best + 1}) {
      found[side].open.node = tree_.nodes.size();
      tree_.nodes.emplace_back();
      add(std::move(found[side]));
    }
  }
}

double PieceSearch::upper() const {
  return open_.empty() ? closed_ : std::max(closed_, open_.top().bound);
}

bool PieceSearch::run(double ratio, const std::function<bool()>& stop) {
  ratio_ = ratio;
  if (tree_.nodes.empty()) start();
  while (!open_.empty() && open_.top().bound > good_enough_bound()) {
    if (stop()) return true;
    if (full()) return false;
    // As many at once whatever the number of threads: the tree does not depend on it.
    constexpr Index kLarge = 1'000'000;  // weights: copies of those would fill the memory
    const std::size_t most = net_.size() * parts_.count > kLarge ? 1 : 4;
    std::vector<Open> parts;
    while (!open_.empty() && open_.top().bound > good_enough_bound() && parts.size() < most) {
      parts.push_back(open_.top());
      bytes_ -= size_of(parts.back());
      open_.pop();
    }
    prepare_workers(2 * parts.size());
    split(parts);
  }
  return false;
}

}  // namespace lipscope
