// SPDX-License-Identifier: Apache-2.0
#include "softmax/box.h"

#include <algorithm>
#include <cmath>

#include "softmax/interpolation.h"
#include "softmax/norm.h"
#include "softmax/secular.h"

namespace lipscope {
namespace {

// lambda times the box.
struct Ends {
  std::vector<double> lower, upper;
};
Ends scaled(const LogitBox& box) {
  Ends ends;
  const std::size_t n = box.lower.size();
  ends.lower.resize(n);
  ends.upper.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Interval x{box.lower[i], box.upper[i]};
    const Interval y = box.lambda == 1 ? x : box.lambda * x;
    ends.lower[i] = is_nan(y) ? -kInf : y.lo;
    ends.upper[i] = is_nan(y) ? kInf : y.hi;
  }
  return ends;
}

// Sum of all terms but the i-th, for every i, without subtractions.
template <double (*kAdd)(double, double)>
std::vector<double> sums_of_others(std::span<const double> terms) {
  std::vector<double> result(terms.size());
  double after = 0, before = 0;
  for (std::size_t i = terms.size(); i-- > 0;) {
    result[i] = after;
    after = kAdd(after, terms[i]);
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    result[i] = kAdd(before, result[i]);
    before = kAdd(before, terms[i]);
  }
  return result;
}

// The largest s (1 - s) for s in a range; it grows with s, or with 1 - s, up to 1/2.
double variance_up(const ShareRange& r) {
  if (r.share.lo <= 0.5 && r.share.hi >= 0.5) return 0.25;
  const double smaller = r.share.hi < 0.5 ? r.share.hi : r.rest.hi;
  return min_nan(0.25, mul_up(smaller, sub_up(1, smaller)));
}

// The largest t (1 - t + min(t, 1 - t, rival)) for t in a range: it rises to a peak and falls
// [softmax-13].
double pair_bound_up(const ShareRange& r, double rival) {
  const auto at = [&](double t, double rest) {  // t from above, 1 - t from above
    return mul_up(t, min_nan(1, min_nan(add_up(rest, rival), 2 * rest)));
  };
  Interval peak = point(0.5);
  double top = 0.5;
  if (rival <= 0.5) {
    const Interval flat = (point(1) + rival) / 2, steep = 1 - point(rival);
    peak = min(flat, steep);
    if (flat.lo > steep.hi) {
      top = mul_up(2 * rival, sub_up(1, rival));
    } else {
      top = min_nan(0.5, sqr(flat).hi);
    }
  }
  if (r.share.hi < peak.lo) return at(r.share.hi, sub_up(1, r.share.hi));
  if (r.share.lo > peak.hi) {
    if (sub_down(1, r.rest.hi) >= peak.hi) return at(sub_up(1, r.rest.hi), r.rest.hi);
    return at(r.share.lo, sub_up(1, r.share.lo));
  }
  return top;
}

// Every s_i s_j is at most the product of the upper ends: their matrix dominates all others.
double dominating_norm_up(const std::vector<ShareRange>& ranges) {
  std::vector<double> ends;
  for (const ShareRange& r : ranges) ends.push_back(r.share.hi);
  const double sum = sum_up(ends);
  if (!(sum < 1.5)) return kInf;  // of no use
  const SoftmaxRow row = SoftmaxRow::from_weights(ends);
  const double norm = add_up(top_eigenvalue(row.top(), row.tail()).hi, 4 * row.lost());
  return mul_up(mul_up(sum, sum), norm);
}

}  // namespace

