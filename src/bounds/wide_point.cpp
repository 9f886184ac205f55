// SPDX-License-Identifier: Apache-2.0
#include "bounds/wide_point.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/facets/wide_map.h"

namespace lipscope {
namespace {

WideTensor wide_of(const Tensor& tensor) {
  WideTensor out;
  for (Index i = 0; i < tensor.size(); ++i) {
    out.value.emplace_back(tensor.at(i));
    // Large integers may have been rounded on their way.
    if (!is_floating(tensor.type()) && !(std::fabs(tensor.at(i)) < 0x1p53))
      out.value.back() = Wide::unknown();
  }
  return out;
}

// Constants as wide numbers: computed again where rounding was part of them.
class WideConstants {
 public:
  [[nodiscard]] WideTensor at(const Constant& constant) {
    if (const Tensor* exact = constant.exact()) return wide_of(*exact);
    if (const Folded* folded = constant.exact() == nullptr ? constant.folded() : nullptr) {
      const auto [place, first] = known_.try_emplace(folded);
      if (first) place->second = compute(*folded);
      if (place->second) return *place->second;
    }
    const Box box = constant.box();
    WideTensor out;
    for (Index i = 0; i < constant.size(); ++i)
      out.value.push_back(Wide::around({box.lower.at(i), box.upper.at(i)}));
    return out;
  }

 private:
  std::optional<WideTensor> compute(const Folded& folded) {
    const WideMap* map = folded.op->wide_map();
    if (map == nullptr) return std::nullopt;
    std::vector<WideTensor> in;
    std::vector<ValueType> types;
    for (const auto& input : folded.inputs) {
      in.push_back(at(*input));
      types.push_back({input->type(), input->shape()});
    }
    std::vector<const WideTensor*> args;
    for (const WideTensor& x : in) args.push_back(&x);
    std::vector<WideTensor> out(folded.op->infer(types).size());
    if (!map->push_wide(args, out)) return std::nullopt;
    return std::move(out[folded.output]);
  }

  std::map<const Folded*, std::optional<WideTensor>> known_;
};

class WidePoint {
 public:
  WidePoint(const Graph& graph, ValueId output)
      : graph_(graph), values_(graph.values().size()), users_(graph.values().size()) {
    users_[output.index] = 1;
    for (std::size_t n = graph.nodes().size(); n-- > 0;) {
      if (!wanted(graph.nodes()[n])) continue;
      for (const ValueId id : graph.nodes()[n].inputs) ++users_[id.index];
    }
  }

  bool give(ValueId id, const Tensor& at, std::span<const double> along) {
    if (!is_floating(graph_.value(id).type.type)) return users_[id.index] == 0;
    WideTensor& x = values_[id.index];
    x = wide_of(at);
    for (const double e : along) x.tangent.emplace_back(e);
    return true;
  }

  bool push(const Node& node) {
    if (!wanted(node)) return true;
    const WideMap* map = node.op->wide_map();
    if (map == nullptr) return false;
    std::vector<WideTensor> constants(node.inputs.size());
    std::vector<const WideTensor*> in;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value& value = graph_.value(node.inputs[k]);
      in.push_back(&values_[node.inputs[k].index]);
      if (!value.constant) {
        if (!is_floating(value.type.type)) return false;
        continue;
      }
      constants[k] = constants_.at(*value.constant);
      in.back() = &constants[k];
    }
    std::vector<WideTensor> out(node.outputs.size());
    if (!map->push_wide(in, out)) return false;
    for (std::size_t o = 0; o < out.size(); ++o) values_[node.outputs[o].index] = std::move(out[o]);
    // Values take much room; they go when the last user has seen them.
    for (const ValueId id : node.inputs) {
      if (--users_[id.index] == 0) values_[id.index] = {};
    }
    return true;
  }

  [[nodiscard]] const WideTensor& at(ValueId id) const { return values_[id.index]; }

 private:
  [[nodiscard]] bool wanted(const Node& node) const {
    return std::ranges::any_of(node.outputs, [&](ValueId id) { return users_[id.index] > 0; });
  }

  const Graph& graph_;
  WideConstants constants_;
  std::vector<WideTensor> values_;
  std::vector<int> users_;  // that have not seen the value yet
};

}  // namespace

std::optional<std::vector<Interval>> wide_push(const Graph& graph, std::span<const Tensor> inputs,
                                               std::span<const double> direction, ValueId output,
                                               const std::function<bool()>& should_stop) {
  WidePoint point(graph, output);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.inputs()[i];
    const std::size_t size =
        is_floating(graph.value(id).type.type) ? static_cast<std::size_t>(inputs[i].size()) : 0;
    if (!point.give(id, inputs[i], direction.first(size))) return std::nullopt;
    direction = direction.subspan(size);
  }
  for (const Node& node : graph.nodes()) {
    if (should_stop() || !point.push(node)) return std::nullopt;
  }
  const WideTensor& found = point.at(output);
  std::vector<Interval> row(found.value.size(), Interval{0, 0});
  for (std::size_t i = 0; i < found.tangent.size(); ++i) row[i] = hull(found.tangent[i]);
  return row;
}

}  // namespace lipscope
