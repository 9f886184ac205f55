// SPDX-License-Identifier: Apache-2.0
#include "pieces/search.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {
namespace {

// Multipliers of units with one slope do not matter.
std::vector<double> of_open_units(const Slopes& slopes, const Multipliers& multipliers) {
  std::vector<double> list;
  for (std::size_t k = 0; k < multipliers.size(); ++k) {
    for (std::size_t i = 0; i < slopes[k].size(); ++i) {
      if (slopes[k][i].lo != slopes[k][i].hi) list.push_back(multipliers[k][i]);
    }
  }
  return list;
}

std::optional<Multipliers> to_all_units(const Slopes& slopes, const std::vector<double>& list,
                                        bool needed) {
  Multipliers all;
  if (!needed) return all;
  std::size_t at = 0;
  for (const auto& layer : slopes) {
    all.emplace_back(layer.size(), 0.0);
    for (std::size_t i = 0; i < layer.size(); ++i) {
      if (layer[i].lo == layer[i].hi) continue;
      if (at == list.size()) return std::nullopt;
      all.back()[i] = list[at++];
    }
  }
  return at == list.size() ? std::optional(std::move(all)) : std::nullopt;
}

Slopes reversed_if(bool on, Slopes slopes) {
  if (on) std::ranges::reverse(slopes);
  return slopes;
}

}  // namespace

PieceSearch::PieceSearch(const LayeredNet& net, const Parts& parts, Region& region,
                         TryPoint try_point, double lower)
    : net_(net), parts_(parts), region_(region), try_point_(std::move(try_point)), lower_(lower) {
  if (parts.transposed) turned_ = transposed(net);
  bounder_ = make_bounder(turned_ ? *turned_ : net_, parts);
}

Slopes PieceSearch::for_part(Slopes slopes) const {
  return reversed_if(parts_.transposed, std::move(slopes));
}

std::optional<UnitId> PieceSearch::choose(const Slopes& slopes) const {
  std::optional<UnitId> best;
  double most = -1;
  const std::size_t hidden = net_.hidden();
  for (std::size_t k = 0; k < hidden; ++k) {
    for (std::size_t i = 0; i < slopes[k].size(); ++i) {
      if (slopes[k][i].lo == slopes[k][i].hi || !region_.split_at({k, i})) continue;
      const double weight = bounder_->weight({parts_.transposed ? hidden - 1 - k : k, i});
      if (weight > most) {
        most = weight;
        best = UnitId{k, i};
      }
    }
    if (best && region_.by_layers()) break;
  }
  return best;
}

void PieceSearch::look_at(const std::vector<double>& point) {
  const double norm =
      plain_norm(turned_ ? *turned_ : net_, parts_, for_part(region_.slopes_at(point)));
  constexpr int kPatience = 30;
  const bool more = norm > seen_ * (1 + 1e-9) || disappointed_ < kPatience;
  if (!more || !(norm > lower_ * (1 + 1e-9))) return;
  seen_ = std::max(seen_, norm);
  lower_ = std::max(lower_, try_point_(point));
  // At a kink, or with rounding as large as the piece, less is proved than was seen.
  if (lower_ < 0.999 * norm) ++disappointed_;
}

void PieceSearch::consider(Open open) {
  Region::View view = region_.look(open.path, open.point);
  if (view.empty) {
    tree_.nodes[open.node].empty = std::move(view.proof);
    return;
  }
  if (!view.point.empty() && view.point != open.point) look_at(view.point);
  open.point = std::move(view.point);
  const double enough = std::max(closed_, lower_ * ratio_);
  const Slopes slopes = for_part(view.slopes);
  open.bound = bounder_->up(slopes, open.part, enough, open.state);
  if (std::isnan(open.bound)) open.bound = kInf;
  tree_.nodes[open.node].multipliers = of_open_units(slopes, bounder_->multipliers());
  if (open.bound <= enough) return close(open.bound);
  const auto split = choose(view.slopes);
  if (!split) return close(open.bound);
  open.split = *split;
  open.at = *region_.split_at(*split);
  bytes_ += size_of(open);
  open_.push(std::move(open));
}

