// SPDX-License-Identifier: Apache-2.0
#include "base/rounding.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cstring>

namespace lipscope {
namespace {

// Packs of doubles (a GCC and Clang extension) instead of a hope for the vectoriser. Every loop
// runs several packs as independent accumulators; the bounds hold for any order of summation.
#ifdef __AVX__
constexpr std::size_t kWidth = 4;
#else
constexpr std::size_t kWidth = 2;
#endif
using Pack = double __attribute__((vector_size(kWidth * sizeof(double))));
using PackBits = std::int64_t __attribute__((vector_size(kWidth * sizeof(double))));
constexpr std::size_t kDotPacks = 4;
constexpr std::size_t kSumPacks = 2;

inline Pack load_pack(const double* p) {
  Pack v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline double absolute(double v) { return std::fabs(v); }
inline Pack absolute(Pack v) {
  return std::bit_cast<Pack>(std::bit_cast<PackBits>(v) & std::numeric_limits<std::int64_t>::max());
}

// Beyond this length the a-priori bounds below are not claimed; no address space reaches it.
constexpr std::size_t kMaxTerms = std::size_t{1} << 50;
// Sums of products at least this large are not affected by underflow of single products.
constexpr double kSafeSum = 0x1p-800;

// n * 2^exponent, exact for n <= kMaxTerms in the exponents used here.
double times_power(std::size_t n, int exponent) {
  return std::ldexp(static_cast<double>(n), exponent);
}

// gamma_n / (1 - gamma_n) = n u / (1 - 2 n u), rounded up [rounding-9]. n <= kMaxTerms.
double gamma_inverse_up(std::size_t n) {
  const double nu = static_cast<double>(n) * kUnitRoundoff;
  return div_up(nu, 1 - 2 * nu);
}

// A power of two f = 2^-e with max |x_i| f in [2^-52, 2), and e. max_abs finite and positive.
struct Scale {
  double factor;
  int exponent;
};
Scale scale_for(double largest) {
  const int e = std::max(std::ilogb(largest), -1022);
  return {std::ldexp(1.0, -e), e};
}

// v * 2^e rounded outward, for |e| <= 2046.
double scale_up(double v, int e) {
  const int half = e / 2;
  if (e >= -1022 && e <= 1023) return mul_up(v, std::ldexp(1.0, e));
  return mul_up(mul_up(v, std::ldexp(1.0, half)), std::ldexp(1.0, e - half));
}
double scale_down(double v, int e) { return -scale_up(-v, e); }

// Exact sum = total + (exact sum of `terms` errors); error and error_abs are plain sums of the
// errors and of their absolute values [rounding-10].
struct CompensatedSum {
  double total = 0;
  double error = 0;
  double error_abs = 0;
  std::size_t terms = 0;

  bool finite() const {
    return std::isfinite(total) && std::isfinite(error) && std::isfinite(error_abs);
  }
  double up() const {
    const double radius = mul_up(gamma_inverse_up(terms), error_abs);
    return add_up(total, add_up(error, radius));
  }
  double down() const {
    const double radius = mul_up(gamma_inverse_up(terms), error_abs);
    return add_down(total, sub_down(error, radius));
  }
};

// Knuth's two-sum, branch-free; accumulates the exact error of s += x. T is double or Pack.
template <typename T>
inline void accumulate(T x, T& s, T& error, T& error_abs) {
  const T t = s + x;
  const T z = t - s;
  const T e = (s - (t - z)) + (x - z);
  s = t;
  error += e;
  error_abs += absolute(e);
}

template <typename Load>
CompensatedSum compensated_sum(std::span<const double> x, Load load) {
  constexpr std::size_t kBlock = kSumPacks * kWidth;
  Pack s[kSumPacks] = {}, c[kSumPacks] = {}, m[kSumPacks] = {};
  const std::size_t n = x.size();
  std::size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
#pragma GCC unroll 2
    for (std::size_t k = 0; k < kSumPacks; ++k) {
      accumulate<Pack>(load(load_pack(&x[i + k * kWidth])), s[k], c[k], m[k]);
    }
  }
  CompensatedSum sum;
  sum.terms = n + kBlock;
  for (std::size_t k = 0; k < kSumPacks; ++k) {
    for (std::size_t j = 0; j < kWidth; ++j) {
      accumulate<double>(s[k][j], sum.total, sum.error, sum.error_abs);
      sum.error += c[k][j];
      sum.error_abs += m[k][j];
    }
  }
  for (; i < n; ++i) accumulate<double>(load(x[i]), sum.total, sum.error, sum.error_abs);
  return sum;
}

// Element-wise maps of doubles and packs.
struct Identity {
  template <typename T>
  T operator()(T v) const {
    return v;
  }
};
struct Absolute {
  template <typename T>
  T operator()(T v) const {
    return absolute(v);
  }
};
struct Scaled {
  double factor;
  template <typename T>
  T operator()(T v) const {
    return v * factor;
  }
};

// Encloses the sum of load(x_i), where load is exact.
template <typename Load>
Interval sum_enclosure(std::span<const double> x, Load load) {
  const std::size_t n = x.size();
  if (n > kMaxTerms) return {-kInf, kInf};
  const CompensatedSum sum = compensated_sum(x, load);
  if (sum.finite()) return {sum.down(), sum.up()};

  double plain = 0;
  bool all_finite = true;
  for (const double v : x) {
    if (std::isfinite(v)) continue;
    all_finite = false;
    plain += load(v);
  }
  if (!all_finite) return {plain, plain};
  // An intermediate sum overflowed. Scaling by 2^-64 rounds only subnormal results, by 2^-1075.
  const CompensatedSum scaled =
      compensated_sum(x, [&](auto v) { return Scaled{0x1p-64}(load(v)); });
  const double slack = times_power(n, -1074);
  return {scale_down(sub_down(scaled.down(), slack), 64), scale_up(add_up(scaled.up(), slack), 64)};
}

struct DotSums {
  double sum;
  double sum_abs;
};

// Plain sums of load_a(a_i) * load_b(b_i) and of the absolute values, in an unspecified order.
template <typename LoadA, typename LoadB>
DotSums dot_sums(const double* a, const double* b, std::size_t n, LoadA load_a, LoadB load_b) {
  constexpr std::size_t kBlock = kDotPacks * kWidth;
  Pack s[kDotPacks] = {}, m[kDotPacks] = {};
  std::size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kDotPacks; ++k) {
      const std::size_t at = i + k * kWidth;
      const Pack p = load_a(load_pack(a + at)) * load_b(load_pack(b + at));
      s[k] += p;
      m[k] += absolute(p);
    }
  }
  const Pack s_pack = (s[0] + s[1]) + (s[2] + s[3]), m_pack = (m[0] + m[1]) + (m[2] + m[3]);
  DotSums sums{s_pack[0], m_pack[0]};
  for (std::size_t j = 1; j < kWidth; ++j) {
    sums.sum += s_pack[j];
    sums.sum_abs += m_pack[j];
  }
  for (; i < n; ++i) {
    const double p = load_a(a[i]) * load_b(b[i]);
    sums.sum += p;
    sums.sum_abs += std::fabs(p);
  }
  return sums;
}

