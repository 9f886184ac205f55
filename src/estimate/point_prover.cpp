// SPDX-License-Identifier: Apache-2.0
#include "estimate/point_prover.h"

#include <algorithm>
#include <cmath>

#include "estimate/jacobian_norm.h"
#include "pieces/signs.h"

namespace lipscope {

double PointProver::try_point(std::vector<double> x) {
  if (!run_.query.domain.everywhere()) leave_the_edge(x);
  std::vector<double> direction = steepest(x);
  const double size = std::max(1.0, vector_norm(x, Norm(2)));
  TrialLine line{std::move(x), std::move(direction), size};
  if (net_.piecewise_linear()) line.reach = std::min(size, 0.9 * way_to_kink(net_, line.x, line.d));
  ProvedPair pair = prove_along(run_.query, projection_, line, 6, run_.proved_lower(), 0,
                                [this] { return run_.context.stop.stop_requested(); });
  if (pair.value > run_.proved_lower())
    run_.report_witness({pair.value, Guarantee::kProved, std::string(name_)},
                        std::move(pair.witness));
  return run_.proved_lower();
}

std::vector<double> PointProver::steepest(const std::vector<double>& x) {
  const auto n = static_cast<std::size_t>(net_.inputs());
  std::vector<double> direction(n, 0);
  if (parts_.whole) {
    for (double& e : direction) e = normal_(rng_);
    return jacobian_norms(*run_.query.graph, x, 1, run_.query.norms, std::move(direction), 60)
        .direction;
  }
  const std::vector<double> rows = plain_jacobian(net_, region_.slopes_at(x));
  const auto outputs = static_cast<std::size_t>(net_.outputs());
  double most = -1;
  for (std::size_t part = 0; part < static_cast<std::size_t>(parts_.count); ++part) {
    std::vector<double> entries;  // a row, or a column
    for (std::size_t i = 0; i < (parts_.transposed ? outputs : n); ++i)
      entries.push_back(parts_.transposed ? rows[i * n + part] : rows[part * n + i]);
    const double norm = vector_norm(entries, Norm(parts_.norm));
    if (!(norm > most)) continue;
    most = norm;
    if (parts_.transposed) {
      std::ranges::fill(direction, 0);
      direction[part] = 1;
    } else {
      dual_vector(entries, Norm(parts_.norm), direction);
    }
  }
  return direction;
}

void PointProver::leave_the_edge(std::vector<double>& x) const {
  std::vector<double> inward(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = run_.query.domain.ball
                              ? run_.query.domain.ball->center.doubles()[i]
                              : 0.5 * (projection_.low()[i] + projection_.high()[i]);
    inward[i] = middle - x[i];
  }
  const double way =
      net_.piecewise_linear() ? std::min(0.3, 0.5 * way_to_kink(net_, x, inward)) : 0.01;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += way * inward[i];
}

}  // namespace lipscope
