// SPDX-License-Identifier: Apache-2.0
#include "linalg/softmax/softmax_enclosure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "base/rounding_reference_for_test.h"
#include "linalg/softmax/softmax.h"
#include "linalg/softmax/softmax_exp.h"
#include "linalg/softmax/softmax_kernel.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using reference::Real;
using Random = std::mt19937_64;
using Row = std::vector<double>;

// The exact softmax, to 130 bits. Differences of doubles and their products by lambda are exact
// (long rows: if their entries have similar sizes).
class ExactSoftmax {
 public:
  ExactSoftmax(const Row& x, double lambda)
      : x_(x), lambda_(lambda), z_(x.size() > 10000 ? 400 : 2400), big_(400) {
    top_ =
        lambda > 0 ? *std::max_element(x.begin(), x.end()) : *std::min_element(x.begin(), x.end());
    mpfr_set_zero(sum_, 1);
    for (const double v : x) {
      term(v);
      mpfr_add(sum_, sum_, e_, MPFR_RNDN);
    }
  }
  bool share_inside(std::size_t i, const Interval& bounds) {
    term(x_[i]);
    mpfr_div(e_, e_, sum_, MPFR_RNDN);
    return inside(bounds);
  }
  bool log_sum_inside(const Interval& bounds) {
    mpfr_set_d(z_, top_, MPFR_RNDN);
    mpfr_mul_d(z_, z_, lambda_, MPFR_RNDN);
    mpfr_log(big_, sum_, MPFR_RNDN);
    mpfr_add(z_, z_, big_, MPFR_RNDN);
    return mpfr_cmp_d(z_, bounds.lo) >= 0 && mpfr_cmp_d(z_, bounds.hi) <= 0;
  }

 private:
  void term(double v) {
    mpfr_set_d(z_, v, MPFR_RNDN);
    mpfr_sub_d(z_, z_, top_, MPFR_RNDN);
    mpfr_mul_d(z_, z_, lambda_, MPFR_RNDN);
    mpfr_exp(e_, z_, MPFR_RNDN);
  }
  bool inside(const Interval& bounds) {
    return mpfr_cmp_d(e_, bounds.lo) >= 0 && mpfr_cmp_d(e_, bounds.hi) <= 0;
  }
  const Row& x_;
  double lambda_, top_ = 0;
  Real z_, big_, e_{130}, sum_{160};
};

void check(const Row& x, double lambda, double width) {
  const SoftmaxEnclosure s = softmax_enclosure(x, lambda);
  ASSERT_EQ(s.shares.size(), x.size());
  ExactSoftmax exact(x, lambda);
  // Of a long row every 101st share; the sum is over all.
  for (std::size_t i = 0; i<x.size(); i += x.size()> 10000 ? 101 : 1) {
    const Interval& b = s.shares[i];
    ASSERT_TRUE(exact.share_inside(i, b)) << i << " of " << x.size() << ", lambda " << lambda
                                          << " entry " << x[i] << " in " << b.lo << " " << b.hi;
    ASSERT_TRUE(b.lo >= 0 && b.hi <= 1);
    ASSERT_LE(b.hi - b.lo, width * b.hi + 0x1p-1019) << x[i];
  }
  const Interval& total = s.log_sum_exp;
  ASSERT_TRUE(exact.log_sum_inside(total))
      << x.size() << " lambda " << lambda << " in " << total.lo << " " << total.hi;
  double size = std::max(1.0, std::abs(total.hi));
  for (const double v : x) size = std::max(size, std::abs(lambda * v));
  if (std::isfinite(size)) {
    ASSERT_LE(total.hi - total.lo, 30 * kUnitRoundoff * size);
  }
  EXPECT_EQ(log_sum_exp_enclosure(x, lambda), total);
}

constexpr double kVectorWidth = 2.2e-15, kPlainWidth = 3.6e-15;

TEST(SoftmaxEnclosure, RandomRows) {
  Random r(1);
  for (int trial = 0; trial < 1500; ++trial) {
    Row x(1 + r() % 40);
    const double spread = std::exp2(std::uniform_real_distribution<double>(-60, 12)(r));
    const double shift = trial % 3 == 0 ? 0 : std::uniform_real_distribution<double>(-500, 500)(r);
    for (double& v : x) v = shift + spread * std::normal_distribution<double>()(r);
    const double lambda = std::exp2(std::uniform_real_distribution<double>(-3, 3)(r));
    check(x, trial % 2 == 0 ? lambda : -lambda, kPlainWidth);
  }
}

