// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/number.h"

#include <cmath>
#include <limits>

namespace oracle {
namespace {

thread_local mpfr_prec_t t_bits = 256;
thread_local bool t_settle = false;

// Longer fractions become intervals: exactness is for decisions, and those are about short numbers.
constexpr std::size_t kMostBits = 7000;

std::size_t length(const mpq_class& q) {
  return mpz_sizeinbase(q.get_num_mpz_t(), 2) + mpz_sizeinbase(q.get_den_mpz_t(), 2);
}

mpz_class floor_div(const mpz_class& a, const mpz_class& b) {
  mpz_class q;
  mpz_fdiv_q(q.get_mpz_t(), a.get_mpz_t(), b.get_mpz_t());
  return q;
}
mpz_class floor_q(const mpq_class& q) { return floor_div(q.get_num(), q.get_den()); }

mpq_class simplest(const mpq_class& lower, const mpq_class& upper) {
  const mpz_class whole = floor_q(lower);
  if (mpq_class(whole) == lower) return lower;
  if (whole < floor_q(upper)) return mpq_class(whole + 1);
  const mpq_class low = 1 / (upper - whole), high = 1 / (lower - whole);
  return whole + 1 / simplest(low, high);
}

bool huge_exponent(mpfr_srcptr x) {
  constexpr mpfr_exp_t kMost = 40000;
  return !mpfr_number_p(x) || (!mpfr_zero_p(x) && std::abs(mpfr_get_exp(x)) > kMost);
}

mpq_class as_rational(mpfr_srcptr x) {
  mpq_class q;
  mpfr_get_q(q.get_mpq_t(), x);
  return q;
}

}  // namespace

Precision::Precision(mpfr_prec_t bits, bool settle)
    : bits_before_(t_bits), settled_before_(t_settle) {
  t_bits = bits;
  t_settle = settle;
}
Precision::~Precision() {
  t_bits = bits_before_;
  t_settle = settled_before_;
}
mpfr_prec_t Precision::bits() { return t_bits; }
bool Precision::settles() { return t_settle; }

Number::Number(Index value) : Number(mpq_class(static_cast<long>(value))) {}
Number::Number(double value) {
  auto rep = std::make_shared<Rep>();
  if (std::isnan(value)) {
    rep->kind = Kind::kNan;
  } else if (std::isinf(value)) {
    rep->kind = Kind::kInfinite;
    rep->sign = value > 0 ? 1 : -1;
  } else {
    rep->rational = value;
  }
  rep_ = std::move(rep);
}
Number::Number(mpq_class value) {
  auto rep = std::make_shared<Rep>();
  if (length(value) <= kMostBits) {
    rep->rational = std::move(value);
  } else {
    rep->kind = Kind::kInterval;
    rep->ends = std::make_unique<std::pair<Real, Real>>();
    mpfr_set_q(rep->ends->first.get(), value.get_mpq_t(), MPFR_RNDD);
    mpfr_set_q(rep->ends->second.get(), value.get_mpq_t(), MPFR_RNDU);
  }
  rep_ = std::move(rep);
}
Number Number::unsigned_integer(std::uint64_t value) {
  return Number(mpq_class(static_cast<unsigned long>(value)));
}
Number Number::fraction(Index numerator, Index denominator) {
  if (denominator == 0) throw Undefined("division by zero");
  mpq_class q(static_cast<long>(numerator), static_cast<long>(denominator));
  q.canonicalize();
  return Number(std::move(q));
}
Number Number::infinity(int sign) { return Number(sign > 0 ? HUGE_VAL : -HUGE_VAL); }
Number Number::nan() { return Number(std::numeric_limits<double>::quiet_NaN()); }

Number Number::between(const Real& lower, const Real& upper) {
  if (mpfr_nan_p(lower.get()) || mpfr_nan_p(upper.get())) return nan();
  if (mpfr_equal_p(lower.get(), upper.get()) && !huge_exponent(lower.get())) {
    return Number(as_rational(lower.get()));
  }
  auto rep = std::make_shared<Rep>();
  rep->kind = Kind::kInterval;
  rep->ends = std::make_unique<std::pair<Real, Real>>(lower, upper);
  return Number(std::shared_ptr<const Rep>(std::move(rep)));
}

const mpq_class& Number::exact() const {
  if (is_exact()) return rep_->rational;
  if (!is_finite()) throw Undefined("a decision on " + text());
  if (Precision::settles() && !huge_exponent(rep_->ends->first.get()) &&
      !huge_exponent(rep_->ends->second.get())) {
    constexpr std::size_t kShort = 300;
    static thread_local mpq_class found;
    found = simplest(as_rational(rep_->ends->first.get()), as_rational(rep_->ends->second.get()));
    if (length(found) <= kShort) return found;
  }
  throw Undecided("a decision on " + text());
}
Index Number::integer() const {
  const mpq_class& q = exact();
  if (q.get_den() != 1 || !q.get_num().fits_slong_p()) throw Undefined("no integer: " + text());
  return q.get_num().get_si();
}

Real Number::lower() const {
  Real end;
  if (is_exact()) {
    mpfr_set_q(end.get(), rep_->rational.get_mpq_t(), MPFR_RNDD);
  } else if (rep_->kind == Kind::kInterval) {
    return rep_->ends->first;
  } else if (is_nan()) {
    mpfr_set_nan(end.get());
  } else {
    mpfr_set_inf(end.get(), rep_->sign);
  }
  return end;
}
Real Number::upper() const {
  if (rep_->kind == Kind::kInterval) return rep_->ends->second;
  if (!is_exact()) return lower();
  Real end;
  mpfr_set_q(end.get(), rep_->rational.get_mpq_t(), MPFR_RNDU);
  return end;
}
double Number::middle() const { return mpfr_get_d(lower().get(), MPFR_RNDN); }

std::string Number::text() const {
  const Real low = lower(), high = upper();
  char* out = nullptr;
  if (mpfr_asprintf(&out, mpfr_equal_p(low.get(), high.get()) ? "%.17Rg" : "%.17Rg..%.17Rg",
                    low.get(), high.get()) < 0) {
    return "?";
  }
  std::string result(out);
  mpfr_free_str(out);
  return result;
}

Number operator-(const Number& a) {
  if (a.is_exact()) return Number(mpq_class(-a.exact()));
  if (a.is_nan()) return a;
  if (a.infinite() != 0) return Number::infinity(-a.infinite());
  Real low = a.upper(), high = a.lower();
  mpfr_neg(low.get(), low.get(), MPFR_RNDN);
  mpfr_neg(high.get(), high.get(), MPFR_RNDN);
  return Number::between(low, high);
}

Number operator+(const Number& a, const Number& b) {
  if (a.is_exact() && b.is_exact()) return Number(mpq_class(a.exact() + b.exact()));
  if (a.is_nan() || b.is_nan() || a.infinite() * b.infinite() < 0) return Number::nan();
  if (a.infinite() != 0) return a;
  if (b.infinite() != 0) return b;
  Real low, high;
  mpfr_add(low.get(), a.lower().get(), b.lower().get(), MPFR_RNDD);
  mpfr_add(high.get(), a.upper().get(), b.upper().get(), MPFR_RNDU);
  if (mpfr_nan_p(low.get())) mpfr_set_inf(low.get(), -1);
  if (mpfr_nan_p(high.get())) mpfr_set_inf(high.get(), 1);
  return Number::between(low, high);
}
Number operator-(const Number& a, const Number& b) { return a + -b; }

Number operator*(const Number& a, const Number& b) {
  if (a.is_exact() && b.is_exact()) return Number(mpq_class(a.exact() * b.exact()));
  if (a.is_nan() || b.is_nan()) return Number::nan();
  if (a.infinite() != 0 || b.infinite() != 0) {
    const int s = sign(a) * sign(b);
    return s == 0 ? Number::nan() : Number::infinity(s);
  }
  const Real x[2] = {a.lower(), a.upper()}, y[2] = {b.lower(), b.upper()};
  Real low, high, product;
  mpfr_set_inf(low.get(), 1);
  mpfr_set_inf(high.get(), -1);
  for (const Real& u : x) {
    for (const Real& v : y) {
      for (const auto mode : {MPFR_RNDD, MPFR_RNDU}) {
        mpfr_mul(product.get(), u.get(), v.get(), mode);
        if (mpfr_nan_p(product.get())) mpfr_set_zero(product.get(), 1);  // 0 times an open end
        mpfr_min(low.get(), low.get(), product.get(), MPFR_RNDD);
        mpfr_max(high.get(), high.get(), product.get(), MPFR_RNDU);
      }
    }
  }
  return Number::between(low, high);
}

Number operator/(const Number& a, const Number& b) {
  if (a.is_nan() || b.is_nan() || (a.infinite() != 0 && b.infinite() != 0)) return Number::nan();
  if (b.infinite() != 0) return Number(0);
  if (b.is_exact() && b.exact() == 0) return Number::nan();
  if (a.is_exact() && b.is_exact()) return Number(mpq_class(a.exact() / b.exact()));
  if (a.infinite() != 0) return Number::infinity(a.infinite() * sign(b));
  Real low = b.upper(), high = b.lower();
  if (mpfr_sgn(low.get()) >= 0 && mpfr_sgn(high.get()) <= 0) throw Undecided("a divisor near zero");
  mpfr_ui_div(low.get(), 1, low.get(), MPFR_RNDD);
  mpfr_ui_div(high.get(), 1, high.get(), MPFR_RNDU);
  return a * Number::between(low, high);
}

Number Number::extreme(const Number& a, const Number& b, int side) {
  if (a.is_nan() || b.is_nan()) return nan();
  if (a.infinite() != 0) return a.infinite() == side ? a : b;
  if (b.infinite() != 0) return b.infinite() == side ? b : a;
  if (a.is_exact() && b.is_exact()) return (cmp(a.exact(), b.exact()) > 0) == (side > 0) ? a : b;
  const auto better = side > 0 ? mpfr_greaterequal_p : mpfr_lessequal_p;
  const Real al = a.lower(), au = a.upper(), bl = b.lower(), bu = b.upper();
  // One beside the other: as it is, exact if it was.
  if (better((side > 0 ? al : au).get(), (side > 0 ? bu : bl).get())) return a;
  if (better((side > 0 ? bl : bu).get(), (side > 0 ? au : al).get())) return b;
  return between(better(al.get(), bl.get()) ? al : bl, better(au.get(), bu.get()) ? au : bu);
}
Number max(const Number& a, const Number& b) { return Number::extreme(a, b, 1); }
Number min(const Number& a, const Number& b) { return Number::extreme(a, b, -1); }

int sign(const Number& a) {
  if (a.infinite() != 0) return a.infinite();
  if (!a.is_exact() && a.is_finite()) {
    if (mpfr_sgn(a.lower().get()) > 0) return 1;
    if (mpfr_sgn(a.upper().get()) < 0) return -1;
    if (Precision::settles()) return 0;
  }
  return sgn(a.exact());
}
int compare(const Number& a, const Number& b) {
  if (a.is_exact() && b.is_exact()) return cmp(a.exact(), b.exact());
  if (a.infinite() != 0 && a.infinite() == b.infinite()) return 0;
  return sign(a - b);
}

mpz_class floor_of(const Number& a) {
  if (!a.is_exact() && a.is_finite()) {
    const Real low = a.lower(), high = a.upper();
    if (!huge_exponent(low.get()) && !huge_exponent(high.get())) {
      const mpz_class below = floor_q(as_rational(low.get()));
      if (below == floor_q(as_rational(high.get()))) return below;
    }
  }
  return floor_q(a.exact());
}
Number integer_number(const mpz_class& value) { return Number(mpq_class(value)); }
Number floor(const Number& a) {
  return a.infinite() != 0 || a.is_nan() ? a : integer_number(floor_of(a));
}
Number ceil(const Number& a) { return -floor(-a); }
Number truncate(const Number& a) { return sign(a) < 0 ? ceil(a) : floor(a); }
Number round_half_even(const Number& a) {
  if (!a.is_finite()) return a;
  const Number half = Number::fraction(1, 2);
  const Number up = floor(a + half);
  if (mpz_even_p(up.exact().get_num_mpz_t())) return up;
  return compare(up - half, a) == 0 ? up - Number(1) : up;
}

namespace {

mpq_class power_of_two(Index e) {
  mpq_class q(1);
  if (e >= 0) {
    mpq_mul_2exp(q.get_mpq_t(), q.get_mpq_t(), static_cast<mp_bitcnt_t>(e));
  } else {
    mpq_div_2exp(q.get_mpq_t(), q.get_mpq_t(), static_cast<mp_bitcnt_t>(-e));
  }
  return q;
}

Number nearest(const mpq_class& q, int precision, Index least, Index top) {
  if (q == 0) return Number(0);
  const mpq_class size = ::abs(q);
  Index exponent = static_cast<Index>(mpz_sizeinbase(q.get_num_mpz_t(), 2)) -
                   static_cast<Index>(mpz_sizeinbase(q.get_den_mpz_t(), 2));
  if (size < power_of_two(exponent)) --exponent;
  const mpq_class unit = power_of_two(std::max(exponent - precision + 1, least));
  const Number steps = round_half_even(Number(mpq_class(size / unit)));
  const mpq_class value = steps.exact() * unit;
  if (value >= power_of_two(top)) return Number::infinity(sgn(q));
  return Number(mpq_class(sgn(q) * value));
}

}  // namespace

Number round_to_format(const Number& a, int precision, Index least, Index top) {
  if (!a.is_finite()) return a;
  if (a.is_exact()) return nearest(a.exact(), precision, least, top);
  const Real low = a.lower(), high = a.upper();
  if (!huge_exponent(low.get()) && !huge_exponent(high.get())) {
    const Number below = nearest(as_rational(low.get()), precision, least, top);
    const Number above = nearest(as_rational(high.get()), precision, least, top);
    if (compare(below, above) == 0) return below;
  }
  return nearest(a.exact(), precision, least, top);
}

}  // namespace oracle
