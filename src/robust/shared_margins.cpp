// SPDX-License-Identifier: Apache-2.0
#include "robust/shared_margins.h"

#include <algorithm>

#include "estimate/lipsdp_solver.h"
#include "linalg/tensor/cholesky.h"
#include "net/small.h"
#include "net/trim.h"
#include "robust/margin_needs.h"
#include "sdp/prefix.h"

namespace lipscope {
namespace {

// A with |A f|^2 = sum over pairs of weight (f_i - f_j)^2, by rows, one less than there are
// classes: the weights make a Laplacian, of which all but the last row and column are factored.
std::vector<double> pair_rows(Index classes, std::span<const double> weights) {
  const std::size_t n = to_size(classes), m = n - 1;
  std::vector<double> laplacian(m * m, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const double w = weights[pair_place(classes, static_cast<Index>(i), static_cast<Index>(j))];
      laplacian[i * m + i] += w;
      if (j == m) continue;
      laplacian[j * m + j] += w;
      laplacian[j * m + i] -= w;
    }
  }
  if (!cholesky(classes - 1, laplacian.data(), classes - 1)) return {};
  std::vector<double> rows(m * n, 0);  // of F', and minus its sums
  for (std::size_t r = 0; r < m; ++r) {
    for (std::size_t i = r; i < m; ++i) {
      rows[r * n + i] = laplacian[i * m + r];
      rows[r * n + m] -= rows[r * n + i];
    }
  }
  return rows;
}

// The network with its outputs, by rows, in place of the logits. Plain arithmetic.
UnitNetwork with_outputs(UnitNetwork network, Index rows, const std::vector<double>& a) {
  UnitNode& last = network.nodes.back();
  for (UnitNode::Edge& edge : last.edges) {
    const RowMatrix& map = edge.map;
    RowMatrix made{rows, map.cols, std::vector<double>(to_size(rows * map.cols), 0), {}, {}, {}};
    for (Index i = 0; i < map.rows; ++i) {
      map.for_row(i, [&](Index c, std::size_t place) {
        for (Index r = 0; r < rows; ++r)
          made.weights[to_size(r * map.cols + c)] +=
              a[to_size(r * map.rows + i)] * map.weights[place];
      });
    }
    edge.map = std::move(made);
  }
  last.size = rows;
  return network;
}

}  // namespace

std::optional<MarginSdp> shared_margins(const MarginSdp& margins, std::span<const double> weights,
                                        const OwnBudget& budget) {
  constexpr Index kMostClasses = 64, kMostUnits = 600;
  constexpr double kGap = 3e-3;
  UnitNetwork network = margins.network();
  const Index classes = network.nodes.back().size;
  if (classes > kMostClasses) return std::nullopt;
  drop_dead_entries(network);
  if (network.nodes.size() < 4 || network.nodes.back().size != classes) return std::nullopt;
  const std::size_t last = network.nodes.size() - 1;
  const bool narrow = network.nodes[last - 1].size <= kMostUnits;
  const std::size_t cut = narrow && passes_all(network, last - 1) ? last - 1 : last;
  const std::vector<double> rows = pair_rows(classes, weights);
  if (rows.empty()) return std::nullopt;
  UnitNetwork aims = with_outputs(network, classes - 1, rows);
  scale_nodes(aims);
  UnitNetwork before = before_node(network, cut);
  scale_nodes(before);  // in the units of the other up to there
  const auto stop = [&] { return budget.over(); };
  std::vector<double> factor;
  solve_lipsdp_of_each(aims, kGap, stop, [&](Multipliers multipliers) {
    multipliers.resize(cut - 1);
    factor = smallest_ellipsoid(before, multipliers, stop);
    if (!proves_ellipsoid(before, multipliers, factor, stop, true)) factor.clear();
    return !factor.empty();
  });
  if (factor.empty()) return std::nullopt;
  return MarginSdp(
      std::make_shared<const UnitNetwork>(behind_factor(network, cut, factor, before.exponent)));
}

}  // namespace lipscope
