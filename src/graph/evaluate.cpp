// SPDX-License-Identifier: Apache-2.0
#include "lipscope/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/parallel.h"
#include "graph/run_node.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

Shape batched(const Shape& shape, Index count) {
  if (count == 1) return shape;
  Shape result = shape;
  if (!result.empty() && result[0] == 1) {
    result[0] = count;
  } else {
    result.insert(result.begin(), count);
  }
  return result;
}

void check_input(const Value& value, const Tensor& given, Index count) {
  const Index wanted = element_count(value.type.shape) * count;
  if (given.size() != wanted) {
    throw Error(ErrorCode::kShape,
                fmt::format("input '{}' takes {} entries (shape {}, {} sample{}), not {}",
                            value.name, wanted, to_string(value.type.shape), count,
                            count == 1 ? "" : "s", given.size()));
  }
  if (is_floating(given.type()) != is_floating(value.type.type)) {
    throw Error(ErrorCode::kShape,
                fmt::format("input '{}' takes {}, not {}", value.name, to_string(value.type.type),
                            to_string(given.type())));
  }
}

Tensor checked_input(const Value& value, const Tensor& given, Index count, Precision precision) {
  check_input(value, given, count);
  const bool fits =
      given.type() == value.type.type && given.storage() == storage_of(given.type(), precision);
  if (fits) return given;
  return given.cast(value.type.type).with_precision(precision);
}

// Floating constants in the precision of a run, by value index; none for float64.
std::vector<Tensor> converted_constants(const Graph& graph, Precision precision) {
  if (precision == Precision::kFloat64) return {};
  std::vector<Tensor> constants(graph.values().size());
  for (std::size_t v = 0; v < constants.size(); ++v) {
    const Value& value = graph.values()[v];
    if (!value.constant || !is_floating(value.type.type)) continue;
    constants[v] = value.constant->approximate().with_precision(precision);
  }
  return constants;
}

// The work of an operator besides products, which count for themselves.
template <class View>
void charge_entries(const std::vector<View>& out, Index count) {
  constexpr double kPerNode = 1500, kPerEntry = 4;
  double entries = 0;
  for (const View& view : out) entries += static_cast<double>(view.size);
  charge(kPerNode + kPerEntry * entries * static_cast<double>(std::max<Index>(1, count)));
}

// Runs all nodes. `keep` decides whether a value outlives its last use.
class Run {
 public:
  Run(const Graph& graph, const std::vector<Tensor>& constants, std::span<const Tensor> inputs,
      Index count, Precision precision, bool keep)
      : graph_(graph),
        constants_(constants),
        count_(count),
        precision_(precision),
        values_(graph.values().size()),
        uses_(graph.values().size()) {
    if (inputs.size() != graph.inputs().size()) {
      throw Error(ErrorCode::kShape, fmt::format("the model takes {} inputs, not {}",
                                                 graph.inputs().size(), inputs.size()));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId id = graph.inputs()[i];
      values_[id.index] = checked_input(graph.value(id), inputs[i], count, precision);
    }
    count_uses(keep);
    for (const Node& node : graph.nodes()) run(node);
  }

  std::vector<Tensor> take_values() { return std::move(values_); }
  Tensor output(ValueId id) const {
    const Value& value = graph_.value(id);
    if (!value.constant) return values_[id.index].reshaped(batched(value.type.shape, count_));
    return repeated(value.constant->approximate().with_precision(precision_));
  }

 private:
  void count_uses(bool keep) {
    for (const Node& node : graph_.nodes()) {
      for (const ValueId id : node.inputs) ++uses_[id.index];
    }
    for (const ValueId id : graph_.outputs()) ++uses_[id.index];
    if (keep) {
      for (int& uses : uses_) ++uses;
    }
  }

  ConstView view(ValueId id) const {
    const Value& value = graph_.value(id);
    if (!value.constant) return view_samples(value.type, values_[id.index], count_);
    const bool converted = precision_ == Precision::kFloat32 && is_floating(value.type.type);
    return view_samples(value.type,
                        converted ? constants_[id.index] : value.constant->approximate(), 0);
  }

  void run(const Node& node) {
    std::vector<ConstView> in;
    std::vector<MutView> out;
    for (const ValueId id : node.inputs) in.push_back(view(id));
    for (const ValueId id : node.outputs) {
      const ValueType& type = graph_.value(id).type;
      Shape shape = type.shape;
      shape.insert(shape.begin(), count_);
      values_[id.index] = Tensor::zeros(type.type, std::move(shape), precision_);
      out.push_back(view_samples(type, values_[id.index], count_));
    }
    charge_entries(out, count_);
    node.op->eval({in, out, count_});
    for (const ValueId id : node.inputs) {
      if (--uses_[id.index] == 0) values_[id.index] = Tensor();
    }
  }

