// SPDX-License-Identifier: Apache-2.0
#include "linalg/norm/operator_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/interval.h"
#include "base/rounding.h"
#include "linalg/norm/norm_map.h"

namespace lipscope {
namespace {

// Enclosure of r with 1/r = max(1/q - 1/p, 0).
Interval diagonal_exponent(const NormPair& norms) {
  const double p = norms.in.p(), q = norms.out.p();
  if (p <= q) return {kInf, kInf};
  if (p == kInf) return {q, q};
  const Interval r = point(p) / (point(p) - q) * q;
  return {std::max(r.lo, 1.0), std::max(r.hi, 1.0)};
}

constexpr NormBracket kUnknown{0, kInf, "not finite"};

// One group of a convolution as a convolution.
ConvShape group_shape(const ConvShape& shape) {
  ConvShape one = shape;
  one.batch = one.groups = 1;
  one.in_channels = shape.in_channels / shape.groups;
  one.out_channels = shape.out_channels / shape.groups;
  return one;
}

// Upper bound of ||A||_{p->q}, p <= q, from row and column sums: for sorting only the cheap way.
double rough_upper(const NormMap& map) {
  return gain_mul_up(sqrt_up(map.largest_norm(Lines::kColumns, Toward::kUp, 1)),
                     sqrt_up(map.largest_norm(Lines::kRows, Toward::kUp, 1)));
}

}  // namespace

double diagonal_norm_up(std::span<const double> magnitudes, const NormPair& norms) {
  return pnorm_up(magnitudes, diagonal_exponent(norms).lo);
}
double diagonal_norm_down(std::span<const double> magnitudes, const NormPair& norms) {
  return pnorm_down(magnitudes, diagonal_exponent(norms).hi);
}

double norm_equivalence_up(Index n, Norm from, Norm to) {
  if (n <= 0) return 0;
  if (to.p() >= from.p()) return 1;
  const Interval exponent = reciprocal(to.p()) - reciprocal(from.p());
  return pow_up(static_cast<double>(n), std::clamp(exponent.hi, 0.0, 1.0));
}

NormBracket matrix_norm(const MatrixView& matrix, const NormPair& norms, const NormEffort& effort) {
  if (matrix.rows == 0 || matrix.cols == 0) return {0, 0, "empty map"};
  const auto count = static_cast<std::size_t>(matrix.rows * matrix.cols);
  const ScaledWeights scaled({matrix.entries, count}, matrix.radius);
  if (!scaled.usable()) return kUnknown;
  if (scaled.zero()) return {0, 0, "zero map"};
  const auto map = dense_map(matrix.rows, matrix.cols, scaled.weights(), scaled.radius());
  return scale_back(bracket_of(*map, norms, effort), scaled.exponent());
}

NormBracket conv_norm(const ConvShape& shape, const double* weights, const double* radius,
                      const NormPair& norms, const NormEffort& effort) {
  if (shape.groups <= 0 || shape.w_size() == 0 || shape.input_size() == 0 ||
      shape.output_size() == 0) {
    return {0, 0, "empty map"};
  }
  const ConvShape one = group_shape(shape);
  const ScaledWeights scaled({weights, static_cast<std::size_t>(shape.w_size())}, radius);
  if (!scaled.usable()) return kUnknown;
  if (scaled.zero()) return {0, 0, "zero map"};
  std::vector<std::unique_ptr<NormMap>> maps;
  for (Index g = 0; g < shape.groups; ++g) {
    const Index at = g * one.w_size();
    maps.push_back(conv_map(one, scaled.weights() + at,
                            scaled.radius() == nullptr ? nullptr : scaled.radius() + at));
  }
  if (shape.groups == 1) {
    return scale_back(bracket_of(*maps[0], norms, effort), scaled.exponent());
  }
  // Groups act on separate channels: a block-diagonal map [norms-2]. In 2->2 a group whose rough
  // bound is below the maximum so far cannot change it.
  const bool spectral = norms.in.p() == 2 && norms.out.p() == 2;
  std::vector<double> rough(maps.size(), kInf), lower(maps.size()), upper(maps.size());
  std::vector<std::size_t> order(maps.size());
  std::iota(order.begin(), order.end(), 0);
  if (spectral) {
    for (std::size_t g = 0; g < maps.size(); ++g) rough[g] = rough_upper(*maps[g]);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return rough[a] > rough[b]; });
  }
  std::string_view how = "zero map";
  double most = 0;
  for (const std::size_t g : order) {
    if (rough[g] <= most) continue;
    const NormBracket b = bracket_of(*maps[g], norms, effort);
    lower[g] = b.lower;
    upper[g] = b.upper;
    if (!(b.upper <= most)) how = b.how;
    most = max_nan(most, b.upper);
  }
  return scale_back({diagonal_norm_down(lower, norms), diagonal_norm_up(upper, norms), how},
                    scaled.exponent());
}

}  // namespace lipscope
