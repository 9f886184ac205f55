// SPDX-License-Identifier: Apache-2.0
#include "machine/sum_rounding.h"

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

void SumTerms::clear() {
  sizes.clear();
  plus = minus = flushed = 0;
}

double sum_rounding(const SumTerms& terms, double unit) {
  if (terms.sizes.size() < 2) return terms.flushed;
  // Of a partial sum without rounding.
  const double most = add_up(std::max(terms.plus, terms.minus), terms.flushed);
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
  all = add_up(mul_up(all, kSumSlack), terms.flushed);
  small = add_up(mul_up(small, kSumSlack), terms.flushed);
  const double plain = mul_up(growth(terms.sizes.size() - 1, unit), all);
  const double share = mul_up(static_cast<double>(large), unit);
  if (!(share < 1)) return add_up(plain, terms.flushed);
  const double few = growth(terms.sizes.size() - large, unit);
  const double lost = add_up(mul_up(share, most), mul_up(small, add_up(1, mul_up(2, few))));
  return add_up(std::min(plain, div_up(lost, sub_down(1, share))), terms.flushed);
}

}  // namespace lipscope
