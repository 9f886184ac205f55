// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/reduce_bounds.h"

#include <algorithm>

#include "linalg/norm/operator_norm.h"
#include "ops/rows/row_bounds.h"

namespace lipscope {
namespace {

struct Sizes {
  std::vector<double> smallest, largest;  // absolute values
};
Sizes sizes(const Group& x) {
  Sizes s;
  for (std::size_t i = 0; i < x.size(); ++i) {
    s.smallest.push_back(mignitude(x[i]));
    s.largest.push_back(magnitude(x[i]));
  }
  return s;
}

// Largest dual norm of a gradient with |entry i| <= bound(i) where entry i moves.
template <class BoundOf>
double gradient_norm(const Group& x, Norm p, BoundOf&& bound) {
  std::vector<double> gradient;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x.moves(i)) gradient.push_back(bound(i));
  }
  return pnorm_up(gradient, dual_exponent_down(p));
}
Index moving(const Group& x) {
  Index count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) count += x.moves(i) ? 1 : 0;
  return count;
}

double extreme(std::span<const double> x, bool largest) {
  double result = largest ? -kInf : kInf;
  for (const double entry : x) result = largest ? max_nan(result, entry) : min_nan(result, entry);
  return result;
}

}  // namespace

Interval sum_range(const Group& x) { return {sum_down(x.lower), sum_up(x.upper)}; }
double sum_gain(const Group& x, Norm p) {
  return gradient_norm(x, p, [](std::size_t) { return 1.0; });
}

Interval mean_range(const Group& x) {
  return x.size() == 0 ? kEntire : sum_range(x) / static_cast<double>(x.size());
}
double mean_gain(const Group& x, Norm p) {
  return div_up(sum_gain(x, p), static_cast<double>(x.size()));
}

Interval l1_range(const Group& x) {
  const Sizes s = sizes(x);
  return {abs_sum_down(s.smallest), abs_sum_up(s.largest)};
}
double l1_gain(const Group& x, Norm p) { return sum_gain(x, p); }

Interval l2_range(const Group& x) {
  const Sizes s = sizes(x);
  return {norm2_down(s.smallest), norm2_up(s.largest)};
}
double l2_gain(const Group& x, Norm p) {
  const Sizes s = sizes(x);
  const double norm = norm2_down(s.smallest);
  const double local = gradient_norm(x, p, [&](std::size_t i) {
    const double size = std::max(norm, s.largest[i]);
    return size == kInf || size == 0 ? 1 : min_nan(1, div_up(s.largest[i], size));
  });
  return min_nan(local, norm_equivalence_up(moving(x), p, Norm(2)));
}

Interval sum_square_range(const Group& x) {
  const Sizes s = sizes(x);
  const bool bounded = extreme(s.largest, true) < kInf;
  return {std::max(0.0, dot_down(s.smallest, s.smallest)),
          bounded ? dot_up(s.largest, s.largest) : kInf};
}
double sum_square_gain(const Group& x, Norm p) {
  return gradient_norm(x, p, [&](std::size_t i) { return mul_up(2, magnitude(x[i])); });
}

Interval log_sum_range(const Group& x) { return x.size() == 0 ? kEntire : log(sum_range(x)); }
double log_sum_gain(const Group& x, Norm p) {
  const double sum = sum_down(x.lower);
  return sum > 0 ? div_up(sum_gain(x, p), sum) : kInf;
}

Interval log_sum_exp_range(const Group& x) {
  const double low = extreme(x.lower, true), high = extreme(x.upper, true);
  if (x.size() == 0) return kEntire;
  std::vector<double> terms;
  Interval range = kEntire;
  if (low > -kInf) {
    for (const double entry : x.lower) terms.push_back(exp_down(sub_down(entry, low)));
    range.lo = add_down(low, log_down(std::max(1.0, sum_down(terms))));
  }
  if (high < kInf) {
    terms.clear();
    for (const double entry : x.upper) terms.push_back(exp_up(sub_up(entry, high)));
    range.hi = add_up(high, log_up(sum_up(terms)));
  }
  return range;
}
double log_sum_exp_gain(const Group& x, Norm p) {
  const SoftmaxTails tails(x);
  return min_nan(1, gradient_norm(x, p, [&](std::size_t i) { return tails.share(i).hi; }));
}

Interval product_range(const Group& x) {
  Interval product = point(1);
  for (std::size_t i = 0; i < x.size(); ++i) product *= x[i];
  return product;
}
double product_gain(const Group& x, Norm p) {
  const std::size_t n = x.size();
  std::vector<double> after(n + 1, 1.0);
  for (std::size_t i = n; i-- > 0;) after[i] = gain_mul_up(after[i + 1], magnitude(x[i]));
  std::vector<double> others(n);
  double before = 1;
  for (std::size_t i = 0; i < n; ++i) {
    others[i] = gain_mul_up(before, after[i + 1]);
    before = gain_mul_up(before, magnitude(x[i]));
  }
  return gradient_norm(x, p, [&](std::size_t i) { return others[i]; });
}

Interval max_range(const Group& x) {
  return x.size() == 0 ? kEntire : Interval{extreme(x.lower, true), extreme(x.upper, true)};
}
Interval min_range(const Group& x) {
  return x.size() == 0 ? kEntire : Interval{extreme(x.lower, false), extreme(x.upper, false)};
}
// The entry that moves has to be able to win.
double max_gain(const Group& x, Norm) {
  const double rival = extreme(x.lower, true);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x.moves(i) && x.upper[i] > rival) return 1;
  }
  return 0;
}
double min_gain(const Group& x, Norm) {
  const double rival = extreme(x.upper, false);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x.moves(i) && x.lower[i] < rival) return 1;
  }
  return 0;
}

}  // namespace lipscope
