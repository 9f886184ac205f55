// SPDX-License-Identifier: Apache-2.0
#include "robust/sum_rounding.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {
namespace {

constexpr double kSumSlack = 1 + 0x1p-20;  // for the rounding of sums of positive numbers here

// (1 + u)^n - 1.
double growth(std::size_t n, double unit) {
  double power = 1, base = add_up(1, unit);
  for (; n > 0; n /= 2, base = mul_up(base, base)) {
    if (n % 2 == 1) power = mul_up(power, base);
  }
  return sub_up(power, 1);
}

}  // namespace

double sum_rounding(const SumTerms& terms, double unit) {
  if (terms.sizes.size() < 2) return 0;
  const double most = std::max(terms.plus, terms.minus);  // of a partial sum without rounding
  // Adding a small term moves a sum by at most that term; large ones cost a rounding each.
  const double threshold = unit * most;
  double all = 0, small = 0;
  std::size_t large = 0;
  for (const double size : terms.sizes) {
    all += size;
    if (size > threshold) {
      ++large;
    } else {
      small += size;
    }
  }
  all = mul_up(all, kSumSlack);
  small = mul_up(small, kSumSlack);
  const double plain = mul_up(growth(terms.sizes.size() - 1, unit), all);
  const double share = mul_up(static_cast<double>(large), unit);
  if (!(share < 1)) return plain;
  const double few = growth(terms.sizes.size() - large, unit);
  const double lost = add_up(mul_up(share, most), mul_up(small, add_up(1, mul_up(2, few))));
  return std::min(plain, div_up(lost, sub_down(1, share)));
}

}  // namespace lipscope
