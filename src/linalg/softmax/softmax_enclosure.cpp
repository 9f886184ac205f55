// SPDX-License-Identifier: Apache-2.0
#include "linalg/softmax/softmax_enclosure.h"

#include <fmt/format.h>

#include <cmath>

#include "base/interval.h"
#include "linalg/softmax/softmax_exp.h"
#include "linalg/softmax/softmax_kernel.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using softmax_detail::RowSum;

// Relative errors of one exponential, [softmax-kernel-3] and [softmax-kernel-6].
constexpr double kVectorTerm = 3.3 * kUnitRoundoff, kPlainTerm = 5.1 * kUnitRoundoff;
// Absolute errors of terms that underflow, and of everything else that does.
constexpr double kLost = 0x1p-1021;

struct Row {
  std::span<const double> x;
  double lambda;
  double top;  // where lambda x is largest
  Index ties;  // entries with lambda x = +inf

  [[nodiscard]] Index size() const { return static_cast<Index>(x.size()); }
};

Row examine(std::span<const double> x, double lambda) {
  if (!std::isfinite(lambda) || lambda == 0) {
    throw Error(ErrorCode::kUsage,
                fmt::format("softmax: lambda must be finite and not 0, not {}", lambda));
  }
  Row row{x, lambda, lambda < 0 ? kInf : -kInf, 0};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      throw Error(ErrorCode::kUsage, fmt::format("softmax: NaN at row 0, column {}", i));
    }
    if (lambda < 0 ? x[i] < row.top : x[i] > row.top) row.top = x[i];
    row.ties += std::isinf(x[i]) && (x[i] > 0) == (lambda > 0);
  }
  return row;
}

// (2 n u)^2 up: what compensation leaves of the rounding of a sum, and of its reciprocal.
double second_order_up(Index n) {
  const double first = mul_up(2 * kUnitRoundoff, static_cast<double>(n));
  return mul_up(first, first);
}

Interval log_sum(const Row& row) {
  if (std::isinf(row.top)) return row.ties > 0 ? point(kInf) : point(-kInf);
  const Interval peak{mul_down(row.lambda, row.top), mul_up(row.lambda, row.top)};
  if (row.size() == 1) return peak;

  RowSum sum;
  const bool vector = softmax_detail::vector_sum(row.x.data(), row.size(), row.lambda, sum);
  if (!vector) sum = softmax_detail::plain_sum(row.x.data(), row.size(), row.lambda, row.top);
  const double relative =
      add_up(vector ? kVectorTerm : kPlainTerm,
             add_up(second_order_up(row.size()), mul_up(static_cast<double>(row.size()), kLost)));
  const Interval total =
      (point(sum.hi) + point(sum.lo)) / Interval{sub_down(1, relative), add_up(1, relative)};
  Interval result;
  if (vector) {
    // exponent * ln 2 in three parts, the first two exact.
    using softmax_detail::kLn2Hi, softmax_detail::kLn2Lo;
    const double whole = sum.exponent * kLn2Hi;
    const double part = std::fma(sum.exponent, kLn2Hi, -whole);
    const Interval rest = sum.exponent * Interval{kLn2Lo, next_up(kLn2Lo)};
    result = point(whole) + ((point(part) + rest) + log(total));
  } else {
    result = peak + log(total);
  }
  // The sum is at least its largest term.
  return {max_nan(result.lo, peak.lo), max_nan(result.hi, peak.lo)};
}

std::vector<Interval> shares(const Row& row) {
  std::vector<Interval> out(row.x.size());
  if (std::isinf(row.top)) {
    const auto count = static_cast<double>(row.ties);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool wins = std::isinf(row.x[i]) && (row.x[i] > 0) == (row.lambda > 0);
      out[i] = wins ? point(1) / point(count) : point(0);
    }
    return out;
  }
  if (row.size() == 1) return {point(1)};

  std::vector<double> s(row.x.size());
  const softmax_detail::Rows<double> job{.rows = 1,
                                         .length = row.size(),
                                         .x_stride = row.size(),
                                         .y_stride = row.size(),
                                         .x = row.x.data(),
                                         .y = s.data(),
                                         .lambda = row.lambda,
                                         .accurate = true};
  std::vector<Index> left;
  softmax_detail::vector_rows(job, left);
  if (!left.empty()) softmax_detail::plain_row(job, 0);
  // Numerator, denominator and one rounding [softmax-kernel-5].
  const double term = left.empty() ? kVectorTerm : kPlainTerm;
  const double relative = add_up(
      add_up(2 * term, 1.1 * kUnitRoundoff),
      add_up(2 * second_order_up(row.size()), mul_up(static_cast<double>(row.size()), 2 * kLost)));
  // |s - share| <= relative * share bounds the share by s (1 + grow) and s (1 - relative).
  const double grow = div_up(relative, sub_down(1, relative));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::isinf(row.x[i])) {
      out[i] = point(0);
      continue;
    }
    // Above 2^-900 what was lost is below 2^-121 of the share, and in the 1.1 above.
    const double lost = s[i] < 0x1p-900 ? kLost : 0;
    out[i].lo = max_nan(0, sub_down(sub_down(s[i], mul_up(s[i], relative)), lost));
    out[i].hi = min_nan(1, add_up(add_up(s[i], mul_up(s[i], grow)), lost * 2));
  }
  return out;
}

}  // namespace

SoftmaxEnclosure softmax_enclosure(std::span<const double> row, double lambda) {
  const Row r = examine(row, lambda);
  return {shares(r), log_sum(r)};
}

Interval log_sum_exp_enclosure(std::span<const double> row, double lambda) {
  return log_sum(examine(row, lambda));
}

}  // namespace lipscope
