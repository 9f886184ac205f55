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
                                [this] { return run_.interrupted(); });
  if (pair.value > run_.proved_lower())
    run_.report_witness({pair.value, Guarantee::kProved, std::string(name_)},
                        std::move(pair.witness));
  return run_.proved_lower();
}

std::vector<double> PointProver::steepest(const std::vector<double>& x) {
  const auto n = static_cast<std::size_t>(net_.inputs());
  std::vector<double> direction(n, 0);
  if (parts_.whole || parts_.weighted) {
    for (double& e : direction) e = normal_(rng_);
    return jacobian_norms(*run_.query.graph, x, 1, run_.query.norms, std::move(direction), 60)
        .direction;
  }
  const Slopes slopes = part_net_.slopes(region_.slopes_at(x));
  const std::vector<double> rows = plain_jacobian(part_net_.get(), slopes);
  const auto length = static_cast<std::size_t>(part_net_.get().inputs());
  double most = -1;
  for (Index part = 0; part < parts_.count; ++part) {
    const std::span row(&rows[static_cast<std::size_t>(part) * length], length);
    const double norm = vector_norm(row, Norm(parts_.norm));
    if (!(norm > most)) continue;
    most = norm;
    if (!parts_.transposed) {
      dual_vector(row, Norm(parts_.norm), direction);
      continue;
    }
    for (Index i = 0; i < net_.inputs(); ++i) {
      direction[static_cast<std::size_t>(i)] = parts_.signs ? NormDecomposition::sign(part, i)
                                               : i == part  ? 1
                                                            : 0;
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
