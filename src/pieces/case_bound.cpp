// SPDX-License-Identifier: Apache-2.0
#include "pieces/case_bound.h"

#include <cmath>
#include <map>

#include "base/rounding.h"
#include "net/small.h"
#include "pieces/row_bound.h"
#include "pieces/scaled_net.h"

namespace lipscope {
namespace {

// By the semidefinite recursion.
class EuclideanCase : public CaseBound {
 public:
  EuclideanCase(const LayeredNet& net, const NormDecomposition& parts) {
    for (Index r = 0; r < parts.count; ++r)
      bounds_.emplace_back(net, parts.whole ? std::nullopt : std::optional(r));
  }
  double upper_bound(const Slopes& slopes, Index row, const Multipliers& multipliers,
                     std::vector<float>&) override {
    return bounds_[to_size(row)].upper_bound(slopes, multipliers);
  }
  bool inherits() const override { return false; }

 private:
  std::vector<EuclideanBound> bounds_;
};

// By linear bounds.
class RowCase : public CaseBound {
 public:
  RowCase(const LayeredNet& net, GradientNorm norm) : bound_(net, norm) {}

  double upper_bound(const Slopes& slopes, Index row, const Multipliers&,
                     std::vector<float>& state) override {
    return bound_.upper_bound(slopes, row, state);
  }
  bool inherits() const override { return true; }

 private:
  RowBound bound_;
};

struct ScaledBound {
  explicit ScaledBound(ScaledNet of) : scaled(std::move(of)), bound(scaled.net, Index{0}) {}
  ScaledNet scaled;
  EuclideanBound bound;
};

// By linear bounds where there are no multipliers, else by a weighted l2 norm [pieces-7].
class WeightedRowCase : public CaseBound {
 public:
  explicit WeightedRowCase(const LayeredNet& net) : net_(net), linear_(net, GradientNorm::kOne) {}

  double upper_bound(const Slopes& slopes, Index row, const Multipliers& multipliers,
                     std::vector<float>& state) override {
    if (multipliers.empty()) return linear_.upper_bound(slopes, row, state);
    const auto found = scaled_.find(row);
    if (found == scaled_.end()) return kInf;
    return mul_up(found->second->bound.upper_bound(slopes, multipliers),
                  found->second->scaled.size);
  }
  bool inherits() const override { return true; }
  bool use_input_weights(Index row, const std::vector<double>& weights) override {
    if (weights.empty()) return true;
    auto scaled = scaled_row(net_, row, weights);
    if (!scaled) return false;
    scaled_[row] = std::make_unique<ScaledBound>(*std::move(scaled));
    return true;
  }

 private:
  const LayeredNet& net_;
  RowBound linear_;
  std::map<Index, std::unique_ptr<ScaledBound>> scaled_;
};

// By the l2 norm of the whole with weighted inputs and outputs [pieces-12].
class WeightedWholeCase : public CaseBound {
 public:
  WeightedWholeCase(const LayeredNet& net, const NormDecomposition& parts)
      : net_(net), inputs_(parts.from == kInf), outputs_(parts.to == 1) {}

  double upper_bound(const Slopes& slopes, Index, const Multipliers& multipliers,
                     std::vector<float>&) override {
    return bound_ ? mul_up(bound_->upper_bound(slopes, multipliers), scaled_.size) : kInf;
  }
  bool inherits() const override { return false; }
  bool use_input_weights(Index, const std::vector<double>& weights) override {
    auto scaled = scaled_whole(net_, inputs_, outputs_, weights);
    if (!scaled) return false;
    scaled_ = *std::move(scaled);
    bound_ = std::make_unique<EuclideanBound>(scaled_.net, std::nullopt);
    return true;
  }

 private:
  const LayeredNet& net_;
  bool inputs_, outputs_;
  ScaledNet scaled_;
  std::unique_ptr<EuclideanBound> bound_;
};

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

}  // namespace

std::unique_ptr<CaseBound> make_case_bound(const LayeredNet& net, const NormDecomposition& parts) {
  if (parts.weighted) return std::make_unique<WeightedWholeCase>(net, parts);
  if (parts.norm == 2) return std::make_unique<EuclideanCase>(net, parts);
  if (parts.sums_by_weights()) return std::make_unique<WeightedRowCase>(net);
  return std::make_unique<RowCase>(net, parts.norm == 1 ? GradientNorm::kOne : GradientNorm::kMax);
}

double confirmed_bound(const LayeredNet& net, const NormDecomposition& parts, Region& region,
                       const CaseTree& tree) {
  const ComponentNet component_net(net, parts);
  const auto bound = make_case_bound(component_net.get(), parts);
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
        !bound->use_input_weights(static_cast<Index>(part), tree.input_weights[part]))
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
      if (bound->inherits()) {
        const Region::View view = region.confirm(visit.path, {});
        if (view.empty) continue;  // and so are all parts of it
        (void)bound->upper_bound(component_net.slopes(view.slopes), visit.part, {}, visit.state);
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
    const Slopes slopes = component_net.slopes(view.slopes);
    const bool needed = parts.norm == 2 || !node.multipliers.empty();
    const auto multipliers = to_all_units(slopes, node.multipliers, needed);
    if (!multipliers) return kInf;
    upper = max_nan(upper, bound->upper_bound(slopes, visit.part, *multipliers, visit.state));
  }
  return upper;
}

}  // namespace lipscope
