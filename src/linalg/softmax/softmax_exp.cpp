// SPDX-License-Identifier: Apache-2.0
#include "linalg/softmax/softmax_exp.h"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace lipscope::softmax_detail {

template <class T>
bool ExpSetup<T>::set(double value, bool accurate) {
  using K = ExpConstants<T>;
  if (!(std::fabs(value) <= K::kMaxLambda && std::fabs(value) >= 1 / K::kMaxLambda)) return false;
  lambda = value;
  per_unit = lambda / kLn2Hi;
  unit = kLn2Hi / lambda;
  scale = static_cast<T>(K::kSteps * per_unit);
  // ln 2 / lambda to twice the precision of a double; halving it thrice is exact.
  const double hi = kLn2Hi / lambda;
  const double lo = (std::fma(-hi, lambda, kLn2Hi) + kLn2Lo) / lambda;
  step_hi = static_cast<T>(hi / K::kSteps);
  step_lo = static_cast<T>((hi / K::kSteps - static_cast<double>(step_hi)) + lo / K::kSteps);
  double power = 1;
  for (std::size_t k = 0; k <= K::degree(accurate); ++k) {
    a[k] = static_cast<T>((accurate ? K::kAccurate[k] : K::kFast[k]) * power);
    power *= lambda;
  }
  if constexpr (std::is_same_v<T, float>) {
    for (std::uint32_t j = 0; j < 16; ++j) {
      const auto bits = std::bit_cast<std::uint32_t>(K::kRoots[j % 8]);
      table[j] = std::bit_cast<float>(bits - ((j % 8) << K::kShift));
    }
  }
  return true;
}

template struct ExpSetup<float>;
template struct ExpSetup<double>;

}  // namespace lipscope::softmax_detail
