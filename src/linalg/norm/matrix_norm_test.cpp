// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/rounding.h"
#include "linalg/norm/norm_reference_for_test.h"
#include "linalg/norm/operator_norm.h"

namespace lipscope {
namespace {

using reference::integer;
using reference::kReferenceError;
using reference::Matrix;
using Random = std::mt19937_64;

double uniform(Random& r, double a, double b) {
  return std::uniform_real_distribution<double>(a, b)(r);
}
// Of rank at most `rank`, some rows zero.
std::vector<double> random_matrix(Random& r, Index rows, Index cols, Index rank) {
  std::normal_distribution<double> normal;
  std::vector<double> out(static_cast<std::size_t>(rows * cols));
  if (rank >= std::min(rows, cols)) {
    for (double& v : out) v = normal(r);
  } else {
    for (Index k = 0; k < rank; ++k) {
      std::vector<double> u(static_cast<std::size_t>(rows)), v(static_cast<std::size_t>(cols));
      for (double& x : u) x = normal(r);
      for (double& x : v) x = normal(r);
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; ++j) out[i * cols + j] += u[i] * v[j];
      }
    }
  }
  if (integer(r, 0, 3) == 0) std::fill_n(out.begin() + integer(r, 0, rows - 1) * cols, cols, 0.0);
  return out;
}

Matrix exact(const std::vector<double>& entries, Index rows, Index cols) {
  Matrix a(rows, cols);
  for (std::size_t i = 0; i < entries.size(); ++i) a.at[i] = static_cast<long double>(entries[i]);
  return a;
}

void expect_encloses_norm(const NormBracket& b, long double value, const char* what) {
  EXPECT_LE(static_cast<long double>(b.lower), value * (1 + kReferenceError)) << what << b.how;
  EXPECT_GE(static_cast<long double>(b.upper), value * (1 - kReferenceError)) << what << b.how;
}

TEST(MatrixNorm, SpectralEnclosesTheReference) {
  Random r(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const Index rows = integer(r, 1, 14), cols = integer(r, 1, 14);
    std::vector<double> a = random_matrix(r, rows, cols, integer(r, 1, 14));
    // Scaled so that no entry becomes subnormal: long double could not follow below 1e-300 exactly
    // otherwise, and the width would be that of the entries.
    const double scale = std::pow(10.0, static_cast<double>(integer(r, -300, 300)));
    if (trial % 2 == 1) {
      for (double& v : a) v *= scale;
    }
    const NormBracket b = matrix_norm({rows, cols, a.data()}, parse_norms("2"));
    const long double value = reference::spectral(exact(a, rows, cols));
    expect_encloses_norm(b, value, "spectral ");
    EXPECT_LE(b.upper, b.lower * (1 + 1e-12)) << rows << "x" << cols << " scale " << scale;
  }
}

TEST(MatrixNorm, EntriesOfAllSizesAtOnce) {
  Random r(2);
  for (int trial = 0; trial < 500; ++trial) {
    const Index rows = integer(r, 1, 6), cols = integer(r, 1, 6);
    std::vector<double> a = random_matrix(r, rows, cols, 6);
    for (double& v : a) v *= std::pow(10.0, static_cast<double>(integer(r, -320, 300)));
    const NormBracket b = matrix_norm({rows, cols, a.data()}, parse_norms("2"));
    expect_encloses_norm(b, reference::spectral(exact(a, rows, cols)), "wide range ");
    for (const char* norms : {"1", "inf", "1.5", "3", "inf:1", "2:1", "1.5:3"}) {
      const NormBracket c = matrix_norm({rows, cols, a.data()}, parse_norms(norms));
      EXPECT_LE(c.lower, c.upper) << norms;
      EXPECT_LT(c.upper, kInf) << norms;
    }
  }
}

