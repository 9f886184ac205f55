// SPDX-License-Identifier: Apache-2.0
#include "robust/inference.h"

#include <fmt/format.h>

#include <algorithm>

#include "bounds/boxes.h"
#include "lipscope/error.h"
#include "net/small.h"
#include "ops/box.h"
#include "ops/facets/machine_map.h"
#include "robust/machine_constants.h"
#include "robust/squash_margins.h"

namespace lipscope {
namespace {

ComputedView view_of(const Box& box, std::span<const double> errors) {
  if (!holds_doubles(box)) return {};  // integers
  return {box.lower.doubles(), box.upper.doubles(), errors};
}

// The values that `last` is computed from.
std::vector<bool> values_needed(const Graph& graph, ValueId last) {
  std::vector<bool> needed(graph.values().size());
  needed[last.index] = true;
  const auto nodes = graph.nodes();
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const bool any =
        std::ranges::any_of(nodes[n].outputs, [&](ValueId v) { return needed[v.index]; });
    for (const ValueId v : nodes[n].inputs) needed[v.index] = needed[v.index] || any;
  }
  return needed;
}

}  // namespace

InferenceError::InferenceError(const Graph& graph, ValueId last, const InferenceFormat& format)
    : graph_(graph),
      last_(last),
      machine_(NumberFormat::of(format.values), NumberFormat::of(format.sums),
               format.flush_to_zero) {
  const std::vector<bool> needed = values_needed(graph, last);
  MachineConstants constants(machine_);
  constants_.resize(graph.values().size());
  for (std::size_t v = 0; v < needed.size(); ++v) {
    const Value& value = graph.values()[v];
    if (needed[v] && value.constant) constants_[v] = constants.errors(*value.constant, value.name);
  }
  for (const Node& node : graph.nodes()) {
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (needed[node.outputs[k].index]) add_step(node, k);
    }
  }
}
InferenceError::~InferenceError() = default;

void InferenceError::add_step(const Node& node, std::size_t output) {
  const MachineMap* map = node.op->machine_map();
  auto made = map != nullptr ? map->machine_step(machine_, output) : nullptr;
  if (made == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("node '{}': no bound of its rounding is known for operator {}; leave "
                            "out --inference, or export the model with that layer merged into its "
                            "neighbours",
                            node.name, node.op->name()));
  }
  steps_.push_back({&node, output, std::move(made)});
}

std::vector<Box> InferenceError::ball_boxes(std::span<const double> center, double radius,
                                            const Norm& norm) const {
  if (radius == 0) {
    std::vector<Box> points;
    for (const Tensor& tensor : split_inputs(graph_, center)) points.push_back({tensor, tensor});
    return points;
  }
  Domain domain;
  domain.ball = Ball{Tensor::vector({center.begin(), center.end()}), radius, norm};
  return input_boxes(graph_, domain);
}

std::vector<Computed> InferenceError::at(std::span<const double> center, double radius,
                                         const Norm& norm) const {
  ValueBoxes boxes(graph_, ball_boxes(center, radius, norm));
  std::vector<std::vector<double>> errors(constants_.size());
  const auto errors_of = [&](ValueId id) -> std::span<const double> {
    return graph_.value(id).constant ? constants_[id.index] : errors[id.index];
  };
  for (const ValueId id : graph_.inputs()) {
    const Box& box = boxes.at(id);
    for (Index i = 0; holds_doubles(box) && i < box.lower.size(); ++i)
      errors[id.index].push_back(machine_.stored(entry(box, i)).error);
  }
  const double most = machine_.values().most;
  for (const Step& step : steps_) {
    const ValueId out = step.node->outputs[step.output];
    std::vector<ComputedView> in;
    for (const ValueId id : step.node->inputs) in.push_back(view_of(boxes.at(id), errors_of(id)));
    const Box& real = boxes.at(out);
    std::vector<double>& result = errors[out.index];
    result.assign(lipscope::to_size(real.lower.size()), kInf);
    step.made->run(in, view_of(real, {}), result);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Computed here{entry(real, static_cast<Index>(i)), result[i]};
      if (!(here.size() <= most)) result[i] = kInf;
    }
  }
  std::vector<Computed> found;
  const Box& real = boxes.at(last_);
  for (std::size_t i = 0; i < errors_of(last_).size(); ++i)
    found.push_back({entry(real, static_cast<Index>(i)), errors_of(last_)[i]});
  return found;
}

LogitError inference_error(const Graph& graph, ValueId logits, const InferenceFormat& format,
                           const Norm& norm) {
  const auto inference = std::make_shared<const InferenceError>(graph, logits, format);
  return [inference, norm](std::span<const double> center, double radius) {
    std::vector<double> errors;
    for (const Computed& logit : inference->at(center, radius, norm)) errors.push_back(logit.error);
    return errors;
  };
}

MarginsNeeded inference_margins(const Graph& graph, const Node* squash,
                                const InferenceFormat& format, const Norm& norm) {
  const ValueId logits = squash != nullptr ? squash->inputs[0] : graph.outputs()[0];
  const auto inference = std::make_shared<const InferenceError>(graph, logits, format);
  std::shared_ptr<const SquashMargins> margins;
  if (squash != nullptr) {
    const auto kind = squash_kind(*squash->op);
    if (!kind) {
      throw Error(
          ErrorCode::kUnsupported,
          fmt::format("no bound of the rounding of a final {} is known", squash->op->name()));
    }
    margins = std::make_shared<const SquashMargins>(
        inference->machine(), *kind,
        lipscope::to_size(element_count(graph.value(logits).type.shape)));
  }
  return [inference, margins, norm](std::span<const double> center, double radius, Index winner) {
    const std::vector<Computed> seen = inference->at(center, radius, norm);
    double largest = 0;
    for (const Computed& logit : seen) largest = std::max(largest, logit.size());
    const Computed& first = seen[lipscope::to_size(winner)];
    std::vector<double> needed;
    for (std::size_t j = 0; j < seen.size(); ++j) {
      needed.push_back(add_up(first.error, seen[j].error));
      if (margins != nullptr && needed[j] < kInf)
        needed[j] = add_up(needed[j], margins->needed(first.seen(), seen[j].seen(), largest));
    }
    return needed;
  };
}

}  // namespace lipscope
