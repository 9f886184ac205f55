// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exact references (MPFR) and operand generators for the tests of rounding.h and interval.h.
// Tests only: the library itself does not depend on MPFR.

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/rounding_basic.h"

namespace lipscope::reference {

class Real {
 public:
  explicit Real(mpfr_prec_t precision = 160) { mpfr_init2(v_, precision); }
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;
  ~Real() { mpfr_clear(v_); }
  operator mpfr_ptr() { return v_; }

 private:
  mpfr_t v_;
};

// Tightest doubles around the exact value v' of which v is the truncation towards -inf with MPFR's
// ternary value `ternary`. Destroys v.
inline Interval tightest(mpfr_ptr v, int ternary) {
  if (mpfr_nan_p(v)) return {kNaN, kNaN};
  const double lo = mpfr_get_d(v, MPFR_RNDD);
  if (ternary != 0) mpfr_nextabove(v);
  return {lo, mpfr_get_d(v, MPFR_RNDU)};
}

using Unary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
using Binary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

inline Interval exact(Unary f, double x) {
  static thread_local Real a(53), r(120);
  mpfr_set_d(a, x, MPFR_RNDN);
  const int ternary = f(r, a, MPFR_RNDD);
  return tightest(r, ternary);
}
inline Interval exact(Binary f, double x, double y) {
  static thread_local Real a(53), b(53), r(120);
  mpfr_set_d(a, x, MPFR_RNDN);
  mpfr_set_d(b, y, MPFR_RNDN);
  const int ternary = f(r, a, b, MPFR_RNDD);
  return tightest(r, ternary);
}

// 1 / (1 + exp(-x)) and log(1 + exp(x)) as MPFR-like functions. Their result is a lower bound whose
// error is far below the last bit kept here, reported as inexact.
inline int sigmoid(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t) {
  static thread_local Real t(400);
  if (mpfr_zero_p(x)) return mpfr_set_d(r, 0.5, MPFR_RNDD);
  mpfr_neg(t, x, MPFR_RNDN);
  mpfr_exp(t, t, MPFR_RNDU);
  mpfr_add_ui(t, t, 1, MPFR_RNDU);
  mpfr_ui_div(r, 1, t, MPFR_RNDD);
  return -1;
}
inline int softplus(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t) {
  static thread_local Real t(400);
  const bool positive = mpfr_sgn(x) > 0;
  positive ? mpfr_neg(t, x, MPFR_RNDN) : mpfr_set(t, x, MPFR_RNDN);
  mpfr_exp(t, t, MPFR_RNDD);
  mpfr_log1p(t, t, MPFR_RNDD);
  positive ? mpfr_add(r, t, x, MPFR_RNDD) : mpfr_set(r, t, MPFR_RNDD);
  return -1;
}

// How many doubles lie from a up to b; the number of ulp within one binade.
inline std::int64_t steps_between(double a, double b) {
  return rounding_detail::ordinal(b) - rounding_detail::ordinal(a);
}

// Multiplies every sample count; set LIPSCOPE_TEST_SCALE=100 for a long run.
inline std::size_t samples(std::size_t n) {
  const char* scale = std::getenv("LIPSCOPE_TEST_SCALE");
  return scale == nullptr ? n : n * static_cast<std::size_t>(std::max(1, std::atoi(scale)));
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  double uniform(double lo, double hi) {
    return lo + (hi - lo) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  double sign() { return (engine_() & 1) != 0 ? 1 : -1; }
  // Random significand, exponent uniform in [lo, hi].
  double log_uniform(int lo, int hi) {
    return std::ldexp(uniform(1, 2),
                      lo + static_cast<int>(below(static_cast<std::size_t>(hi - lo + 1))));
  }
  // Any finite double, all exponents alike.
  double any() {
    for (;;) {
      const auto x = std::bit_cast<double>(engine_());
      if (std::isfinite(x)) return x;
    }
  }

 private:
  std::mt19937_64 engine_;
};

// Operands of every kind for + - * /, cycling with i.
inline std::pair<double, double> operand_pair(Generator& random, std::size_t i) {
  double a = random.any(), b = random.any();
  switch (i % 8) {
    case 0: break;
    case 1:
      a = random.sign() * random.log_uniform(-60, 60);
      b = random.sign() * random.log_uniform(-60, 60);
      break;
    case 2:  // near cancellation
      b = -a * (1 + 0x1p-52 * static_cast<double>(random.below(8)));
      break;
    case 3:  // results around underflow
      a = random.sign() * random.log_uniform(-1074, -1);
      b = std::ldexp(random.sign() * random.uniform(1, 2), -1050 - std::ilogb(a));
      if (i % 16 < 8) b = std::ldexp(1 / b, -2090 - 2 * std::ilogb(a));
      break;
    case 4:  // results around overflow
      a = random.sign() * random.log_uniform(0, 1023);
      b = std::ldexp(random.sign() * random.uniform(1, 2), 1023 - std::ilogb(a));
      if (i % 16 < 8) b = 1 / b;
      break;
    case 5:  // few bits: exact and halfway cases
      a = std::ldexp(static_cast<double>(random.below(1024)), static_cast<int>(random.below(200)));
      b = std::ldexp(static_cast<double>(random.below(1024)), static_cast<int>(random.below(200)));
      break;
    case 6:  // subnormal operands
      a = random.sign() * random.log_uniform(-1074, -1020);
      b = random.sign() * random.log_uniform(-60, 60);
      if (i % 16 < 8) std::swap(a, b);
      break;
    default: b = a * random.sign() * random.log_uniform(-56, -50);
  }
  if (!std::isfinite(b)) b = 1;
  return {a, b};
}

// Both signs of the values at which rounding code goes wrong.
inline std::vector<double> extremes() {
  // clang-format off
  const std::vector<double> positive = {
      0, kMinSubnormal, 2 * kMinSubnormal, 3 * kMinSubnormal, 0x1.8p-1050,
      0x0.fffffffffffffp-1022, 0x1p-1022, 0x1.0000000000001p-1022, 0x1.fffffffffffffp-1022,
      0x1p-1021, 0x1p-969, 0x1p-968, 0x1.fffffffffffffp-901, 0x1p-900, 0x1.0000000000001p-900,
      0x1p-538, 0x1.6a09e667f3bcdp-538, 0x1.fffffffffffffp-512, 0x1p-511, 0x1p-200, 0x1p-54,
      0x1p-53, 0x1.0000000000001p-53, 0x1p-52, 0x1p-27, 0.1, 1.0 / 3, 0.5, 0x1.fffffffffffffp-1,
      0x1.ffffffffffffep-1, 1, 0x1.0000000000001p+0, 0x1.0000000000002p+0, 1.5, 2, 3, 10,
      0x1p+27, 0x1p+52, 0x1p+53, 0x1.fffffffffffffp+53, 1e22, 0x1p+200, 0x1p+511,
      0x1.fffffffffffffp+511, 0x1p+512, 0x1.6a09e667f3bcdp+511, 0x1p+970, 0x1p+971, 0x1p+1022,
      0x1.fffffffffffffp+1022, 0x1p+1023, 0x1.ffffffffffffep+1023, kMaxDouble};
  // clang-format on
  std::vector<double> both;
  for (const double x : positive) {
    both.push_back(x);
    both.push_back(-x);
  }
  return both;
}

inline std::vector<double> random_vector(Generator& random, std::size_t n, std::size_t kind) {
  std::vector<double> x(n);
  for (double& v : x) {
    switch (kind) {
      case 0: v = random.uniform(-1, 1); break;
      case 1: v = random.sign() * random.log_uniform(-30, 30); break;
      case 2: v = random.sign() * random.log_uniform(1000, 1023); break;
      case 3: v = random.sign() * random.log_uniform(-1074, -1000); break;
      case 4: v = random.any(); break;
      case 5: v = random.sign() * random.log_uniform(-560, -500); break;
      case 6: v = random.below(3) == 0 ? random.sign() * random.log_uniform(-3, 3) : 0.0; break;
      default: v = 0;
    }
  }
  // Massive cancellation: the second half repeats the first with the other sign, almost.
  if (kind == 1) {
    for (std::size_t i = n / 2; i < n && n > 2; ++i) {
      x[i] = -x[i - n / 2] * (random.below(4) == 0 ? 1 + 0x1p-50 : 1);
    }
  }
  return x;
}

// Exact sum of terms that are themselves exact.
class ExactSum {
 public:
  explicit ExactSum(mpfr_prec_t term_precision) : precision_(term_precision) {}
  mpfr_ptr add_term() {
    terms_.push_back(std::make_unique<Real>(precision_));
    return *terms_.back();
  }
  Interval tightest_sum(Real& total) {
    std::vector<mpfr_ptr> pointers;
    for (const auto& term : terms_) pointers.push_back(*term);
    const int ternary = mpfr_sum(total, pointers.data(), pointers.size(), MPFR_RNDD);
    return tightest(total, ternary);
  }

 private:
  mpfr_prec_t precision_;
  std::vector<std::unique_ptr<Real>> terms_;
};

}  // namespace lipscope::reference