TEST(MatrixNorm, HoldsForEveryMatrixWithinTheRadius) {
  Random r(3);
  for (int trial = 0; trial < 300; ++trial) {
    const Index rows = integer(r, 1, 8), cols = integer(r, 1, 8);
    const std::vector<double> a = random_matrix(r, rows, cols, 8);
    std::vector<double> radius(a.size());
    const double size = std::pow(10.0, uniform(r, -16, 1));
    for (double& v : radius) v = integer(r, 0, 3) == 0 ? 0 : size * uniform(r, 0, 1);
    for (const char* text : {"2", "1", "inf", "1:3", "1.5:inf", "3", "1.2:2.5", "inf:1"}) {
      const NormPair norms = parse_norms(text);
      const NormBracket b = matrix_norm({rows, cols, a.data(), radius.data()}, norms);
      for (int member = 0; member < 6; ++member) {
        Matrix m = exact(a, rows, cols);
        for (std::size_t i = 0; i < a.size(); ++i) {
          const double t = member < 3 ? (integer(r, 0, 1) == 0 ? -1 : 1) : uniform(r, -1, 1);
          m.at[i] += static_cast<long double>(t) * static_cast<long double>(radius[i]);
        }
        const double p = norms.in.p(), q = norms.out.p();
        long double value = 0;
        if (p == 2 && q == 2) {
          value = reference::spectral(m);
          expect_encloses_norm(b, value, text);
          continue;
        }
        for (int sample = 0; sample < 10; ++sample) {
          std::vector<long double> x(static_cast<std::size_t>(cols));
          for (long double& v : x) v = static_cast<long double>(uniform(r, -1, 1));
          value = std::max(value, reference::quotient(m, x, p, q));
        }
        EXPECT_GE(static_cast<long double>(b.upper), value * (1 - kReferenceError)) << text;
        if (p == 1) {  // exact: the best column
          value = 0;
          for (Index j = 0; j < cols; ++j) {
            std::vector<long double> x(static_cast<std::size_t>(cols));
            x[j] = 1;
            value = std::max(value, reference::quotient(m, x, p, q));
          }
          expect_encloses_norm(b, value, text);
        }
      }
    }
  }
}

// In two dimensions the supremum can be sampled: lower and upper must agree with it.
TEST(MatrixNorm, GeneralNormsAgainstSampling) {
  Random r(4);
  const double exponents[] = {1, 1.0000001, 1.2, 1.5, 2, 2.5, 3, 7, 1000, HUGE_VAL};
  for (int trial = 0; trial < 25; ++trial) {
    const Index rows = integer(r, 1, 4), cols = 2;
    const std::vector<double> a = random_matrix(r, rows, cols, 2);
    Matrix m = exact(a, rows, cols);
    for (const double p : exponents) {
      for (const double q : exponents) {
        const NormBracket b = matrix_norm({rows, cols, a.data()}, {Norm(p), Norm(q)});
        long double value = 0;
        constexpr int kSamples = 400;
        for (int i = 0; i < kSamples; ++i) {
          const double angle = 3.14159265358979 * i / kSamples;
          value = std::max(value, reference::quotient(m,
                                                      {static_cast<long double>(std::cos(angle)),
                                                       static_cast<long double>(std::sin(angle))},
                                                      p, q));
        }
        EXPECT_GE(static_cast<long double>(b.upper), value * (1 - kReferenceError))
            << p << ":" << q;
        EXPECT_LE(static_cast<long double>(b.lower), value * 1.02L) << p << ":" << q;
        EXPECT_GE(static_cast<long double>(b.lower), value * 0.98L) << p << ":" << q;
        // Exact formulas: both sides to rounding.
        if (p == 1 || q == HUGE_VAL) {
          EXPECT_LE(b.upper, b.lower * (1 + 1e-12));
        }
      }
    }
  }
}

TEST(MatrixNorm, UpperBoundsHoldForManyVectors) {
  Random r(5);
  double widest = 1;
  for (int trial = 0; trial < 200; ++trial) {
    const Index rows = integer(r, 1, 12), cols = integer(r, 1, 12);
    const std::vector<double> a = random_matrix(r, rows, cols, 12);
    Matrix m = exact(a, rows, cols);
    const double p = integer(r, 0, 4) == 0 ? HUGE_VAL : 1 + std::pow(10.0, uniform(r, -7, 2));
    const double q = integer(r, 0, 4) == 0 ? 1 : 1 + std::pow(10.0, uniform(r, -7, 2));
    const NormBracket b = matrix_norm({rows, cols, a.data()}, {Norm(p), Norm(q)});
    ASSERT_LE(b.lower, b.upper) << p << ":" << q;
    if (b.upper == 0) continue;
    EXPECT_GT(b.lower, 0.0);
    widest = std::max(widest, b.upper / b.lower);
    for (int sample = 0; sample < 50; ++sample) {
      std::vector<long double> x(static_cast<std::size_t>(cols));
      for (long double& v : x) {
        v = sample % 2 == 0 ? static_cast<long double>(uniform(r, -1, 1))
                            : (integer(r, 0, 1) == 0 ? -1.0L : 1.0L);
      }
      EXPECT_GE(static_cast<long double>(b.upper),
                reference::quotient(m, x, p, q) * (1 - kReferenceError));
    }
  }
  EXPECT_LT(widest, 4.0);
}

