// SPDX-License-Identifier: Apache-2.0
#include "bounds/graph_jacobian.h"

#include <algorithm>

#include "base/parallel.h"
#include "base/rounding.h"
#include "bounds/derivative_boxes.h"
#include "bounds/linear_bounds.h"
#include "linalg/operator_norm.h"
#include "ops/linear_gain.h"

namespace lipscope {
namespace {

constexpr Index kMostRows = 64;        // of the Jacobian, or columns
constexpr double kMostEntries = 4e6;   // of it
constexpr double kMostMatrices = 2e7;  // entries of all affine nodes

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
  if (std::min(outputs, inputs) > kMostRows ||
      static_cast<double>(outputs) * static_cast<double>(inputs) > kMostEntries)
    return "the Jacobian has too many entries; choose an --output or a --margin";
  if (!DomainSupport(domain, static_cast<std::size_t>(inputs)).bounded())
    return "the domain is not bounded";
  return {};
}

GraphJacobian graph_jacobian_bound(const Graph& graph, const NormPair& norms, const Domain& domain,
                                   const std::function<bool()>& should_stop) {
  const ValueId out = graph.outputs()[0];
  const Index outputs = element_count(graph.value(out).type.shape), inputs = input_size(graph);
  if (outputs == 0 || inputs == 0) return {0, ""};
  DerivativeBoxes derivative(graph, input_boxes(graph, domain));
  if (std::string reason = derivative.unsupported(out); !reason.empty()) return {kInf, reason};
  const AffineNodes nodes(graph, kMostMatrices);
  if (!nodes.usable()) return {kInf, "its affine parts are too large as matrices"};
  LinearBounds bounds(graph, nodes, domain, {.stop = should_stop});
  if (should_stop()) return {kInf, "stopped"};
  bounds.narrow(derivative.values());
  derivative.prepare(out);
  const bool forwards = inputs < outputs;
  const auto count = static_cast<std::size_t>(forwards ? inputs : outputs);
  std::vector<JacobianRow> found(count);
  std::vector<char> known(count, 0);
  parallel_for(static_cast<Index>(count), 1, [&](Index begin, Index end) {
    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
      if (should_stop()) return;
      std::vector<double> one(count);
      one[k] = 1;
      auto row = forwards ? derivative.push(one, out) : derivative.pull(one, out);
      known[k] = row.has_value() ? 1 : 0;
      if (row) found[k] = std::move(*row);
    }
  });
  if (should_stop()) return {kInf, "stopped"};
  if (std::ranges::count(known, 0) > 0)
    return {kInf, "an operator does not tell its derivative on a box"};
  if (forwards) {
    std::vector<JacobianRow> rows(static_cast<std::size_t>(outputs));
    for (const JacobianRow& column : found) {
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(column[i]);
    }
    found = std::move(rows);
  }
  const double upper = enclosed_norm_up(found, norms);
  return {upper, upper < kInf ? "" : "a derivative has no bound on the domain"};
}

}  // namespace lipscope
