// SPDX-License-Identifier: Apache-2.0
#include "linalg/conv/padded_conv_norm.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "base/interval.h"
#include "base/rounding.h"
#include "linalg/conv/padded_conv_norm_map.h"
#include "linalg/norm/norm_ways.h"

namespace lipscope {
namespace {

constexpr Index kMaxMerged = Index{1} << 26;  // weights of merged taps

PaddedConv one_group(const PaddedConv& map) {
  PaddedConv one = map;
  one.conv.batch = one.conv.groups = 1;
  one.conv.in_channels = map.conv.in_channels / map.conv.groups;
  one.conv.out_channels = map.conv.out_channels / map.conv.groups;
  return one;
}

NormBracket group_bracket(const PaddedMap& map, const NormPair& norms, const NormEffort& effort) {
  if (map.zero()) return {0, 0, "zero map"};
  const bool spectral = norms.in.p() == 2 && norms.out.p() == 2;
  if (spectral && map.rows() > 1 && map.cols() > 1 && map.covers_torus()) {
    NormWays ways(effort);
    double lower = 0;
    ways.consider("Fourier blocks of the torus [norms-12]", [&](const NormEffort& e) {
      const TorusBound bound = map.torus_bound(e);
      lower = bound.lower;
      return bound.upper;
    });
    if (const SpectralUpper best = ways.take(); best.upper < kInf)
      return {lower, best.upper, best.how};
  }
  return bracket_of(map, norms, effort);
}

// Upper bounds by row and column sums, for 2->2; otherwise +inf.
std::vector<double> rough_uppers(const std::vector<std::unique_ptr<PaddedMap>>& groups,
                                 const NormPair& norms) {
  std::vector<double> out(groups.size(), kInf);
  if (groups.size() == 1 || norms.in.p() != 2 || norms.out.p() != 2) return out;
  for (std::size_t g = 0; g < out.size(); ++g) {
    out[g] = gain_mul_up(sqrt_up(groups[g]->largest_norm(Lines::kColumns, Toward::kUp, 1)),
                         sqrt_up(groups[g]->largest_norm(Lines::kRows, Toward::kUp, 1)));
  }
  return out;
}

// Without a table of merged taps.
NormBracket factored_bracket(const PaddedConv& map, const MergedTaps& taps, const double* weights,
                             const double* radius, const NormPair& norms,
                             const NormEffort& effort) {
  NormEffort upper_only = effort;
  upper_only.want_lower = false;
  const NormBracket inner = conv_norm(valid_shape(map.conv), weights, radius, norms, upper_only);
  const double padding = pow_up(taps.copies(), reciprocal(norms.in.p()).hi);
  return {0, gain_mul_up(padding, inner.upper), "padding times convolution [norms-14]"};
}

}  // namespace

NormBracket padded_conv_norm(const PaddedConv& map, const double* weights, const double* radius,
                             const NormPair& norms, const NormEffort& effort) {
  const ConvShape& shape = map.conv;
  if (shape.groups <= 0 || shape.w_size() == 0 || shape.input_size() == 0 ||
      shape.output_size() == 0) {
    return {0, 0, "empty map"};
  }
  for (std::size_t a = 0; a < 3; ++a) {
    LIPSCOPE_CHECK(shape.stride[a] > 0 && shape.dilation[a] > 0);
  }
  const ScaledWeights scaled({weights, static_cast<std::size_t>(shape.w_size())}, radius);
  if (!scaled.usable()) return {0, kInf, "not finite"};
  if (scaled.zero()) return {0, 0, "zero map"};
  const PaddedConv one = one_group(map);
  const MergedTaps taps(one);
  if (taps.count() > kMaxMerged / (one.conv.in_channels * one.conv.out_channels)) {
    return factored_bracket(map, taps, weights, radius, norms, effort);
  }
  // Groups act on separate channels: a block-diagonal map [norms-2]. In 2->2 a group whose rough
  // bound is below the maximum so far cannot change it.
  std::vector<std::unique_ptr<PaddedMap>> groups;
  for (Index g = 0; g < shape.groups; ++g) {
    const Index at = g * one.conv.w_size();
    groups.push_back(std::make_unique<PaddedMap>(
        one, scaled.weights() + at, scaled.radius() == nullptr ? nullptr : scaled.radius() + at));
  }
  const std::vector<double> rough = rough_uppers(groups, norms);
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return rough[x] > rough[y]; });
  std::vector<double> lower(groups.size()), upper(groups.size());
  NormBracket out{0, 0, "zero map"};
  for (const std::size_t g : order) {
    if (rough[g] <= out.upper) continue;
    const NormBracket b = group_bracket(*groups[g], norms, effort);
    if (!(b.upper <= out.upper)) out.how = b.how;
    out.upper = max_nan(out.upper, b.upper);
    lower[g] = b.lower;
    upper[g] = b.upper;
  }
  out.lower = diagonal_norm_down(lower, norms);
  out.upper = diagonal_norm_up(upper, norms);
  return scale_back(out, scaled.exponent());
}

}  // namespace lipscope