TEST(SoftmaxEnclosure, ExtremeRows) {
  Random r(2);
  for (int trial = 0; trial < 1500; ++trial) {
    // Any exponent, from subnormal numbers to 1e308.
    Row x(1 + r() % 12);
    const double low = std::uniform_real_distribution<double>(-1074, 1000)(r);
    std::uniform_real_distribution<double> exponent(low, std::min(1023.9, low + 60));
    for (double& v : x) v = std::exp2(exponent(r)) * (r() % 2 == 0 ? 1 : -1);
    if (x.size() > 2) x[1] = x[0];
    const double lambda =
        std::exp2(std::clamp(-low + 10.0 * std::normal_distribution<double>()(r), -1000.0, 1000.0));
    check(x, trial % 2 == 0 ? lambda : -lambda, kPlainWidth);
    check(x, 1, kPlainWidth);
  }
  check({1e308, -1e308, 1e308}, 1, kPlainWidth);
  check({1.7e308, -1.7e308}, 1e-308, kPlainWidth);
  check({1.7e308, -1.7e308}, 1e308, kPlainWidth);
  check({5e-324, 0, -5e-324}, 1, kPlainWidth);
  check({5e-324, 0, -5e-324}, 1e308, kPlainWidth);
  check({-745, 0, -708, -709.5, -744.9, -1100, 1e-17}, 1, kPlainWidth);
  check({0, -0.0}, -1, kPlainWidth);
}

TEST(SoftmaxEnclosure, TiesAndPairs) {
  Random r(3);
  for (int trial = 0; trial < 3000; ++trial) {
    const double a = 50 * std::normal_distribution<double>()(r);
    check({a, a}, 1, kPlainWidth);
    check({a, a + std::ldexp(1.0, -static_cast<int>(r() % 60))}, 1, kPlainWidth);
    check({a}, -3.3, 0);
  }
  const SoftmaxEnclosure one = softmax_enclosure(Row{3.5});
  EXPECT_EQ(one.shares[0], (Interval{1, 1}));
  EXPECT_EQ(one.log_sum_exp, (Interval{3.5, 3.5}));
}

TEST(SoftmaxEnclosure, LongRows) {
  Random r(4);
  for (const double spread : {0.0, 20.0}) {
    Row x(1000000);
    for (double& v : x) v = spread * std::normal_distribution<double>()(r);
    softmax_detail::RowSum sum;
    const bool vector = softmax_detail::vector_sum(x.data(), 1000000, 1, sum);
    check(x, 1, vector ? kVectorWidth : kPlainWidth);
  }
}

TEST(SoftmaxEnclosure, InfiniteAndEmptyRows) {
  const SoftmaxEnclosure ties = softmax_enclosure(Row{kInf, 1, kInf, -kInf, kInf});
  EXPECT_EQ(ties.shares[0], (Interval{div_down(1, 3), div_up(1, 3)}));
  EXPECT_EQ(ties.shares[1], (Interval{0, 0}));
  EXPECT_EQ(ties.log_sum_exp, (Interval{kInf, kInf}));
  const SoftmaxEnclosure low = softmax_enclosure(Row{kInf, 2, 2}, -1);
  EXPECT_EQ(low.shares[0], (Interval{0, 0}));
  EXPECT_TRUE(low.shares[1].lo < 0.5 && low.shares[1].hi > 0.5);
  const SoftmaxEnclosure none = softmax_enclosure(Row{-kInf, -kInf});
  EXPECT_EQ(none.shares[0], (Interval{0, 0}));
  EXPECT_EQ(none.log_sum_exp, (Interval{-kInf, -kInf}));
  EXPECT_EQ(softmax_enclosure(Row{}).log_sum_exp, (Interval{-kInf, -kInf}));
  EXPECT_THROW((void)softmax_enclosure(Row{1, kNaN}), Error);
  EXPECT_THROW((void)softmax_enclosure(Row{1}, 0), Error);
}

// [softmax-kernel-1]: proves |P(r) exp(-r) - 1| <= bound for |r| <= radius. On a cell of radius w
// around c, g(r) = P(r) exp(-r) - 1 is at most |g(c)| + w |g'(c)| + w^2/2 sup |g''|, where
// g' = (P' - P) exp(-r) and g'' = (P'' - 2 P' + P) exp(-r); the last polynomial is bounded by the
// absolute values of its coefficients. 300 bits make every rounding here smaller than 1e-80.
void prove(const double* c, std::size_t degree, double radius, double bound) {
  constexpr int kCells = 20000;
  const auto coefficient = [&](std::size_t k) { return k <= degree ? c[k] : 0.0; };
  double second = 0;
  for (std::size_t k = 0; k <= degree; ++k) {
    // Exact in long double to a few units of 1e-19 relative to the coefficients.
    const auto n = static_cast<long double>(k);
    const long double b = (n + 2) * (n + 1) * static_cast<long double>(coefficient(k + 2)) -
                          2 * (n + 1) * static_cast<long double>(coefficient(k + 1)) +
                          static_cast<long double>(coefficient(k));
    second +=
        static_cast<double>((std::abs(b) + 1e-18L) * std::pow(static_cast<long double>(radius), n));
  }
  second *= 1.01 * std::exp(radius);
  const double w = radius / kCells;
  Real r(300), p(300), slope(300), e(300), g(300);
  double worst = 0;
  for (int cell = -kCells + 1; cell < kCells; cell += 2) {
    mpfr_set_d(r, w * cell, MPFR_RNDN);  // cells overlap by more than the rounding of w * cell
    mpfr_set_d(p, c[degree], MPFR_RNDN);
    mpfr_set_zero(slope, 1);
    for (std::size_t k = degree; k-- > 0;) {
      mpfr_mul(slope, slope, r, MPFR_RNDN);
      mpfr_add(slope, slope, p, MPFR_RNDN);
      mpfr_mul(p, p, r, MPFR_RNDN);
      mpfr_add_d(p, p, c[k], MPFR_RNDN);
    }
    mpfr_neg(e, r, MPFR_RNDN);
    mpfr_exp(e, e, MPFR_RNDN);
    mpfr_sub(slope, slope, p, MPFR_RNDN);
    mpfr_mul(slope, slope, e, MPFR_RNDN);
    mpfr_mul(g, p, e, MPFR_RNDN);
    mpfr_sub_ui(g, g, 1, MPFR_RNDN);
    const double at = std::abs(mpfr_get_d(g, MPFR_RNDA)),
                 rate = std::abs(mpfr_get_d(slope, MPFR_RNDA));
    worst = std::max(worst, at + 1.001 * w * rate + 0.51 * w * w * second);
  }
  EXPECT_LE(worst * (1 + 1e-12), bound);
  EXPECT_GE(worst, 0.9 * bound);  // the bound is not careless either
}

