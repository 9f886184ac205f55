// SPDX-License-Identifier: Apache-2.0
// Numbers for the oracle: exact rationals as long as that is affordable, otherwise intervals of
// high precision that hold the real number meant.
#pragma once

#include <gmpxx.h>
#include <mpfr.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace oracle {

using Index = std::int64_t;

// An interval does not settle a question asked of it; more precision may.
struct Undecided : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// No real number: 1/0, the logarithm of -1, an overflowing Cast that is computed with.
struct Undefined : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Not something the oracle can do.
struct Missing : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How precise intervals are in this thread, while it lives.
class Precision {
 public:
  // `settle`: an interval that holds a short fraction is taken for that when a decision asks for
  // it. At some thousand bits a coincidence is out of the question: it is how sqrt(2)^2 = 2.
  Precision(mpfr_prec_t bits, bool settle);
  ~Precision();
  Precision(const Precision&) = delete;
  Precision& operator=(const Precision&) = delete;
  static mpfr_prec_t bits();
  static bool settles();

 private:
  mpfr_prec_t bits_before_;
  bool settled_before_;
};

// An mpfr number that frees itself, of the precision of the moment.
class Real {
 public:
  Real() { mpfr_init2(value_, Precision::bits()); }
  Real(const Real& other) { mpfr_init2(value_, mpfr_get_prec(other.value_)), set(other); }
  Real& operator=(const Real& other) {
    mpfr_set_prec(value_, mpfr_get_prec(other.value_));
    set(other);
    return *this;
  }
  ~Real() { mpfr_clear(value_); }
  mpfr_ptr get() { return value_; }
  mpfr_srcptr get() const { return value_; }

 private:
  void set(const Real& other) { mpfr_set(value_, other.value_, MPFR_RNDN); }
  mpfr_t value_;
};

// Immutable; copies share.
class Number {
 public:
  Number() : Number(Index{0}) {}
  explicit Number(Index value);
  explicit Number(int value) : Number(Index{value}) {}
  explicit Number(double value);  // exactly; infinities and NaN too
  explicit Number(mpq_class value);
  static Number unsigned_integer(std::uint64_t value);
  static Number fraction(Index numerator, Index denominator);
  static Number infinity(int sign);
  static Number nan();
  // Ends that were rounded outwards; equal ones make an exact number.
  static Number between(const Real& lower, const Real& upper);

  bool is_nan() const { return rep_->kind == Kind::kNan; }
  int infinite() const { return rep_->kind == Kind::kInfinite ? rep_->sign : 0; }
  bool is_finite() const { return is_exact() || rep_->kind == Kind::kInterval; }
  bool is_exact() const { return rep_->kind == Kind::kRational; }
  const mpq_class& exact() const;  // Undecided for an interval, unless settled
  Index integer() const;           // the same, and it has to be an integer of 64 bits

  Real lower() const;
  Real upper() const;
  double middle() const;
  std::string text() const;

  friend Number operator+(const Number& a, const Number& b);
  friend Number operator-(const Number& a, const Number& b);
  friend Number operator*(const Number& a, const Number& b);
  friend Number operator/(const Number& a, const Number& b);
  friend Number operator-(const Number& a);
  // Without any decision: the hull of what they may be.
  friend Number max(const Number& a, const Number& b);
  friend Number min(const Number& a, const Number& b);
  // -1, 0, 1.
  friend int sign(const Number& a);
  friend int compare(const Number& a, const Number& b);

 private:
  enum class Kind { kRational, kInterval, kInfinite, kNan };
  struct Rep {
    Kind kind = Kind::kRational;
    mpq_class rational;
    int sign = 0;
    std::unique_ptr<std::pair<Real, Real>> ends;
  };
  explicit Number(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  static Number extreme(const Number& a, const Number& b, int side);
  std::shared_ptr<const Rep> rep_;
};

Number max(const Number& a, const Number& b);
Number min(const Number& a, const Number& b);
int sign(const Number& a);
int compare(const Number& a, const Number& b);

inline bool operator<(const Number& a, const Number& b) { return compare(a, b) < 0; }
inline bool operator==(const Number& a, const Number& b) { return compare(a, b) == 0; }
inline Number abs(const Number& a) { return max(a, -a); }

// Of exact or settled numbers.
mpz_class floor_of(const Number& a);
Number floor(const Number& a);
Number ceil(const Number& a);
Number truncate(const Number& a);
Number round_half_even(const Number& a);
Number integer_number(const mpz_class& value);

// The nearest number with `precision` bits, the smallest positive one being 2^least; infinite where
// it reaches 2^top. Ties to even.
Number round_to_format(const Number& a, int precision, Index least, Index top);

}  // namespace oracle