double PieceSearch::size_of(const Open& open) {
  return static_cast<double>(sizeof(Open) + open.path.size() * sizeof(Side) +
                             open.state.size() * sizeof(float) +
                             open.point.size() * sizeof(double));
}

bool PieceSearch::full() const {
  constexpr double kMostBytes = 1.5e9;
  constexpr std::size_t kMostNodes = 500'000;
  return bytes_ > kMostBytes || tree_.nodes.size() > kMostNodes;
}

void PieceSearch::start() {
  for (Index part = 0; part < parts_.count; ++part) {
    tree_.nodes.emplace_back();
    consider({.node = tree_.nodes.size() - 1, .part = part});
  }
  for (Index part = 0; part < parts_.count; ++part)
    tree_.input_weights.push_back(bounder_->input_weights(part));
}

void PieceSearch::expand(Open open) {
  ++splits_;
  tree_.nodes[open.node].split = open.split;
  tree_.nodes[open.node].at = open.at;
  tree_.nodes[open.node].multipliers.clear();
  for (const bool above : {false, true}) {
    Open child = open;
    child.path.push_back({open.split, open.at, above});
    child.node = tree_.nodes.size();
    tree_.nodes[open.node].children[above ? 1 : 0] = child.node;
    tree_.nodes.emplace_back();
    consider(std::move(child));
  }
}

double PieceSearch::upper() const {
  return open_.empty() ? closed_ : std::max(closed_, open_.top().bound);
}

bool PieceSearch::run(double ratio, const std::function<bool()>& stop) {
  ratio_ = ratio;
  if (tree_.nodes.empty()) start();
  while (!open_.empty() && open_.top().bound > std::max(closed_, lower_ * ratio_)) {
    if (stop()) return true;
    if (full()) return false;
    Open top = open_.top();
    open_.pop();
    bytes_ -= size_of(top);
    expand(std::move(top));
  }
  return false;
}

double confirmed_bound(const LayeredNet& net, const Parts& parts, Region& region,
                       const CaseTree& tree) {
  std::optional<LayeredNet> turned;
  if (parts.transposed) turned = transposed(net);
  const auto bounder = make_bounder(turned ? *turned : net, parts);
  struct Visit {
    std::size_t node;
    Index part;
    Path path;
    std::vector<float> state;
  };
  std::vector<Visit> stack;
  if (std::ssize(tree.nodes) < parts.count) return kInf;
  for (std::size_t part = 0; part < tree.input_weights.size(); ++part) {
    if (std::ssize(tree.input_weights) > parts.count ||
        !bounder->use_input_weights(static_cast<Index>(part), tree.input_weights[part]))
      return kInf;
  }
  for (Index part = 0; part < parts.count; ++part)
    stack.push_back({static_cast<std::size_t>(part), part, {}, {}});
  std::vector<bool> seen(tree.nodes.size());
  double upper = 0;
  while (!stack.empty()) {
    Visit visit = std::move(stack.back());
    stack.pop_back();
    if (visit.node >= tree.nodes.size() || seen[visit.node]) return kInf;
    seen[visit.node] = true;
    const CaseTree::Node& node = tree.nodes[visit.node];
    if (node.split) {
      const auto [layer, place] = *node.split;
      if (layer >= net.hidden() || place >= net.layers[layer].slopes.size() ||
          !std::isfinite(node.at))
        return kInf;
      if (bounder->inherits()) {
        const Slopes slopes = reversed_if(parts.transposed, region.confirm(visit.path, {}).slopes);
        (void)bounder->confirm(slopes, visit.part, {}, visit.state);
      }
      for (const bool above : {false, true}) {
        Visit child{node.children[above ? 1 : 0], visit.part, visit.path, visit.state};
        child.path.push_back({*node.split, node.at, above});
        stack.push_back(std::move(child));
      }
      continue;
    }
    const Region::View view = region.confirm(visit.path, node.empty);
    if (view.empty) continue;
    const Slopes slopes = reversed_if(parts.transposed, view.slopes);
    const bool needed = parts.norm == 2 || !node.multipliers.empty();
    const auto multipliers = to_all_units(slopes, node.multipliers, needed);
    if (!multipliers) return kInf;
    upper = max_nan(upper, bounder->confirm(slopes, visit.part, *multipliers, visit.state));
  }
  return upper;
}

}  // namespace lipscope
