// SPDX-License-Identifier: Apache-2.0
#include "linalg/conv/padded_conv_norm_sharp.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/interval.h"
#include "base/rounding.h"
#include "linalg/norm/definite.h"
#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

// XX' = high + low + low' + E with ||E||_2 <= error; high is exact [norms-13].
struct SplitGram {
  std::vector<double> high, low;
  double error = kInf;
};

// X + X', rounded.
std::vector<double> symmetric_part(Index n, const std::vector<double>& x) {
  std::vector<double> out(x.size());
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) out[i * n + j] = x[i * n + j] + x[j * n + i];
  }
  return out;
}

// Bits of the leading parts, so that sums of `depth` products of two of them are exact.
int leading_bits(Index depth) {
  return (53 - static_cast<int>(std::bit_width(static_cast<std::size_t>(depth)))) / 2;
}

SplitGram split_gram(Index n, Index depth, std::span<const double> x) {
  SplitGram out;
  const double top = max_abs(x);
  if (!(top > 0x1p-400 && top < 0x1p400)) return out;
  // Adding and subtracting 1.5 * 2^52 units rounds to a multiple of the unit; the rest is exact.
  const double unit = std::ldexp(1.0, std::ilogb(top) + 1 - leading_bits(depth));
  const double anchor = 0x1.8p52 * unit;
  std::vector<double> leading(x.size()), rest(x.size()), middle(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    leading[i] = (x[i] + anchor) - anchor;
    rest[i] = x[i] - leading[i];
    middle[i] = leading[i] + 0.5 * rest[i];
  }
  const auto area = static_cast<std::size_t>(n * n);
  out.high.resize(area);
  out.low.resize(area);
  syrk(Triangle::kUpper, n, depth, 1.0, {leading.data(), depth}, 0.0, out.high.data(), n);
  copy_upper_to_lower(n, out.high.data());
  gemm(n, n, depth, 1.0, {middle.data(), depth}, {rest.data(), depth, true}, 0.0, out.low.data(),
       n);
  const double gamma = gamma_up(static_cast<std::size_t>(depth + 4));
  const double underflow = static_cast<double>(n) * static_cast<double>(depth) * 0x1p-1070;
  out.error =
      add_up(mul_up(mul_up(2, gamma), mul_up(mul_up(2, norm2_up(x)), norm2_up(rest))), underflow);
  return out;
}

// Largest row sum of |shift I - A - B| for the two symmetric sums, without their errors. Every
// operation is wrong by at most u times its result; the sums of sizes are inflated at the end.
double residual_up(Index n, double shift, const SplitGram& a, const SplitGram& b) {
  std::vector<double> sums(static_cast<std::size_t>(n));
  const std::vector<double> a_low = symmetric_part(n, a.low), b_low = symmetric_part(n, b.low);
  for (Index i = 0; i < n; ++i) {
    double sum = 0;
    for (Index j = 0; j < n; ++j) {
      const Index ij = i * n + j;
      const double first = (i == j ? shift : 0.0) - a.high[ij], high = first - b.high[ij];
      const double low = a_low[ij] + b_low[ij], value = high - low;
      const double rounded = (i == j ? std::fabs(first) : 0.0) + std::fabs(high) +
                             std::fabs(a_low[ij]) + std::fabs(b_low[ij]) + std::fabs(low) +
                             std::fabs(value);
      sum += std::fabs(value) + kUnitRoundoff * rounded;
    }
    sums[i] = sum;
  }
  double most = 0;
  for (const double sum : sums) most = max_nan(most, sum);
  const double gamma = gamma_up(static_cast<std::size_t>(n + 16));
  const double underflow = static_cast<double>(n) * kMinSubnormal;
  return div_up(add_up(most, underflow), sub_down(1, gamma));
}

}  // namespace

double sharp_top_up(Index n, Index depth, std::span<const double> x, double shift) {
  if (!(shift > 0) || !std::isfinite(shift)) return kInf;
  const SplitGram gram = split_gram(n, depth, x);
  if (!(gram.error < kInf)) return kInf;
  std::vector<double> factor(gram.high.size());
  // Row sums of XX' itself: all there is to do if it is nearly a multiple of the identity.
  const double sums = add_up(residual_up(n, 0, gram, {factor, factor, 0}), gram.error);
  if (sums <= shift) return sums;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j <= i; ++j) {
      const Index ij = i * n + j, ji = j * n + i;
      factor[ij] = (i == j ? shift : 0.0) - gram.high[ij] - (gram.low[ij] + gram.low[ji]);
    }
  }
  // Whatever is in the lower triangle now: the residual decides.
  if (!(definite_deficit_up(n, factor.data()) < kInf)) return kInf;
  const SplitGram square = split_gram(n, n, factor);
  const double residual = residual_up(n, shift, gram, square);
  const double bound = add_up(add_up(shift, residual), add_up(gram.error, square.error));
  return bound == bound ? bound : kInf;
}

double sharp_quotient_down(Index rows, Index cols, std::span<const double> a,
                           std::span<const double> x) {
  std::vector<double> image(static_cast<std::size_t>(rows)), terms(2 * x.size());
  const double underflow = static_cast<double>(2 * cols) * kMinSubnormal;
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) {
      const double entry = a[static_cast<std::size_t>(i * cols + j)];
      terms[2 * j] = entry * x[j];
      terms[2 * j + 1] = std::fma(entry, x[j], -terms[2 * j]);
    }
    const double size = sub_down(mignitude({sum_down(terms), sum_up(terms)}), underflow);
    image[i] = size > 0 ? size : 0;
  }
  const double value = div_down(norm2_down(image), norm2_up(x));
  return value > 0 ? value : 0;
}

}  // namespace lipscope