TEST(MatrixNorm, GoldenValues) {
  const double a[] = {1, 2, 3, 4};
  const auto check = [&](const char* norms, double value, double width) {
    const NormBracket b = matrix_norm({2, 2, a}, parse_norms(norms));
    EXPECT_LE(b.lower, value * (1 + 1e-12)) << norms;
    EXPECT_GE(b.upper, value * (1 - 1e-12)) << norms;
    EXPECT_LE(b.upper / b.lower, 1 + width) << norms << " " << b.how;
  };
  check("1", 6, 1e-15);
  check("inf", 7, 1e-15);
  check("2", 5.464985704219, 1e-12);
  // Non-negative matrices: the Schur test is sharp.
  check("3", 5.733109524814, 1e-4);
  check("1.5", 5.372514539999, 1e-4);
}

TEST(MatrixNorm, DegenerateAndBadInput) {
  const NormPair two = parse_norms("2");
  const double zero[4] = {0, 0, 0, 0}, one[1] = {-3}, bad[4] = {1, kNaN, 0, 1};
  const double huge[4] = {1, kInf, 0, 1}, negative[4] = {0, -1, 0, 0};
  for (const char* text : {"1", "2", "inf", "1.0000001", "3:1.5", "inf:1"}) {
    const NormPair norms = parse_norms(text);
    EXPECT_EQ(matrix_norm({0, 3, nullptr}, norms).upper, 0);
    EXPECT_EQ(matrix_norm({3, 0, nullptr}, norms).upper, 0);
    EXPECT_EQ(matrix_norm({2, 2, zero}, norms).upper, 0);
    EXPECT_EQ(matrix_norm({1, 1, one}, norms).upper, 3);
    EXPECT_EQ(matrix_norm({1, 1, one}, norms).lower, 3);
    EXPECT_EQ(matrix_norm({2, 2, bad}, norms).upper, kInf);
    EXPECT_EQ(matrix_norm({2, 2, bad}, norms).lower, 0);
    EXPECT_EQ(matrix_norm({2, 2, huge}, norms).upper, kInf);
    EXPECT_EQ(matrix_norm({2, 2, zero, bad}, norms).upper, kInf);
    EXPECT_EQ(matrix_norm({2, 2, zero, negative}, norms).upper, kInf);
    // Largest doubles: the norm exceeds them, the bound says so.
    const double top[4] = {1.7e308, 1.7e308, 1.7e308, 1.7e308};
    const NormBracket b = matrix_norm({2, 2, top}, norms);
    EXPECT_GE(b.upper, 1.7e308);
    EXPECT_LT(b.lower, kInf);
    EXPECT_LE(b.lower, b.upper);
  }
  const double tiny[4] = {5e-324, 0, 0, 5e-324};
  const NormBracket b = matrix_norm({2, 2, tiny}, two);
  EXPECT_GE(b.upper, 5e-324);
  EXPECT_LE(b.upper, 1e-323);
  EXPECT_LE(b.lower, 5e-324);
}

// Power iteration started in the wrong eigenvector would report 1; the upper bound may not.
TEST(MatrixNorm, HiddenTopVectorIsFound) {
  std::vector<double> a(400);
  for (Index i = 0; i < 20; ++i) a[i * 21] = 1;
  a[19 * 21] = 1 + 1e-9;
  const NormBracket b = matrix_norm({20, 20, a.data()}, parse_norms("2"));
  EXPECT_GE(b.upper, 1 + 1e-9);
  EXPECT_LE(b.upper, 1 + 2e-9);
  // Rank one orthogonal to the vector of ones.
  std::vector<double> c = {1, -1, -1, 1};
  EXPECT_GE(matrix_norm({2, 2, c.data()}, parse_norms("2")).upper, 2);
  EXPECT_NEAR(matrix_norm({2, 2, c.data()}, parse_norms("2")).lower, 2, 1e-12);
}

TEST(MatrixNorm, TooLargeToFactorStillBounded) {
  Random r(6);
  const std::vector<double> a = random_matrix(r, 12, 9, 12);
  const NormBracket b = matrix_norm({12, 9, a.data()}, parse_norms("2"), {.max_dense = 4});
  expect_encloses_norm(b, reference::spectral(exact(a, 12, 9)), "no factorisation ");
  EXPECT_LT(b.upper, 3 * b.lower);
}

}  // namespace
}  // namespace lipscope