// [rounding-11] with `slack` the total absolute error of the n products from underflow and scaling.
Interval dot_interval(const DotSums& sums, std::size_t n, double slack) {
  const double radius = add_up(mul_up(gamma_inverse_up(n), add_up(sums.sum_abs, slack)), slack);
  return {sub_down(sums.sum, radius), add_up(sums.sum, radius)};
}

// Products overflowed or are so small that underflow matters: repeat on scaled data.
Interval dot_enclosure_scaled(std::span<const double> a, std::span<const double> b) {
  const double largest_a = max_abs(a), largest_b = max_abs(b);
  if (!std::isfinite(largest_a) || !std::isfinite(largest_b)) return {-kInf, kInf};
  if (largest_a == 0 || largest_b == 0) return {0, 0};
  const Scale fa = scale_for(largest_a), fb = scale_for(largest_b);
  const std::size_t n = a.size();
  const DotSums sums = dot_sums(a.data(), b.data(), n, Scaled{fa.factor}, Scaled{fb.factor});
  const Interval scaled = dot_interval(sums, n, times_power(n, -1070));
  const int e = fa.exponent + fb.exponent;
  return {scale_down(scaled.lo, e), scale_up(scaled.hi, e)};
}

// Encloses the sum of squares times factor^2; `slack` as in dot_interval [rounding-12].
Interval norm2_interval(double sum, std::size_t n, double slack) {
  const double up = mul_up(add_up(sum, slack), add_up(1, gamma_inverse_up(n)));
  const double down = div_down(std::max(sub_down(sum, slack), 0.0), add_up(1, gamma_up(n)));
  return {sqrt_down(down), sqrt_up(up)};
}

