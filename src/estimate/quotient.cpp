// SPDX-License-Identifier: Apache-2.0
#include "estimate/quotient.h"

#include <cmath>
#include <vector>

#include "base/interval.h"
#include "base/rounding.h"
#include "bounds/boxes.h"

namespace lipscope {
namespace {

Box output_box(const Graph& graph, std::span<const double> point) {
  std::vector<Box> inputs;
  for (const Tensor& tensor : split_inputs(graph, point)) inputs.push_back({tensor, tensor});
  return value_boxes(graph, inputs)[graph.outputs()[0].index];
}

}  // namespace

double proved_quotient(const Query& query, const Witness& witness) {
  const Box fx = output_box(*query.graph, witness.x), fy = output_box(*query.graph, witness.y);
  std::vector<double> moved, step;
  for (std::size_t i = 0; i < fx.lower.doubles().size(); ++i) {
    const Interval a{fx.lower.doubles()[i], fx.upper.doubles()[i]};
    const Interval b{fy.lower.doubles()[i], fy.upper.doubles()[i]};
    const double least = mignitude(b - a);
    moved.push_back(std::isfinite(least) ? least : 0);
  }
  for (std::size_t i = 0; i < witness.x.size(); ++i) {
    step.push_back(magnitude(point(witness.y[i]) - point(witness.x[i])));
  }
  const double distance = pnorm_up(step, query.norms.in.p());
  if (!(distance > 0) || std::isinf(distance)) return 0;
  const double quotient = div_down(pnorm_down(moved, query.norms.out.p()), distance);
  return std::isfinite(quotient) && quotient > 0 ? quotient : 0;
}

bool in_domain(const Domain& domain, std::span<const double> point) {
  if (domain.box) {
    const auto low = domain.box->lower.doubles(), high = domain.box->upper.doubles();
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (!(point[i] >= low[i] && point[i] <= high[i])) return false;
    }
  }
  if (domain.ball) {
    std::vector<double> away;
    const auto center = domain.ball->center.doubles();
    for (std::size_t i = 0; i < point.size(); ++i) {
      away.push_back(magnitude(lipscope::point(point[i]) - lipscope::point(center[i])));
    }
    if (!(pnorm_up(away, domain.ball->norm.p()) <= domain.ball->radius)) return false;
  }
  return true;
}

}  // namespace lipscope
