// SPDX-License-Identifier: Apache-2.0
#include "softmax/secular.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace lipscope {
namespace {

using Pack = double __attribute__((vector_size(16)));

Pack load(const double* p) {
  Pack v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
double total(const Pack& a, const Pack& b) { return (a[0] + b[0]) + (a[1] + b[1]); }

// Longer rows are halved, so that a term passes through few additions.
constexpr std::size_t kBlock = 256;

// Additions a term passes through in a sum over n entries: accumulators of a block, their merging,
// the rest of the block, halvings.
std::size_t depth_of(std::size_t n) {
  std::size_t halvings = 0;
  while (n > kBlock) {
    n -= n / 2;
    ++halvings;
  }
  return n / 4 + 2 + 3 + halvings;
}

// Sums over the tail.
struct Moments {
  double one = 0, two = 0, top = 0;  // of w and w^2, and the largest
};
Moments moments(const double* w, std::size_t n) {
  if (n > kBlock) {
    const Moments a = moments(w, n / 2), b = moments(w + n / 2, n - n / 2);
    return {a.one + b.one, a.two + b.two, std::max(a.top, b.top)};
  }
  Pack a0{}, a1{}, b0{}, b1{}, m0{}, m1{};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const Pack x = load(w + i), y = load(w + i + 2);
    a0 += x, a1 += y;
    b0 += x * x, b1 += y * y;
    m0 = x > m0 ? x : m0, m1 = y > m1 ? y : m1;
  }
  Moments sum{total(a0, a1), total(b0, b1), std::max({m0[0], m0[1], m1[0], m1[1]})};
  for (; i < n; ++i) {
    sum.one += w[i];
    sum.two += w[i] * w[i];
    sum.top = std::max(sum.top, w[i]);
  }
  return sum;
}

// Sums of u, u^2 and u^3 for u = w / (nu - w).
struct Powers {
  double one = 0, two = 0, three = 0;
};
Powers powers(const double* w, std::size_t n, double nu) {
  if (n > kBlock) {
    const Powers a = powers(w, n / 2, nu), b = powers(w + n / 2, n - n / 2, nu);
    return {a.one + b.one, a.two + b.two, a.three + b.three};
  }
  Pack a0{}, a1{}, b0{}, b1{}, c0{}, c1{};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const Pack x = load(w + i), y = load(w + i + 2);
    const Pack u = x / (nu - x), v = y / (nu - y);
    const Pack uu = u * u, vv = v * v;
    a0 += u, a1 += v;
    b0 += uu, b1 += vv;
    c0 += uu * u, c1 += vv * v;
  }
  Powers sum{total(a0, a1), total(b0, b1), total(c0, c1)};
  for (; i < n; ++i) {
    const double u = w[i] / (nu - w[i]);
    sum.one += u;
    sum.two += u * u;
    sum.three += u * u * u;
  }
  return sum;
}

// Zero of top / (top - x) = c + q / (x - p), whose right side has the value and the first two
// derivatives of the tail's sum at nu.
double next_point(const Powers& s, double nu, double top) {
  const double first = s.one + s.two, second = first + s.two + s.three;
  const double gap = nu * first / second, q = first * gap * gap / nu;
  const double c = std::max(0.0, s.one - first * first / second);
  const double pole = nu - gap, reach = top - pole;
  const double b = top + q - c * reach, root = std::sqrt(b * b + 4 * c * q * reach);
  return pole + (b >= 0 ? 2 * q * reach / (b + root) : (root - b) / (2 * c));
}

}  // namespace

PositiveSum sum_positive(std::span<const double> x) {
  return {moments(x.data(), x.size()).one, depth_of(x.size())};
}

Interval top_eigenvalue(double top, std::span<const double> tail) {
  if (tail.empty()) return point(0);
  const std::size_t n = tail.size();
  const Moments sums = moments(tail.data(), n);
  const double second = sums.top;
  LIPSCOPE_CHECK(top <= 1 && second <= top && second > 0);
  // Plain operations with margins: each is within u of its exact value, relatively.
  constexpr double u = kUnitRoundoff;
  constexpr double kMargin = 1 + 0x1p-30;  // where a factor need not be sharp
  const double depth = static_cast<double>(depth_of(n)), sum_error = 1.001 * (depth + 2) * u;
  const Interval z{next_down(top + sums.one * (1 - sum_error)),
                   next_up(top + sums.one * (1 + sum_error))};
  const auto over_total = [&](double from, double to) {
    return Interval{next_down(from / z.hi), next_up(to / z.lo)};
  };
  if (second == top) return over_total(top, top);
  // The eigenvalue is nu / z with h(nu) = top / (top - nu) - sum w / (nu - w) = 0. A computed term
  // of the sum is off by 2 u, the first part by 2 u; one more for applying the bound.
  const double tail_error = 1.001 * (depth + 4) * u, first_error = 4 * u;
  const double enough = 2 * (tail_error + first_error);
  double from = second, to = top;  // enclose the zero
  double nu = top * ((sums.one + second) / (top + sums.one));
  constexpr int kMaxSteps = 100;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (!(nu > from && nu < to)) nu = 0.5 * from + 0.5 * to;
    if (!(nu > second && nu < top)) break;
    const Powers s = powers(tail.data(), n, nu);
    const double first = top / (top - nu);
    // h rises, and the sum is convex: one evaluation bounds the zero on both sides [softmax-6].
    const double above = first * (1 + first_error) - s.one * (1 - tail_error);
    const double below = s.one * (1 + tail_error) - first * (1 - first_error);
    if (above <= 0) {
      from = std::max(from, nu);
    } else {
      from = std::max(from, next_down(nu - above * nu / (s.one + s.two) * kMargin));
    }
    if (below <= 0) {
      to = std::min(to, nu);
    } else {
      to = std::min(to, next_up(nu + below * std::min(nu, top - nu) / first * kMargin));
    }
    if (to - from <= enough * nu) break;
    nu = next_point(s, nu, top);
  }
  return over_total(from, to);
}

}  // namespace lipscope
