// SPDX-License-Identifier: Apache-2.0
#include "proof/problem.h"

#include <cmath>

#include "passes/split_softmax.h"

namespace lipscope {
namespace {

bool any_nan(const Tensor& tensor) {
  for (const double e : tensor.doubles()) {
    if (std::isnan(e)) return true;
  }
  return false;
}

// The boxes of the inputs, once the domain is known to be one.
std::vector<Box> boxes_of_domain(const Graph& graph, const Domain& domain) {
  const Index size = input_size(graph);
  if (domain.ball) {
    const Ball& ball = *domain.ball;
    if (ball.center.size() != size) reject("the ball has the wrong size");
    if (!(ball.radius >= 0)) reject("the ball has no radius");
    for (const double e : ball.center.doubles()) {
      if (!std::isfinite(e)) reject("the centre of the ball is not finite");
    }
  }
  if (domain.box) {
    const auto& [lower, upper] = *domain.box;
    if (lower.size() != size || upper.size() != size) reject("the box has the wrong size");
    if (any_nan(lower) || any_nan(upper)) reject("the domain holds NaN");
  }
  std::vector<Box> boxes = input_boxes(graph, domain);
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    if (!is_floating(graph.value(graph.inputs()[b]).type.type)) continue;
    const auto low = boxes[b].lower.doubles(), high = boxes[b].upper.doubles();
    for (std::size_t i = 0; i < low.size(); ++i) {
      if (low[i] > high[i]) reject("the domain is empty");
    }
  }
  return boxes;
}

}  // namespace

Problem::Problem(const Graph& graph, const Statement& statement)
    : graph_(graph),
      statement_(statement),
      boxes_(graph, boxes_of_domain(graph, statement.domain)) {}

const Graph& Problem::with_softmax_split() {
  if (!split_) split_ = split_softmax(graph_);
  return split_ ? *split_ : graph_;
}

ValueId Problem::value_named(const std::string& name) const {
  for (const Node& node : graph_.nodes()) {
    for (const ValueId id : node.outputs) {
      if (graph_.value(id).name == name) return id;
    }
  }
  reject("there is no value '{}'", name);
}

}  // namespace lipscope