TEST(ExpPolynomial, ErrorIsProved) {
  using softmax_detail::ExpConstants;
  using F = ExpConstants<float>;
  using D = ExpConstants<double>;
  prove(D::kAccurate, D::degree(true), D::kRadius, D::kAccurateError);
  prove(F::kAccurate, F::degree(true), F::kRadius, F::kAccurateError);
  prove(F::kFast, F::degree(false), F::kRadius, F::kFastError);
}

TEST(ExpPolynomial, Constants) {
  using softmax_detail::kLn2Hi, softmax_detail::kLn2Lo;
  Real ln2(200);
  mpfr_const_log2(ln2, MPFR_RNDN);
  EXPECT_EQ(mpfr_get_d(ln2, MPFR_RNDN), kLn2Hi);
  mpfr_sub_d(ln2, ln2, kLn2Hi, MPFR_RNDN);
  EXPECT_LT(mpfr_cmp_d(ln2, next_up(kLn2Lo)), 0);
  EXPECT_GT(mpfr_cmp_d(ln2, kLn2Lo), 0);
  using F = softmax_detail::ExpConstants<float>;
  Real root(200);
  for (int j = 0; j < 8; ++j) {
    mpfr_set_d(root, j / 8.0, MPFR_RNDN);
    mpfr_exp2(root, root, MPFR_RNDN);
    EXPECT_EQ(mpfr_get_flt(root, MPFR_RNDN), F::kRoots[j]);
    mpfr_d_div(root, static_cast<double>(F::kRoots[j]), root, MPFR_RNDN);
    mpfr_sub_ui(root, root, 1, MPFR_RNDN);
    EXPECT_LE(std::abs(mpfr_get_d(root, MPFR_RNDA)), F::kRootError);
  }
}

// [softmax-kernel-3] and [softmax-kernel-5] against single entries: two-entry rows, where the sum
// adds little, and the plain exponential.
TEST(SoftmaxEnclosure, ErrorsAreBelowTheirBounds) {
  Random r(5);
  double plain = 0, share = 0;
  Real z(300), e(300);
  for (int trial = 0; trial < 100000; ++trial) {
    const double top = 10 * std::normal_distribution<double>()(r);
    const double x = top - std::uniform_real_distribution<double>(0, 80)(r);
    const double lambda = trial % 2 == 0 ? 1 : std::uniform_real_distribution<double>(0.5, 1)(r);
    mpfr_set_d(z, x, MPFR_RNDN);
    mpfr_sub_d(z, z, top, MPFR_RNDN);
    mpfr_mul_d(z, z, lambda, MPFR_RNDN);
    mpfr_exp(e, z, MPFR_RNDN);
    mpfr_d_div(z, softmax_detail::plain_term(x, lambda, top), e, MPFR_RNDN);
    mpfr_sub_ui(z, z, 1, MPFR_RNDN);
    plain = std::max(plain, std::abs(mpfr_get_d(z, MPFR_RNDN)));
    double row[] = {x, top};
    softmax_rows(RowLayout::adjacent(1, 2), row, row,
                 {.lambda = lambda, .mode = SoftmaxMode::kAccurate});
    mpfr_add_ui(z, e, 1, MPFR_RNDN);
    mpfr_div(e, e, z, MPFR_RNDN);
    mpfr_d_div(z, row[0], e, MPFR_RNDN);
    mpfr_sub_ui(z, z, 1, MPFR_RNDN);
    share = std::max(share, std::abs(mpfr_get_d(z, MPFR_RNDN)));
  }
  EXPECT_LE(plain, 5.1 * kUnitRoundoff);
  EXPECT_LE(share, 7.7 * kUnitRoundoff);
  RecordProperty("plain_term_in_u", std::to_string(plain / kUnitRoundoff));
  RecordProperty("share_in_u", std::to_string(share / kUnitRoundoff));
}

}  // namespace
}  // namespace lipscope
