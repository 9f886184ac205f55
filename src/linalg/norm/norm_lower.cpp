// SPDX-License-Identifier: Apache-2.0
// Lower bounds: a vector found somehow, its quotient proved.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/rounding.h"
#include "linalg/norm/norm_map.h"

namespace lipscope {
namespace {

// y with <x, y> = ||x||_p ||y||_{p*}, up to scale and rounding; false if x is zero or not finite.
bool dual_vector(double p, const std::vector<double>& x, std::vector<double>& y) {
  std::size_t at = 0;
  double top = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return false;
    if (std::fabs(x[i]) > top) top = std::fabs(x[at = i]);
  }
  if (top == 0) return false;
  y.assign(x.size(), 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double size = std::fabs(x[i]) / top;
    const double power = p == kInf ? (i == at ? 1 : 0) : (p == 1 ? 1 : std::pow(size, p - 1));
    y[i] = x[i] == 0 ? 0 : std::copysign(power, x[i]);
  }
  return true;
}

// Boyd and Higham's nonlinear power method; x is improved in place.
void climb(const NormMap& map, double p, double q, std::vector<double>& x, int steps) {
  std::vector<double> y = vector_of(map.rows()), g, z = vector_of(map.cols()), next;
  double best = 0;
  const double p_dual = p == 1 ? kInf : (p == kInf ? 1 : p / (p - 1));
  std::vector<double> at = x;
  for (int step = 0; step < steps; ++step) {
    map.apply(false, at.data(), y.data());
    const double quotient = pnorm_up(y, q) / pnorm_up(at, p);
    if (!(quotient > best * (1 + 1e-9))) break;
    best = quotient;
    x = at;
    if (!dual_vector(q, y, g)) break;
    map.apply(true, g.data(), z.data());
    if (!dual_vector(p_dual, z, next)) break;
    at = next;
  }
}

}  // namespace

double quotient_down(const NormMap& map, const NormPair& norms, std::span<const double> x) {
  const double top = max_abs(x);
  if (!(top > 0) || !(top < kInf)) return 0;
  std::vector<double> unit(x.begin(), x.end()), image = vector_of(map.rows());
  for (double& value : unit) value /= top;
  map.image_down(unit.data(), image.data());
  const double value = div_down(pnorm_down(image, norms.out.p()), pnorm_up(unit, norms.in.p()));
  return value > 0 ? value : 0;
}

double general_lower(const NormMap& map, double p, double q, const std::vector<double>& singular) {
  const NormPair norms{Norm(p), Norm(q)};
  std::vector<std::vector<double>> starts;
  if (!singular.empty()) starts.push_back(singular);
  starts.push_back(vector_of(map.cols(), 1));
  const std::vector<double> columns = map.norms(Lines::kColumns, Toward::kDown, q);
  starts.push_back(vector_of(map.cols()));
  starts.back()[std::max_element(columns.begin(), columns.end()) - columns.begin()] = 1;
  const std::vector<double> rows = map.norms(Lines::kRows, Toward::kDown, dual_exponent(p).hi);
  std::vector<double> unit = vector_of(map.rows()), image = vector_of(map.cols()), start;
  unit[std::max_element(rows.begin(), rows.end()) - rows.begin()] = 1;
  map.apply(true, unit.data(), image.data());
  if (dual_vector(dual_exponent(p).lo, image, start)) starts.push_back(start);
  // The climb stops at local maxima; small maps can afford more starts.
  std::uint64_t bits = 0x9e3779b97f4a7c15;
  const bool small = map.rows() * map.cols() <= 4096;
  for (int extra = 0; small && extra < 8; ++extra) {
    starts.push_back(vector_of(map.cols()));
    for (double& value : starts.back()) {
      bits = bits * 6364136223846793005 + 1442695040888963407;
      value = static_cast<double>(bits >> 12) * 0x1p-51 - 1;
    }
  }
  double best = std::max(*std::max_element(columns.begin(), columns.end()),
                         *std::max_element(rows.begin(), rows.end()));
  for (std::vector<double>& x : starts) {
    climb(map, p, q, x, small ? 40 : 10);
    best = std::max(best, quotient_down(map, norms, x));
  }
  return best;
}

}  // namespace lipscope