// Plain sum of load(x_i)^2 in an unspecified order.
template <typename Load>
double square_sum(std::span<const double> x, Load load) {
  constexpr std::size_t kBlock = kDotPacks * kWidth;
  Pack s[kDotPacks] = {};
  const std::size_t n = x.size();
  std::size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kDotPacks; ++k) {
      const Pack v = load(load_pack(&x[i + k * kWidth]));
      s[k] += v * v;
    }
  }
  const Pack pack = (s[0] + s[1]) + (s[2] + s[3]);
  double sum = pack[0];
  for (std::size_t j = 1; j < kWidth; ++j) sum += pack[j];
  for (; i < n; ++i) {
    const double v = load(x[i]);
    sum += v * v;
  }
  return sum;
}

Interval norm2_enclosure(std::span<const double> x) {
  const std::size_t n = x.size();
  if (n > kMaxTerms) return {0, kInf};
  const double sum = square_sum(x, Identity{});
  if (std::isfinite(sum) && sum >= kSafeSum) return norm2_interval(sum, n, times_power(n, -1074));
  const double largest = max_abs(x);
  if (!std::isfinite(largest) || largest == 0) return {largest, largest};
  const Scale scale = scale_for(largest);
  const double scaled = square_sum(x, Scaled{scale.factor});
  const Interval norm = norm2_interval(scaled, n, times_power(n, -1070));
  return {scale_down(norm.lo, scale.exponent), scale_up(norm.hi, scale.exponent)};
}

}  // namespace

double gamma_up(std::size_t n) {
  if (n > kMaxTerms) return kInf;
  const double nu = static_cast<double>(n) * kUnitRoundoff;
  return div_up(nu, 1 - nu);
}

double sum_up(std::span<const double> x) { return sum_enclosure(x, Identity{}).hi; }
double sum_down(std::span<const double> x) { return sum_enclosure(x, Identity{}).lo; }
double abs_sum_up(std::span<const double> x) { return sum_enclosure(x, Absolute{}).hi; }
double abs_sum_down(std::span<const double> x) {
  return max_nan(sum_enclosure(x, Absolute{}).lo, 0);
}

Interval dot_enclosure(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size());
  const std::size_t n = a.size();
  if (n > kMaxTerms) return {-kInf, kInf};
  const DotSums sums = dot_sums(a.data(), b.data(), n, Identity{}, Identity{});
  if (std::isnan(sums.sum_abs)) return {kNaN, kNaN};
  if (!std::isfinite(sums.sum_abs)) return dot_enclosure_scaled(a, b);
  const Interval plain = dot_interval(sums, n, times_power(n, -1074));
  if (sums.sum_abs >= kSafeSum) return plain;
  // Scaling is of no use if the largest elements of a and b do not meet: keep the better ends.
  const Interval scaled = dot_enclosure_scaled(a, b);
  return {std::max(plain.lo, scaled.lo), std::min(plain.hi, scaled.hi)};
}
double dot_up(std::span<const double> a, std::span<const double> b) {
  return dot_enclosure(a, b).hi;
}
double dot_down(std::span<const double> a, std::span<const double> b) {
  return dot_enclosure(a, b).lo;
}

double max_abs(std::span<const double> x) {
  Pack largest = {};
  PackBits is_nan = {};
  const std::size_t n = x.size();
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Pack v = absolute(load_pack(&x[i]));
    largest = v > largest ? v : largest;
    is_nan |= v != v;
  }
  double result = 0;
  for (std::size_t j = 0; j < kWidth; ++j) {
    result = max_nan(result, is_nan[j] != 0 ? kNaN : largest[j]);
  }
  for (; i < n; ++i) result = max_nan(result, std::fabs(x[i]));
  return result;
}

double norm2_up(std::span<const double> x) { return norm2_enclosure(x).hi; }
double norm2_down(std::span<const double> x) { return norm2_enclosure(x).lo; }

