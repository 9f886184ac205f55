// SPDX-License-Identifier: Apache-2.0
#include "bounds/graph_jacobian.h"

#include <algorithm>

#include "base/rounding.h"
#include "bounds/derivative_boxes.h"
#include "bounds/gradient_graph.h"
#include "bounds/linear_bounds.h"
#include "linalg/norm/operator_norm.h"
#include "ops/linear/linear_gain.h"

namespace lipscope {
namespace {

constexpr Index kMostRows = 16;        // of the Jacobian
constexpr double kMostWork = 2e11;     // for linear bounds of gradients
constexpr double kMostMatrices = 1e7;  // entries of all affine nodes

using JacobianRow = DerivativeBoxes::Row;

// Norm of all matrices in the rows.
double enclosed_norm_up(const std::vector<JacobianRow>& rows, const NormPair& norms) {
  const auto m = std::ssize(rows), n = std::ssize(rows[0]);
  std::vector<double> middle, radius, size;
  for (const JacobianRow& row : rows) {
    for (const Interval& x : row) {
      if (!is_bounded(x)) return kInf;
      middle.push_back(midpoint(x));
      radius.push_back(radius_up(x));
      size.push_back(magnitude(x));
    }
  }
  if (m == 1) return pnorm_up(size, dual_down(norms.in).p());
  if (n == 1) return pnorm_up(size, norms.out.p());
  const NormEffort effort{.want_lower = false};
  return std::min(matrix_norm({m, n, size.data(), nullptr}, norms, effort).upper,
                  matrix_norm({m, n, middle.data(), radius.data()}, norms, effort).upper);
}

}  // namespace

std::string graph_jacobian_unsupported(const Graph& graph, const Domain& domain) {
  if (domain.everywhere()) return "needs a box or a ball";
  const ValueId out = graph.outputs()[0];
  const Index outputs = element_count(graph.value(out).type.shape), inputs = input_size(graph);
  if (outputs > kMostRows)
    return "the Jacobian has too many rows; choose an --output or a --margin";
  if (!DomainSupport(domain, static_cast<std::size_t>(inputs)).bounded())
    return "the domain is not bounded";
  return {};
}

namespace {

std::vector<double> unit_rows(std::size_t n) {
  std::vector<double> rows(n * n);
  for (std::size_t i = 0; i < n; ++i) rows[i * n + i] = 1;
  return rows;
}

// By linear bounds of the gradient as a function of the input.
GraphJacobian by_lines(const Graph& gradients, const NormPair& norms, const Domain& domain,
                       std::size_t rows, const std::function<bool()>& should_stop) {
  // Of l-infinity inputs each row is a sum of sizes, which is bounded as such.
  const bool sums = norms.in == Norm::infinity() && (rows == 1 || norms.out == Norm::infinity());
  const Graph summed = sums ? with_sums_of_sizes(gradients, rows) : Graph();
  const Graph& graph = sums ? summed : gradients;
  const AffineNodes nodes(graph, 2 * kMostMatrices);
  if (!nodes.usable()) return {kInf, "the affine parts of its gradient are too large as matrices"};
  LinearBounds bounds(graph, nodes, domain, {.most_work = kMostWork, .stop = should_stop});
  if (sums) {
    double upper = 0;
    for (const ValueId id : graph.outputs()) {
      const double least = -bounds.lower(id, std::vector<double>{-1.0})[0];
      upper = std::max(upper, least);
    }
    return {should_stop() ? kInf : upper, ""};
  }
  std::vector<JacobianRow> found(rows);
  const std::size_t parts = graph.outputs().size() / rows;
  for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
    for (const Interval& x : bounds.ranges(graph.outputs()[k])) found[k / parts].push_back(x);
    if (should_stop()) return {kInf, "stopped"};
  }
  return {enclosed_norm_up(found, norms), ""};
}

// Where an operator does not tell its derivative as a graph: intervals from the output back.
GraphJacobian by_intervals(const Graph& graph, const AffineNodes& nodes, const NormPair& norms,
                           const Domain& domain, const std::function<bool()>& should_stop) {
  const ValueId out = graph.outputs()[0];
  const auto outputs = static_cast<std::size_t>(element_count(graph.value(out).type.shape));
  DerivativeBoxes derivative(graph, input_boxes(graph, domain));
  if (std::string reason = derivative.unsupported(out); !reason.empty()) return {kInf, reason};
  LinearBounds bounds(graph, nodes, domain, {.stop = should_stop});
  if (should_stop()) return {kInf, "stopped"};
  bounds.narrow(derivative.values());
  std::vector<JacobianRow> found;
  for (std::size_t k = 0; k < outputs; ++k) {
    std::vector<double> one(outputs);
    one[k] = 1;
    auto row = derivative.pull(one, out);
    if (should_stop()) return {kInf, "stopped"};
    if (!row) return {kInf, "an operator does not tell its derivative on a box"};
    found.push_back(std::move(*row));
  }
  return {enclosed_norm_up(found, norms), ""};
}

}  // namespace

GraphJacobian graph_jacobian_bound(const Graph& graph, const NormPair& norms, const Domain& domain,
                                   const std::function<bool()>& should_stop) {
  const Index outputs = element_count(graph.value(graph.outputs()[0]).type.shape);
  if (outputs == 0 || input_size(graph) == 0) return {0, ""};
  const AffineNodes nodes(graph, kMostMatrices);
  if (!nodes.usable()) return {kInf, "its affine parts are too large as matrices"};
  std::string reason;
  const auto rows = static_cast<std::size_t>(outputs);
  const auto gradients = gradient_graph(graph, nodes, unit_rows(rows), reason);
  GraphJacobian found = gradients ? by_lines(*gradients, norms, domain, rows, should_stop)
                                  : by_intervals(graph, nodes, norms, domain, should_stop);
  if (found.reason.empty() && !(found.upper < kInf))
    found = {kInf, should_stop() ? "stopped" : "a derivative has no bound on the domain"};
  return found;
}

}  // namespace lipscope
