// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/functions.h"

namespace oracle {
namespace {

using Function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// A function that rises (or falls) on the whole interval. Where it is exact, the result is.
Number monotone(const Number& x, Function f, bool rises = true) {
  if (x.is_nan()) return x;
  const Real from[2] = {x.lower(), x.upper()};
  Real low, high;
  f(low.get(), from[rises ? 0 : 1].get(), MPFR_RNDD);
  f(high.get(), from[rises ? 1 : 0].get(), MPFR_RNDU);
  if (mpfr_inf_p(low.get()) && mpfr_inf_p(high.get()) &&
      mpfr_sgn(low.get()) == mpfr_sgn(high.get())) {
    return Number::infinity(mpfr_sgn(low.get()));
  }
  return Number::between(low, high);
}

// A function with slopes between -1 and 1 and values between -1 and 1.
Number wave(const Number& x, Function f) {
  if (!x.is_finite()) return Number::nan();
  const Real from = x.lower(), to = x.upper();
  Real low, high, width;
  mpfr_sub(width.get(), to.get(), from.get(), MPFR_RNDU);
  if (!mpfr_number_p(width.get()) || mpfr_cmp_ui(width.get(), 2) > 0) {
    mpfr_set_si(low.get(), -1, MPFR_RNDD);
    mpfr_set_si(high.get(), 1, MPFR_RNDU);
    return Number::between(low, high);
  }
  f(low.get(), from.get(), MPFR_RNDD);
  f(high.get(), from.get(), MPFR_RNDU);
  mpfr_sub(low.get(), low.get(), width.get(), MPFR_RNDD);
  mpfr_add(high.get(), high.get(), width.get(), MPFR_RNDU);
  return max(min(Number::between(low, high), Number(1)), Number(-1));
}

bool below(const Number& x, int bound) { return compare(x, Number(bound)) < 0; }

Number power(Number base, std::uint64_t exponent) {
  Number result(1);
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = result * base;
    if (exponent > 1) base = base * base;
  }
  return result;
}

}  // namespace

Number exp(const Number& x) { return x.infinite() < 0 ? Number(0) : monotone(x, mpfr_exp); }
Number expm1(const Number& x) { return monotone(x, mpfr_expm1); }
Number log(const Number& x) {
  if (x.is_nan() || below(x, 0)) return Number::nan();
  if (x.is_exact() && x.exact() == 0) return Number::infinity(-1);
  return monotone(x, mpfr_log);
}
Number log1p(const Number& x) {
  if (x.is_nan() || below(x, -1)) return Number::nan();
  return monotone(x, mpfr_log1p);
}
Number sqrt(const Number& x) {
  if (x.is_nan()) return x;
  if (x.is_exact()) {
    const mpq_class& q = x.exact();
    if (q < 0) return Number::nan();
    if (mpz_perfect_square_p(q.get_num_mpz_t()) != 0 &&
        mpz_perfect_square_p(q.get_den_mpz_t()) != 0) {
      return Number(mpq_class(::sqrt(q.get_num()), ::sqrt(q.get_den())));
    }
  } else if (below(x, 0)) {
    return Number::nan();
  }
  return monotone(max(x, Number(0)), mpfr_sqrt);
}
Number erf(const Number& x) { return monotone(x, mpfr_erf); }
Number sin(const Number& x) { return wave(x, mpfr_sin); }
Number cos(const Number& x) { return wave(x, mpfr_cos); }
Number tan(const Number& x) { return sin(x) / cos(x); }
Number asin(const Number& x) {
  return x.is_nan() || below(x, -1) || below(-x, -1) ? Number::nan() : monotone(x, mpfr_asin);
}
Number acos(const Number& x) {
  return x.is_nan() || below(x, -1) || below(-x, -1) ? Number::nan()
                                                     : monotone(x, mpfr_acos, false);
}
Number atan(const Number& x) { return monotone(x, mpfr_atan); }
Number sinh(const Number& x) { return monotone(x, mpfr_sinh); }
Number cosh(const Number& x) { return monotone(abs(x), mpfr_cosh); }
Number tanh(const Number& x) { return monotone(x, mpfr_tanh); }
Number asinh(const Number& x) { return monotone(x, mpfr_asinh); }
Number acosh(const Number& x) {
  return x.is_nan() || below(x, 1) ? Number::nan() : monotone(x, mpfr_acosh);
}
Number atanh(const Number& x) {
  if (x.is_nan() || below(x, -1) || below(-x, -1)) return Number::nan();
  return monotone(x, mpfr_atanh);
}

Number pow(const Number& x, const Number& y) {
  if (y.is_exact() && y.exact() == 0) return Number(1);
  if (x.is_nan() || y.is_nan()) return Number::nan();
  if (y.is_exact() && y.exact().get_den() == 1) {
    constexpr Index kMost = 1 << 20;
    const mpz_class size = ::abs(y.exact().get_num());
    if (size <= kMost) {
      const Number whole = power(x, size.get_ui());
      return y.exact() > 0 ? whole : Number(1) / whole;
    }
  }
  const int s = sign(x);
  if (s == 0) return sign(y) > 0 ? Number(0) : Number::nan();
  if (s < 0) {
    const mpq_class exponent = y.exact();
    if (exponent.get_den() != 1) return Number::nan();
    const Number size = exp(y * log(-x));
    return mpz_odd_p(exponent.get_num_mpz_t()) != 0 ? -size : size;
  }
  if (y.is_exact() && y.exact().get_den() == 2 && ::abs(y.exact().get_num()) < 64) {
    return pow(sqrt(x), Number(mpq_class(y.exact().get_num())));
  }
  return exp(y * log(x));
}

Number pi() {
  Real low, high;
  mpfr_const_pi(low.get(), MPFR_RNDD);
  mpfr_const_pi(high.get(), MPFR_RNDU);
  return Number::between(low, high);
}

// 1 / (1 + exp(-x)) without an overflow of what is not asked for.
Number sigmoid(const Number& x) { return Number(1) / (Number(1) + exp(-x)); }
Number softplus(const Number& x) {
  if (x.infinite() != 0) return x.infinite() > 0 ? x : Number(0);
  return max(x, Number(0)) + log1p(exp(-abs(x)));
}

}  // namespace oracle
