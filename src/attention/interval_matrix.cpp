// SPDX-License-Identifier: Apache-2.0
#include "attention/interval_matrix.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/parallel.h"
#include "linalg/norm/operator_norm.h"

namespace lipscope {
namespace {

constexpr double kSlack = 1 + 1e-9;  // sums of absolute values and of radii are rounded, too

}  // namespace

IntervalMatrix::IntervalMatrix(Index r, Index c, std::span<const double> exact) : rows(r), cols(c) {
  LIPSCOPE_CHECK(static_cast<Index>(exact.size()) == r * c);
  for (const double x : exact) entries.push_back(point(x));
}

CentredMatrix::CentredMatrix(const IntervalMatrix& a) : rows(a.rows), cols(a.cols) {
  middle.reserve(a.entries.size());
  radius.reserve(a.entries.size());
  for (const Interval& x : a.entries) {
    middle.push_back(midpoint(x));
    radius.push_back(radius_up(x));
  }
}

// Each entry in plain arithmetic, and what k products and sums in any order can be off
// [rounding-9]: gamma of the sum of absolute values, the products of radii, and 2^-1074 for each
// underflow.
IntervalMatrix operator*(const IntervalMatrix& a, const IntervalMatrix& b) {
  LIPSCOPE_CHECK(a.cols == b.rows);
  const CentredMatrix first(a), second(b);
  IntervalMatrix out(a.rows, b.cols);
  const auto terms = static_cast<std::size_t>(a.cols);
  const double gamma = gamma_up(terms + 2);
  const double lost = mul_up(static_cast<double>(4 * terms + 4), kMinSubnormal);
  parallel_for(a.rows, rows_at_once(a.cols * b.cols / 8), [&](Index from, Index to) {
    const auto width = static_cast<std::size_t>(b.cols);
    std::vector<double> sum(width), size(width), spread(width);
    for (Index i = from; i < to; ++i) {
      charge(2 * static_cast<double>(terms) * static_cast<double>(width));
      std::ranges::fill(sum, 0.0);
      std::ranges::fill(size, 0.0);
      std::ranges::fill(spread, 0.0);
      for (Index k = 0; k < a.cols; ++k) {
        const double w = first.middle[static_cast<std::size_t>(i * a.cols + k)];
        const double r = first.radius[static_cast<std::size_t>(i * a.cols + k)];
        const double* v = second.middle.data() + k * b.cols;
        const double* s = second.radius.data() + k * b.cols;
        for (std::size_t j = 0; j < width; ++j) {
          sum[j] += w * v[j];
          size[j] += std::fabs(w * v[j]);
          spread[j] += std::fabs(w) * s[j] + r * (std::fabs(v[j]) + s[j]);
        }
      }
      for (std::size_t j = 0; j < width; ++j) {
        const double off = add_up(mul_up(add_up(mul_up(gamma, size[j]), spread[j]), kSlack), lost);
        const bool known = std::isfinite(sum[j]) && std::isfinite(off);
        out(i, static_cast<Index>(j)) =
            known ? Interval{sub_down(sum[j], off), add_up(sum[j], off)} : kEntire;
      }
    }
  });
  return out;
}

IntervalMatrix transposed(const IntervalMatrix& a) {
  IntervalMatrix out(a.cols, a.rows);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) out(j, i) = a(i, j);
  }
  return out;
}

IntervalMatrix with_bias(IntervalMatrix a, std::span<const Interval> bias) {
  if (bias.empty()) return a;
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) a(i, j) += bias[static_cast<std::size_t>(j)];
  }
  return a;
}

std::vector<double> midpoints(std::span<const Interval> entries) {
  std::vector<double> middle;
  middle.reserve(entries.size());
  for (const Interval& x : entries) middle.push_back(midpoint(x));
  return middle;
}

double length_up(std::span<const Interval> x) {
  std::vector<double> sizes;
  sizes.reserve(x.size());
  for (const Interval& entry : x) sizes.push_back(magnitude(entry));
  return norm2_up(sizes);
}

double length_down(std::span<const Interval> x) {
  std::vector<double> sizes;
  sizes.reserve(x.size());
  for (const Interval& entry : x) sizes.push_back(mignitude(entry));
  return norm2_down(sizes);
}

double spectral_norm_up(const IntervalMatrix& a) { return spectral_norm_up(CentredMatrix(a)); }

double spectral_norm_up(const CentredMatrix& a) {
  const bool exact = std::ranges::all_of(a.radius, [](double r) { return r == 0; });
  const MatrixView view{a.rows, a.cols, a.middle.data(), exact ? nullptr : a.radius.data()};
  return matrix_norm(view, {Norm(2), Norm(2)}, {.want_lower = false}).upper;
}

}  // namespace lipscope
