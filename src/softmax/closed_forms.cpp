// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "softmax/norm_parts.h"

namespace lipscope::softmax_parts {
namespace {

// Rows up to this length have every subset tried.
constexpr std::size_t kEnumerated = 12;

// |sum of the weights with the signs found by giving each to the smaller side|, rounded up.
double greedy_difference_up(std::span<const double> weights) {
  std::vector<double> sorted(weights.begin(), weights.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  double balance = 0;
  for (double& w : sorted) {
    if (balance > 0) w = -w;
    balance += w;
  }
  return std::max(std::fabs(sum_up(sorted)), std::fabs(sum_down(sorted)));
}

// Smallest |sum of signed weights| over all signs.
Interval smallest_difference(std::span<const double> weights) {
  double best = kInf, sum = 0;
  for (const double w : weights) sum += w;
  std::vector<bool> minus(weights.size());
  const double size = sum;
  for (std::size_t step = 1; step < std::size_t{1} << (weights.size() - 1); ++step) {
    best = std::min(best, std::fabs(sum));
    std::size_t flip = 0;  // Gray code
    while (((step >> flip) & 1) == 0) ++flip;
    sum += minus[flip] ? 2 * weights[flip] : -2 * weights[flip];
    minus[flip] = !minus[flip];
  }
  best = std::min(best, std::fabs(sum));
  const double error = size * 0x1p-40;  // at most 2^12 additions of numbers up to `size`
  return {std::max(0.0, best - error), best + error};
}

}  // namespace

Interval largest_variance(const SoftmaxRow& row) {
  if (row.weights().size() < 2) return point(0);
  const Interval v = (point(row.top()) / row.total()) * (row.rest() / row.total());
  return {std::min(v.lo, 0.25), std::min(v.hi, 0.25)};
}

double complex_cut_norm_up(const SoftmaxRow& row) {
  const double four = 4 * largest_variance(row).hi;
  return row.top() >= row.rest().hi ? std::min(1.0, four) : 1;
}

Interval cut_norm(const SoftmaxRow& row) {
  const Interval four = 4 * largest_variance(row);
  if (row.weights().size() < 2 || row.top() >= row.rest().hi)
    return {four.lo, std::min(1.0, four.hi)};
  Interval difference{0, greedy_difference_up(row.weights())};
  if (row.weights().size() <= kEnumerated) {
    const Interval all = smallest_difference(row.weights());
    difference = {all.lo, std::min(all.hi, difference.hi)};
  }
  const Interval value = 1 - sqr(difference / row.total());
  return {std::max({0.0, value.lo, four.lo}), std::min(1.0, value.hi)};
}

Interval column_norm(const SoftmaxRow& row, const Interval& q) {
  const std::span<const double> w = row.weights();
  if (w.size() < 2) return point(0);
  if (q.lo == kInf) return largest_variance(row);
  // Column i, times total^2: w_i (total - w_i) once and w_i w_j otherwise.
  Interval powers = point(0);
  const auto power = [&](const Interval& x) {
    return Interval{pow_down(x.lo, q.hi), pow_up(x.hi, q.lo)};
  };
  // Powers of numbers up to 1 fall with the exponent.
  for (const double x : row.tail()) powers += power(point(x) / row.total());
  const Interval top = power(point(row.top()) / row.total());
  Interval best = point(0);
  const Interval root{div_down(1, q.hi), div_up(1, q.lo)};
  for (std::size_t i = 0; i < w.size(); ++i) {
    const Interval share = point(w[i]) / row.total();
    const Interval rest = i == 0 ? row.rest() / row.total() : 1 - share;
    Interval others = powers;
    if (i > 0) {
      const Interval own = power(share);
      others = {std::max(0.0, add_down(sub_down(powers.lo, own.hi), top.lo)),
                add_up(sub_up(powers.hi, own.lo), top.hi)};
    }
    const Interval sum = others + power({std::min(rest.lo, 1.0), std::min(rest.hi, 1.0)});
    const Interval norm = share * pow(sum, root);
    best = max(best, norm);
  }
  return best;
}

}  // namespace lipscope::softmax_parts
