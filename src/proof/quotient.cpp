// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/interval.h"
#include "base/rounding.h"
#include "proof/verify.h"

namespace lipscope {
namespace {

void require_inside(const std::vector<double>& x, const Problem& problem) {
  const Domain& domain = problem.domain();
  std::vector<double> away;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) reject("the witness is not finite");
    if (domain.box &&
        !(x[i] >= domain.box->lower.doubles()[i] && x[i] <= domain.box->upper.doubles()[i])) {
      reject("the witness leaves the box");
    }
    if (domain.ball)
      away.push_back(magnitude(point(x[i]) - point(domain.ball->center.doubles()[i])));
  }
  if (domain.ball && !(pnorm_up(away, domain.ball->norm.p()) <= domain.ball->radius))
    reject("the witness leaves the ball");
}

Box outputs_at(const Graph& graph, const std::vector<double>& x) {
  std::vector<Box> inputs;
  for (Tensor& tensor : split_inputs(graph, x)) inputs.push_back({tensor, tensor});
  return ValueBoxes(graph, inputs).at(graph.outputs()[0]);
}

}  // namespace

double proved_by(const QuotientProof& proof, Problem& problem) {
  const auto& [x, y] = proof.witness;
  const auto size = static_cast<std::size_t>(input_size(problem.graph()));
  if (x.size() != size || y.size() != size) reject("the witness has the wrong size");
  require_inside(x, problem);
  require_inside(y, problem);
  const Box fx = outputs_at(problem.graph(), x), fy = outputs_at(problem.graph(), y);
  std::vector<double> moved, step;
  for (std::size_t i = 0; i < fx.lower.doubles().size(); ++i) {
    const Interval change = Interval{fy.lower.doubles()[i], fy.upper.doubles()[i]} -
                            Interval{fx.lower.doubles()[i], fx.upper.doubles()[i]};
    const double least = mignitude(change);
    moved.push_back(std::isfinite(least) ? least : 0);
  }
  for (std::size_t i = 0; i < size; ++i) step.push_back(magnitude(point(y[i]) - point(x[i])));
  const double distance = pnorm_up(step, problem.norms().in.p());
  if (!(distance > 0)) reject("the points of the witness are one");
  return div_down(pnorm_down(moved, problem.norms().out.p()), distance);
}

}  // namespace lipscope