  Tensor repeated(const Tensor& once) const {
    Tensor all = Tensor::zeros(once.type(), batched(once.shape(), count_), precision_);
    for_each_storage(once, all);
    return all;
  }
  void for_each_storage(const Tensor& once, Tensor& all) const {
    const auto copy = [&](auto from, auto to) {
      for (std::size_t b = 0; b < static_cast<std::size_t>(count_); ++b) {
        std::copy(from.begin(), from.end(), to.begin() + static_cast<Index>(b * from.size()));
      }
    };
    switch (once.storage()) {
      case Storage::kDouble: return copy(once.doubles(), all.doubles());
      case Storage::kFloat: return copy(once.floats(), all.floats());
      case Storage::kInt64: return copy(once.ints(), all.ints());
    }
  }

  const Graph& graph_;
  const std::vector<Tensor>& constants_;
  Index count_;
  Precision precision_;
  std::vector<Tensor> values_;
  std::vector<int> uses_;
};

// Entries begin, begin + 1, ... of a tensor, as many as `to` has, or the other way round.
template <class From, class To>
void copy_entries(const From& from, Index from_begin, To& to, Index to_begin, Index entries) {
  const auto copy = [&](auto source, auto target) {
    std::copy_n(source.begin() + from_begin, entries, target.begin() + to_begin);
  };
  switch (from.storage()) {
    case Storage::kDouble: return copy(from.doubles(), to.doubles());
    case Storage::kFloat: return copy(from.floats(), to.floats());
    case Storage::kInt64: return copy(from.ints(), to.ints());
  }
}

Tensor slice(const Tensor& all, Index begin, Index entries) {
  const Precision precision =
      all.storage() == Storage::kFloat ? Precision::kFloat32 : Precision::kFloat64;
  Tensor part = Tensor::zeros(all.type(), {entries}, precision);
  copy_entries(all, begin, part, 0, entries);
  return part;
}

// Samples run in pieces whose largest value has about this many entries: small enough for the
// cache, large enough to make the cost of starting a kernel small.
constexpr Index kPieceEntries = Index{1} << 18;

Index samples_per_piece(const Graph& graph, Index count) {
  Index largest = 1;
  for (const Value& value : graph.values()) {
    if (!value.constant) largest = std::max(largest, element_count(value.type.shape));
  }
  const Index most = std::clamp<Index>(kPieceEntries / largest, 1, count);
  const Index pieces = (count + most - 1) / most;
  return (count + pieces - 1) / pieces;  // of equal size
}

}  // namespace

std::vector<Tensor> evaluate(const Graph& graph, std::span<const Tensor> inputs, Index count,
                             Precision precision) {
  const std::vector<Tensor> constants = converted_constants(graph, precision);
  const Index piece = samples_per_piece(graph, count);
  std::vector<Tensor> outputs;
  if (piece >= count) {
    const Run run(graph, constants, inputs, count, precision, false);
    for (const ValueId id : graph.outputs()) outputs.push_back(run.output(id));
    return outputs;
  }
  LIPSCOPE_CHECK(inputs.size() == graph.inputs().size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_input(graph.value(graph.inputs()[i]), inputs[i], count);
  }
  for (const ValueId id : graph.outputs()) {
    const ValueType& type = graph.value(id).type;
    outputs.push_back(Tensor::zeros(type.type, batched(type.shape, count), precision));
  }
  parallel_for((count + piece - 1) / piece, 1, [&](Index first, Index last) {
    for (Index p = first; p < last; ++p) {
      const Index begin = p * piece, samples = std::min(piece, count - begin);
      std::vector<Tensor> parts;
      for (const Tensor& input : inputs) {
        const Index entries = input.size() / count;
        parts.push_back(slice(input, begin * entries, samples * entries));
      }
      const Run run(graph, constants, parts, samples, precision, false);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Tensor part = run.output(graph.outputs()[i]);
        const Index entries = part.size() / samples;
        copy_entries(part, 0, outputs[i], begin * entries, part.size());
      }
    }
  });
  return outputs;
}

Trace::Trace(const Graph& graph, std::span<const Tensor> inputs, Index count)
    : graph_(&graph),
      count_(count),
      values_(Run(graph, {}, inputs, count, Precision::kFloat64, true).take_values()) {}

const Tensor& Trace::value(ValueId id) const {
  const Value& value = graph_->value(id);
  return value.constant ? value.constant->approximate() : values_[id.index];
}

ConstView Trace::view(ValueId id) const {
  const Value& value = graph_->value(id);
  if (value.constant) return view_samples(value.type, value.constant->approximate(), 0);
  return view_samples(value.type, values_[id.index], count_);
}

namespace {

// Sets of tangents or gradients, one slot per value; an empty tensor is zero.
class Slots {
 public:
  Slots(const Graph& graph, Index count)
      : graph_(graph), count_(count), held_(graph.values().size()), set_(graph.values().size()) {}