// [rounding-13]: the largest element is divided out, so the sum is at least 1 and nothing
// overflows; terms that underflow are rounded to the stated side.
double pnorm_up(std::span<const double> x, double p) {
  if (!(p >= 1)) return kNaN;
  if (p == 1) return abs_sum_up(x);
  if (p == 2) return norm2_up(x);
  const double largest = max_abs(x);
  if (p == kInf || !std::isfinite(largest) || largest == 0) return largest;
  double sum = 0;
  for (const double v : x) {
    if (v != 0) sum = add_up(sum, pow_up(div_up(std::fabs(v), largest), p));
  }
  return mul_up(largest, pow_up(sum, div_up(1, p)));
}
double pnorm_down(std::span<const double> x, double p) {
  if (!(p >= 1)) return kNaN;
  if (p == 1) return abs_sum_down(x);
  if (p == 2) return norm2_down(x);
  const double largest = max_abs(x);
  if (p == kInf || !std::isfinite(largest) || largest == 0) return largest;
  double sum = 0;
  for (const double v : x) {
    if (v != 0) sum = add_down(sum, pow_down(div_down(std::fabs(v), largest), p));
  }
  return mul_down(largest, pow_down(max_nan(sum, 1), div_down(1, p)));
}

namespace {

// Adds one unit in the last place of a decimal digit string; returns true if it became 1 followed
// by zeros of the next power of ten.
bool increment_digits(std::string& digits) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (digits[i] != '9') {
      ++digits[i];
      return false;
    }
    digits[i] = '0';
  }
  digits[0] = '1';
  return true;
}

// d.ddd * 10^exponent in the style of %g with `precision` significant digits.
std::string assemble(bool negative, std::string digits, int exponent, int precision) {
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  std::string text(negative ? "-" : "");
  if (exponent < -4 || exponent >= precision) {
    text.append(digits, 0, 1);
    if (digits.size() > 1) text.append(".").append(digits, 1);
    text.append(exponent < 0 ? "e-" : "e+");
    if (std::abs(exponent) < 10) text.append("0");
    return text.append(std::to_string(std::abs(exponent)));
  }
  if (exponent < 0) {
    return text.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return text.append(digits).append(whole - digits.size(), '0');
  return text.append(digits, 0, whole).append(".").append(digits, whole);
}

std::string format_outward(double x, int precision, bool up) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  if (x == 0) return "0";
  // A double has at most 767 significant decimal digits, so this expansion is exact.
  constexpr int kAllDigits = 767;
  precision = std::clamp(precision, 1, kAllDigits);
  std::array<char, kAllDigits + 16> buffer;
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(x),
                                     std::chars_format::scientific, kAllDigits - 1);
  const std::string all(buffer.data(), written.ptr);
  const std::size_t mark = all.find('e');
  int exponent = std::stoi(all.substr(mark + 1));
  std::string digits(all, 0, mark);
  digits.erase(1, 1);  // the point
  const auto kept = static_cast<std::size_t>(precision);
  const bool exact = digits.find_first_not_of('0', kept) == std::string::npos;
  digits.resize(kept);
  const bool away_from_zero = up == (x > 0);
  if (!exact && away_from_zero && increment_digits(digits)) ++exponent;
  return assemble(x < 0, std::move(digits), exponent, precision);
}

}  // namespace

std::string format_up(double x, int digits) { return format_outward(x, digits, true); }
std::string format_down(double x, int digits) { return format_outward(x, digits, false); }

