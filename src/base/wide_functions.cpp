// SPDX-License-Identifier: Apache-2.0
// Functions of wide numbers: series at the middle with their remainders, and for the distance a
// bound of the slope [rounding-19].
#include <algorithm>
#include <cmath>

#include "base/wide.h"

namespace lipscope {
namespace {

Wide middle_of(const Wide& x) { return {x.middle(), 0}; }

// What a distance of x makes of a function with slopes up to this size.
Wide moved(const Wide& at_middle, const Wide& x, double slope) {
  return x.off() == 0 ? at_middle : at_middle.widened(mul_up(x.off(), slope));
}

double size_with_off(const Wide& x) { return add_up(x.size_up(), x.off()); }

// ln 2 = 2 artanh(1/3).
const Wide& ln_two() {
  static const Wide value = [] {
    Wide sum, power = over(Wide(2), 3);
    for (std::uint64_t k = 0; k < 90; ++k) {
      sum += over(power, 2 * k + 1);
      power = over(power, 9);
    }
    return sum.widened(Wide::kUnit);  // the rest is below 3^-180
  }();
  return value;
}

Wide arctan_of_inverse(std::uint64_t n, int terms) {
  Wide sum, power = over(Wide(1), n);
  for (int k = 0; k < terms; ++k) {
    const Wide term = over(power, static_cast<std::uint64_t>(2 * k + 1));
    sum = k % 2 == 0 ? sum + term : sum - term;
    power = over(over(power, n), n);
  }
  return sum.widened(size_with_off(power));  // terms alternate and fall
}

// 1 / k!
const Wide& inverse_factorial(std::size_t k) {
  constexpr std::size_t kMost = 25;
  static const std::array<Wide, kMost> table = [] {
    std::array<Wide, kMost> values;
    values[0] = Wide(1);
    for (std::size_t i = 1; i < kMost; ++i) values[i] = over(values[i - 1], i);
    return values;
  }();
  return table[k];
}

// e^x = mantissa 2^exponent, mantissa about 1.
struct PowerOfE {
  Wide mantissa;
  int exponent = 0;
};

PowerOfE power_of_e(const Wide& x) {
  constexpr int kHalvings = 8, kTerms = 24;
  const double n = std::nearbyint(x.near() / 0.6931471805599453);
  if (!(std::fabs(n) < 1e6)) return {Wide::unknown(), 0};
  const Wide r = scaled(x - Wide(n) * ln_two(), -kHalvings);
  if (!(size_with_off(r) < 0x1p-9)) return {Wide::unknown(), 0};
  Wide sum = inverse_factorial(kTerms);
  for (std::size_t k = kTerms; k-- > 0;) sum = sum * r + inverse_factorial(k);
  sum = sum.widened(Wide::kUnit);  // the rest is below 2^-225 / 25!
  for (int k = 0; k < kHalvings; ++k) sum = sqr(sum);
  return {sum, static_cast<int>(n)};
}

// 1 / sqrt(2 pi)
const Wide& bell_height() {
  static const Wide value = inverse_sqrt(scaled(wide_pi(), 1));
  return value;
}

// The sum of x^(2n+1) / (1 3 5 ... (2n+1)), for |x| <= 9.
Wide bell_series(const Wide& x) {
  const Wide square = sqr(x);
  const double q = add_up(square.size_up(), square.off());
  Wide term = x, sum = x;
  for (std::uint64_t n = 1; n < 2000; ++n) {
    term = over(term * square, 2 * n + 1);
    sum += term;
    // From here on each term is less than half of the one before.
    if (2 * q < static_cast<double>(2 * n + 3) && term.size_up() < 4 * Wide::kUnit)
      return sum.widened(size_with_off(term));
  }
  return Wide::unknown();
}

// (1 - share below x) / density for x >= 9: consecutive convergents of the continued fraction
// 1/(x + 1/(x + 2/(x + 3/(x + ...)))) have the value between them.
Wide tail_ratio(const Wide& x) {
  constexpr int kSteps = 120;
  Wide a0, b0(1), a1(1), b1 = x;
  for (int n = 1; n < kSteps; ++n) {
    const Wide factor(n);
    const Wide a2 = x * a1 + factor * a0, b2 = x * b1 + factor * b0;
    a0 = a1, b0 = b1, a1 = a2, b1 = b2;
    if (b1.near() > 0x1p40) {
      for (Wide* w : {&a0, &b0, &a1, &b1}) *w = scaled(*w, -32);
    }
  }
  const Wide one = a0 / b0, other = a1 / b1;
  return one.widened(size_with_off(one - other));
}

struct SineCosine {
  Wide sine, cosine;
};

SineCosine sine_cosine(const Wide& x) {
  const Wide at = middle_of(x);
  const Wide quarter = scaled(wide_pi(), -1);
  const double k = std::nearbyint(at.near() / 1.5707963267948966);
  if (!x.known() || !(std::fabs(k) < 0x1p40)) return {Wide::unknown(), Wide::unknown()};
  const Wide r = at - Wide(k) * quarter, square = sqr(r);
  if (!(size_with_off(r) <= 1)) return {Wide::unknown(), Wide::unknown()};
  Wide sine = r, cosine(1), odd = r, even(1);
  for (std::uint64_t n = 1; n <= 32; ++n) {
    even = -over(even * square, (2 * n - 1) * (2 * n));
    odd = -over(odd * square, (2 * n) * (2 * n + 1));
    cosine += even;
    sine += odd;
  }
  cosine = moved(cosine.widened(Wide::kUnit), x, 1);  // the rest is below 1 / 66!
  sine = moved(sine.widened(Wide::kUnit), x, 1);
  const auto turn = static_cast<std::int64_t>(k) & 3;
  if (turn == 0) return {sine, cosine};
  if (turn == 1) return {cosine, -sine};
  if (turn == 2) return {-sine, -cosine};
  return {-cosine, sine};
}

}  // namespace

const Wide& wide_pi() {
  static const Wide value =
      scaled(arctan_of_inverse(5, 60), 4) - scaled(arctan_of_inverse(239, 20), 2);
  return value;
}

Wide sin(const Wide& x) { return sine_cosine(x).sine; }
Wide cos(const Wide& x) { return sine_cosine(x).cosine; }

Wide exp(const Wide& x) {
  const Interval at = hull(x);
  if (!x.known() || !(at.hi < 43)) return Wide::unknown();
  if (at.hi < -200) return Wide().widened(Wide::kUnit);
  const PowerOfE power = power_of_e(middle_of(x));
  return moved(scaled(power.mantissa, power.exponent), x, exp_up(at.hi));
}

Wide tanh(const Wide& x) {
  if (!x.known()) return x;
  const Wide at = middle_of(x);
  const Wide power = exp(scaled(at.negative() ? at : -at, 1));
  const Wide size = (Wide(1) - power) / (Wide(1) + power);
  return moved(at.negative() ? -size : size, x, 1);
}

Wide sigmoid(const Wide& x) {
  if (!x.known()) return x;
  const Wide at = middle_of(x);
  const Wide power = exp(at.negative() ? at : -at);
  const Wide low = power / (Wide(1) + power);
  return moved(at.negative() ? low : Wide(1) - low, x, 0.25);
}

NormalShare normal_share(const Wide& x) {
  constexpr double kFar = 19.5;  // density and tail are below 2^-256 there
  const Interval where = hull(x);
  if (!x.known()) return {Wide::unknown(), Wide::unknown()};
  if (where.lo > kFar || where.hi < -kFar) {
    return {Wide().widened(Wide::kUnit), Wide(where.lo > 0 ? 1 : 0).widened(Wide::kUnit)};
  }
  const Wide at = middle_of(x);
  const PowerOfE power = power_of_e(scaled(-sqr(at), -1));
  const Wide density = scaled(power.mantissa, power.exponent) * bell_height();
  Wide below;
  if (std::fabs(at.near()) <= 9) {
    // Scaled last: the series is as large as the density is small.
    below = Wide(0.5) + scaled(power.mantissa * bell_series(at), power.exponent) * bell_height();
  } else {
    const Wide tail = density * tail_ratio(at.negative() ? -at : at);
    below = at.negative() ? tail : Wide(1) - tail;
  }
  return {moved(density, x, 0.25), moved(below, x, 0.4)};
}

}  // namespace lipscope