  [[nodiscard]] bool has(ValueId id) const { return set_[id.index]; }
  [[nodiscard]] bool carries(ValueId id) const {
    return !graph_.value(id).constant && is_floating(graph_.value(id).type.type);
  }
  [[nodiscard]] ConstView view(ValueId id) const {
    const ValueType& type = graph_.value(id).type;
    if (has(id)) return view_samples(type, held_[id.index], count_);
    return {.type = type.type, .shape = &type.shape, .size = element_count(type.shape)};
  }
  void set(ValueId id, Tensor value) {
    const ValueType& type = graph_.value(id).type;
    if (value.size() == 0 && element_count(type.shape) != 0) return;
    LIPSCOPE_CHECK(value.size() == element_count(type.shape) * count_);
    held_[id.index] = std::move(value);
    set_[id.index] = true;
  }
  void accumulate(ValueId id, Tensor value) {
    if (!has(id)) return set(id, std::move(value));
    const auto from = value.doubles();
    const auto to = held_[id.index].doubles();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }
  [[nodiscard]] Tensor fresh(ValueId id) const {
    Shape shape = graph_.value(id).type.shape;
    shape.insert(shape.begin(), count_);
    return Tensor::zeros(ElementType::kFloat64, std::move(shape));
  }
  [[nodiscard]] std::vector<Tensor> take(std::span<const ValueId> ids) {
    std::vector<Tensor> result;
    for (const ValueId id : ids) {
      const ValueType& type = graph_.value(id).type;
      const bool real = is_floating(type.type);
      Tensor t = has(id) ? held_[id.index] : real ? fresh(id) : Tensor();
      if (real) t = t.reshaped(batched(type.shape, count_));
      result.push_back(std::move(t));
    }
    return result;
  }

 private:
  const Graph& graph_;
  Index count_;
  std::vector<Tensor> held_;
  std::vector<bool> set_;
};

void require_derivative(const Node& node) {
  if (!node.op->differentiable()) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("node '{}': operator {} has no derivative here", node.name, node.op->name()));
  }
}

}  // namespace

std::vector<Tensor> Trace::jvp(std::span<const Tensor> tangents) const {
  Slots slots(*graph_, count_);
  for (std::size_t i = 0; i < tangents.size(); ++i) slots.set(graph_->inputs()[i], tangents[i]);
  for (const Node& node : graph_->nodes()) {
    bool moves = false;
    std::vector<ConstView> in, out, tangent_in;
    for (const ValueId id : node.inputs) {
      in.push_back(view(id));
      tangent_in.push_back(slots.view(id));
      moves = moves || slots.has(id);
    }
    if (!moves) continue;
    std::vector<Tensor> results;
    results.reserve(node.outputs.size());
    std::vector<MutView> tangent_out;
    bool carried = false;
    for (const ValueId id : node.outputs) {
      out.push_back(view(id));
      results.push_back(slots.carries(id) ? slots.fresh(id) : Tensor());
      carried = carried || slots.carries(id);
      tangent_out.push_back(slots.carries(id)
                                ? view_samples(graph_->value(id).type, results.back(), count_)
                                : MutView{});
    }
    if (!carried) continue;
    require_derivative(node);
    charge_entries(out, count_);
    node.op->jvp({in, out, tangent_in, tangent_out, count_});
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (slots.carries(node.outputs[i])) slots.set(node.outputs[i], std::move(results[i]));
    }
  }
  return slots.take(graph_->outputs());
}

std::vector<Tensor> Trace::vjp(std::span<const Tensor> weights) const {
  Slots slots(*graph_, count_);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].size() != 0 && slots.carries(graph_->outputs()[i])) {
      slots.accumulate(graph_->outputs()[i], weights[i]);
    }
  }
  const auto nodes = graph_->nodes();
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const Node& node = nodes[n];
    bool moves = false;
    std::vector<ConstView> in, out, grad_out;
    for (const ValueId id : node.outputs) {
      out.push_back(view(id));
      grad_out.push_back(slots.view(id));
      moves = moves || slots.has(id);
    }
    if (!moves) continue;
    std::vector<Tensor> results;
    results.reserve(node.inputs.size());
    std::vector<MutView> grad_in;
    bool carried = false;
    for (const ValueId id : node.inputs) {
      in.push_back(view(id));
      results.push_back(slots.carries(id) ? slots.fresh(id) : Tensor());
      carried = carried || slots.carries(id);
      grad_in.push_back(slots.carries(id)
                            ? view_samples(graph_->value(id).type, results.back(), count_)
                            : MutView{});
    }
    if (!carried) continue;
    require_derivative(node);
    charge_entries(out, count_);
    node.op->vjp({in, out, grad_out, grad_in, count_});
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (slots.carries(node.inputs[i])) slots.accumulate(node.inputs[i], std::move(results[i]));
    }
  }
  return slots.take(graph_->inputs());
}

}  // namespace lipscope
