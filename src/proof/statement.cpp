// SPDX-License-Identifier: Apache-2.0
#include "proof/statement.h"

#include <cmath>

#include "bounds/no_value.h"

namespace lipscope {
namespace {

bool any_nan(const Tensor& tensor) {
  for (const double e : tensor.doubles()) {
    if (std::isnan(e)) return true;
  }
  return false;
}

void check_domain(const Graph& graph, const Domain& domain) {
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
  const std::vector<Box> boxes = input_boxes(graph, domain);
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    if (!is_floating(graph.value(graph.inputs()[b]).type.type)) continue;
    const auto low = boxes[b].lower.doubles(), high = boxes[b].upper.doubles();
    for (std::size_t i = 0; i < low.size(); ++i) {
      if (low[i] > high[i]) reject("the domain is empty");
    }
  }
}

}  // namespace

Problem problem_of(const Graph& graph, const Statement& statement) {
  check_domain(graph, statement.domain);
  return Problem({&graph, statement.norms, statement.domain});
}

void check_values(Problem& problem) {
  if (const std::string reason = no_value_anywhere(problem.boxes()); !reason.empty())
    reject("{}", reason);
}

ValueId value_named(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.outputs) {
      if (graph.value(id).name == name) return id;
    }
  }
  reject("there is no value '{}'", name);
}

}  // namespace lipscope