std::vector<ShareRange> softmax_ranges(const LogitBox& box) {
  const std::size_t n = box.lower.size();
  const Ends ends = scaled(box);
  // A finite reference for each end; terms are at most 1 except where the end is infinite.
  double low = -kInf, high = -kInf;
  for (std::size_t i = 0; i < n; ++i) {
    low = std::max(low, ends.lower[i]);
    if (ends.upper[i] < kInf) high = std::max(high, ends.upper[i]);
  }
  if (low == -kInf) low = 0;
  if (high == -kInf) high = 0;
  std::vector<double> smallest(n), largest(n);
  for (std::size_t i = 0; i < n; ++i) {
    smallest[i] = exp_down(sub_down(ends.lower[i], low));
    largest[i] = exp_up(sub_up(ends.upper[i], high));
  }
  const std::vector<double> others_down = sums_of_others<add_down>(smallest);
  const std::vector<double> others_up = sums_of_others<add_up>(largest);
  std::vector<ShareRange> result;
  result.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    // The sum of exp(x_j - x_i) over the others.
    const double from = gain_mul_down(others_down[i], exp_down(sub_down(low, ends.upper[i])));
    const double to = gain_mul_up(others_up[i], exp_up(sub_up(high, ends.lower[i])));
    const double rest_up = to == kInf ? 1 : min_nan(1, div_up(to, add_down(1, to)));
    const double rest_down = from == kInf ? 1 : div_down(from, add_up(1, from));
    result.push_back({{div_down(1, add_up(1, to)), div_up(1, add_down(1, from))},
                      {std::max(0.0, rest_down), rest_up}});
  }
  return result;
}

Interval softmax_functional_range(const LogitBox& box, std::span<const double> v) {
  const std::size_t n = v.size();
  if (n == 0) return point(0);
  Interval hull{*std::min_element(v.begin(), v.end()), *std::max_element(v.begin(), v.end())};
  if (hull.lo == hull.hi) return hull;
  const Ends ends = scaled(box);
  double high = -kInf;
  for (const double x : ends.upper) high = std::max(high, x);
  if (!std::isfinite(high)) return hull;
  // Weights of each entry, smallest and largest.
  std::vector<Interval> w(n);
  for (std::size_t i = 0; i < n; ++i)
    w[i] = {exp_down(sub_down(ends.lower[i], high)), exp_up(sub_up(ends.upper[i], high))};
  const auto largest_of = [&](double sign, double reach) {
    const auto value = [&](std::size_t i) { return sign * v[i]; };
    // The quotient of the best weights for t is the next t.
    double t = sign > 0 ? hull.lo : -hull.hi;
    for (int step = 0; step < 50; ++step) {
      double above = 0, below = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double weight = value(i) > t ? w[i].hi : w[i].lo;
        above += weight * (value(i) - t);
        below += weight;
      }
      if (!(below > 0) || !(above > 0)) break;
      const double next = t + above / below;
      if (!(next > t)) break;
      t = next;
    }
    // Certified if no choice of weights gives more than t.
    const double scale = std::max(std::fabs(hull.lo), std::fabs(hull.hi));
    double slack = 0;
    for (int step = 0; step < 200; ++step) {
      const double candidate = std::min(reach, t + slack);
      if (candidate >= reach) return reach;
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double gap = sub_up(value(i), candidate);
        sum = add_up(sum, mul_up(gap > 0 ? w[i].hi : w[i].lo, gap));
      }
      if (sum <= 0) return candidate;
      slack = slack == 0 ? 0x1p-53 * scale : 2 * slack;
    }
    return reach;
  };
  return {-largest_of(-1, -hull.lo), largest_of(1, hull.hi)};
}

double softmax_box_norm_up(const LogitBox& box, const NormPair& norms) {
  const std::size_t n = box.lower.size();
  if (n < 2) return 0;
  const std::vector<ShareRange> ranges = softmax_ranges(box);
  double variance = 0, spectral = 0, cut = 1, first = 0, second = 0;
  for (const ShareRange& r : ranges) {
    variance = std::max(variance, variance_up(r));
    if (r.share.lo >= 0.5) cut = 4 * variance_up(r);
    second = std::max(second, std::min(first, r.share.hi));
    first = std::max(first, r.share.hi);
  }
  for (const ShareRange& r : ranges) {
    spectral = std::max(spectral, pair_bound_up(r, r.share.hi == first ? second : first));
  }
  spectral = std::min(spectral, dominating_norm_up(ranges));
  const double one = 2 * variance;
  const double norm = interpolated_up(
      {.variance = variance, .one = one, .two = std::min(spectral, one), .cut = std::min(1.0, cut)},
      norms);
  const double lambda = std::fabs(box.lambda);
  return min_nan(mul_up(norm, lambda), softmax_global_norm(norms, 2, lambda).hi);
}

}  // namespace lipscope
