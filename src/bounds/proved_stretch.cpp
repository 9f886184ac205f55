// SPDX-License-Identifier: Apache-2.0
#include "bounds/proved_stretch.h"

#include <algorithm>
#include <cmath>

#include "bounds/near_point.h"
#include "bounds/wide_point.h"
#include "linalg/norm/operator_norm.h"

namespace lipscope {
namespace {

constexpr double kNear = 1e-9;
constexpr double kMostWideWork = 4e9;  // entries of matrices

}  // namespace

std::optional<double> proved_stretch(const Graph& graph, const StretchQuestion& question) {
  const ValueId out = graph.outputs()[0];
  const double length = pnorm_up(question.direction, question.norms.in.p());
  std::optional<double> best;
  const auto take = [&](const std::optional<DerivativeBoxes::Row>& moved) {
    if (!moved) return;
    std::vector<double> least;
    for (const Interval& entry : *moved) {
      const double size = mignitude(entry);
      least.push_back(std::isfinite(size) ? size : 0);
    }
    const double found =
        length > 0 ? div_down(pnorm_down(least, question.norms.out.p()), length) : 0;
    best = std::max(best.value_or(0), found);
  };
  const std::vector<Tensor> inputs = split_inputs(graph, question.at);
  std::vector<Box> boxes;
  for (const Tensor& tensor : inputs) boxes.push_back({tensor, tensor});
  take(NearPoint(graph, boxes).push(question.direction, out));
  const bool near = best && *best >= question.expected * (1 - kNear);
  if (!near && DerivativeBoxes(graph, {}).work(out) <= kMostWideWork)
    take(wide_push(graph, inputs, question.direction, out, question.should_stop));
  return best;
}

}  // namespace lipscope