namespace {

// Arithmetic on values the compiler cannot know, so that it happens at run time.
double opaque(double x) {
  volatile double v = x;
  return v;
}

bool rounds_to_nearest() {
  const double one = opaque(1), u = opaque(kUnitRoundoff);
  return one + u == 1 && one + u * opaque(1.5) == 1 + 2 * kUnitRoundoff && -one - u == -1 &&
         one - u * opaque(0.5) == 1;
}

bool keeps_subnormals() {
  const double smallest = opaque(kMinSubnormal), normal = opaque(0x1p-1022);
  return smallest > 0 && smallest + smallest == 2 * kMinSubnormal && normal * opaque(0.5) > 0 &&
         normal * opaque(0.5) * opaque(2) == normal && smallest * opaque(0x1p1000) == 0x1p-74 &&
         opaque(0x1.8p-1022) - normal == 0x1p-1023;
}

bool has_special_values() {
  const double zero = opaque(0), inf = opaque(1) / zero, nan = inf - inf;
  const bool infinities = inf > kMaxDouble && opaque(kMaxDouble) * opaque(2) == inf &&
                          opaque(-1) / zero == -inf && opaque(1) / inf == 0;
  const bool nans = !(nan == nan) && nan != nan && !(nan < 1) && !(nan > 1) && std::isnan(nan) &&
                    std::isnan(zero * inf);
  const bool zeros = std::signbit(opaque(-0.0)) && !std::signbit(opaque(-0.0) + zero) &&
                     opaque(1) / opaque(-0.0) == -inf && opaque(-0.0) == zero;
  return infinities && nans && zeros;
}

bool fma_is_fused_and_nothing_else_is() {
  // a * b = 1 - 2^-104 rounds to 1.
  const double a = opaque(1 + 0x1p-52), b = opaque(1 - 0x1p-52), c = opaque(1);
  return std::fma(a, b, -c) == -0x1p-104 && a * b - c == 0 &&
         std::fma(opaque(0x1p-600), opaque(0x1p-400), opaque(0)) == 0x1p-1000;
}

struct HardPoint {
  double (*down)(double);
  double (*up)(double);
  double x;
  double below;  // largest double below the exact value, which is not a double
};

bool library_is_accurate() {
  static constexpr HardPoint kPoints[] = {
      {exp_down, exp_up, -0x1.49f33ad2c1c58p+9, 0x1.f3ccc815431b5p-953},
      {expm1_down, expm1_up, 0x1.6f0d4742e25f5p-2, 0x1.b9746bc37e353p-2},
      {log_down, log_up, 0x1.1211bef8f68e9p+0, 0x1.175caeca67f84p-4},
      {log1p_down, log1p_up, -0x1.2ef38eb1b8c02p-2, -0x1.672f020c37feap-2},
      {log2_down, log2_up, 0x1.10930635151e1p+0, 0x1.72b636979d54p-4},
      {tanh_down, tanh_up, 0x1.e0754b877d624p-3, 0x1.d7d57027df82cp-3},
      {sinh_down, sinh_up, 0x1.633c654fee2bap+9, 0x1.fdf25fc26e7c1p+1023},
      {cosh_down, cosh_up, 0x1.633c654fee2bap+9, 0x1.fdf25fc26e7c1p+1023},
      {erf_down, erf_up, 0x1.c332bde7ca515p-5, 0x1.fc9bba14955e7p-5},
      {erfc_down, erfc_up, 0x1.3f44aa56898b4p+0, 0x1.3e948cc263049p-4},
      {sin_down, sin_up, 0x1.f8b791cafcdefp+4, 0x1.073ca87470df9p-3},
      {sin_down, sin_up, 0x1.6ac5b262ca1ffp+849, 0x1.fffffffffffffp-1},
      {cos_down, cos_up, 0x1.6ac5b262ca1ffp+849, -0x1.14ae72e6ba22fp-61},
      {cos_down, cos_up, 0x1.256ef7b7babbfp+2, -0x1.046519f77bc07p-3},
      {tan_down, tan_up, 0x1.e96371cb0d755p+15, 0x1.efb6add68a256p+3},
      {atan_down, atan_up, 0x1.b8e6cadb25979p-4, 0x1.b735dc7e82bc4p-4},
      {asin_down, asin_up, 0x1.7fff3339d99dbp-3, 0x1.82487e583f805p-3},
      {acos_down, acos_up, 0x1.ce0a62209631bp-1, 0x1.c820554ac846fp-2},
      {asinh_down, asinh_up, 0x1.02657ff36d5f3p-2, 0x1.ff75bb69b0bf7p-3},
      {acosh_down, acosh_up, 0x1.0001ff6afc4bap+0, 0x1.ffb5238940113p-8},
      {atanh_down, atanh_up, 0x1.f00967fe08b3ap-4, 0x1.f27bb5e1e915dp-4},
  };
  return std::ranges::all_of(kPoints, [](const HardPoint& point) {
    const double x = opaque(point.x);
    return point.down(x) <= point.below && point.up(x) >= next_up(point.below);
  });
}

}  // namespace

bool rounding_self_test() {
  return rounds_to_nearest() && keeps_subnormals() && has_special_values() &&
         fma_is_fused_and_nothing_else_is() && library_is_accurate();
}

}  // namespace lipscope
