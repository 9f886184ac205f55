// SPDX-License-Identifier: Apache-2.0
// Products and factors that are cut into tiles: their values, that they do not depend on threads,
// and that they can be ended.
#include "linalg/tensor/blas.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "base/checkpoint.h"
#include "base/parallel.h"
#include "linalg/tensor/cholesky.h"

namespace lipscope {
namespace {

using Entries64 = std::vector<double>;

Entries64 random_entries(Index count, unsigned seed) {
  std::mt19937_64 rng(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Entries64 out(static_cast<std::size_t>(count));
  for (double& e : out) e = uniform(rng);
  return out;
}

// Small whole numbers: every sum is exact in any order.
template <class T>
std::vector<T> whole_numbers(Index count, unsigned seed) {
  std::mt19937_64 rng(seed);
  std::vector<T> out(static_cast<std::size_t>(count));
  for (T& e : out) e = static_cast<T>(static_cast<int>(rng() % 7) - 3);
  return out;
}

template <class T>
T entry(const MatrixArg<T>& a, Index i, Index j) {
  return a.transposed ? a.data[j * a.stride + i] : a.data[i * a.stride + j];
}

template <class T>
void expect_exact_product(Index m, Index n, Index k, bool turn_a, bool turn_b, T beta) {
  const Index a_stride = (turn_a ? m : k) + 3, b_stride = (turn_b ? k : n) + 1, c_stride = n + 2;
  const std::vector<T> a = whole_numbers<T>((turn_a ? k : m) * a_stride, 1);
  const std::vector<T> b = whole_numbers<T>((turn_b ? n : k) * b_stride, 2);
  const std::vector<T> before = whole_numbers<T>(m * c_stride, 3);
  std::vector<T> c = before;
  const MatrixArg<T> left{a.data(), a_stride, turn_a}, right{b.data(), b_stride, turn_b};
  gemm(m, n, k, T(2), left, right, beta, c.data(), c_stride);
  // Some of all tiles, and beyond the matrix.
  for (Index i = 0; i < m; i += 1 + i % 43) {
    for (Index j = 0; j < c_stride; j += 1 + j % 37) {
      const auto at = static_cast<std::size_t>(i * c_stride + j);
      T sum = 0;
      for (Index s = 0; j < n && s < k; ++s) sum += entry(left, i, s) * entry(right, s, j);
      const T want = j < n ? 2 * sum + beta * before[at] : before[at];
      ASSERT_EQ(c[at], want) << m << "x" << n << "x" << k << " at " << i << ", " << j;
    }
  }
}

TEST(Blas, ProductsAreRight) {
  expect_exact_product<double>(5, 7, 3, false, false, 1.0);
  expect_exact_product<double>(500, 430, 410, false, true, -1.0);
  expect_exact_product<double>(431, 500, 800, true, false, 0.0);
  expect_exact_product<double>(1700, 20, 1600, false, false, 1.0);
  expect_exact_product<double>(20, 1700, 1600, true, true, 1.0);
  expect_exact_product<float>(1700, 20, 1600, true, false, 0.0F);
  expect_exact_product<float>(450, 470, 450, false, false, 1.0F);
}

TEST(Blas, ProductsWithoutDepthScale) {
  Entries64 c{1, 2, 3, 4};
  gemm(2, 2, 0, 1.0, {c.data(), 1}, {c.data(), 2}, 0.5, c.data(), 2);
  EXPECT_EQ(c, (Entries64{0.5, 1, 1.5, 2}));
}

TEST(Blas, MatrixTimesVectorIsRight) {
  const Index rows = 900, cols = 700;
  const Entries64 a = whole_numbers<double>(rows * cols, 4), x = whole_numbers<double>(rows, 5);
  Entries64 y = whole_numbers<double>(rows, 6), turned = whole_numbers<double>(2 * cols, 7);
  const Entries64 y_before = y, turned_before = turned;
  gemv(rows, cols, 1.0, {a.data(), cols}, x.data(), 1, 2.0, y.data(), 1);
  gemv(cols, rows, -1.0, {a.data(), cols, true}, x.data(), 1, 1.0, turned.data(), 2);
  for (Index i = 0; i < rows; ++i) {
    double sum = 2 * y_before[i];
    for (Index j = 0; j < cols; ++j) sum += a[i * cols + j] * x[j];
    ASSERT_EQ(y[i], sum) << i;
  }
  for (Index j = 0; j < cols; ++j) {
    double sum = turned_before[2 * j];
    for (Index i = 0; i < rows; ++i) sum -= a[i * cols + j] * x[i];
    ASSERT_EQ(turned[2 * j], sum) << j;
    ASSERT_EQ(turned[2 * j + 1], turned_before[2 * j + 1]);
  }
}

TEST(Blas, SquaresFillOneTriangle) {
  for (const bool transposed : {false, true}) {
    for (const Triangle triangle : {Triangle::kLower, Triangle::kUpper}) {
      const Index n = 610, k = 790, stride = transposed ? n : k;
      const Entries64 a = whole_numbers<double>(n * k, 8), before = whole_numbers<double>(n * n, 9);
      const MatrixArg<double> arg{a.data(), stride, transposed};
      Entries64 c = before;
      syrk(triangle, n, k, -1.0, arg, 1.0, c.data(), n);
      for (Index i = 0; i < n; i += 1 + i % 23) {
        for (Index j = 0; j < n; j += 1 + j % 29) {
          double want = before[i * n + j];
          const bool inside = triangle == Triangle::kLower ? j <= i : j >= i;
          for (Index s = 0; inside && s < k; ++s) want -= entry(arg, i, s) * entry(arg, j, s);
          ASSERT_EQ(c[i * n + j], want) << i << ", " << j;
        }
      }
    }
  }
}

TEST(Blas, SymmetricProductsLookAtTheUpperTriangle) {
  for (const Index n : {3, 1023, 1300}) {
    Entries64 a = whole_numbers<double>(n * n, 10);
    const Entries64 x = whole_numbers<double>(n, 11);
    Entries64 y(static_cast<std::size_t>(n), NAN);
    symv(n, a.data(), x.data(), y.data());
    copy_upper_to_lower(n, a.data());
    for (Index i = 0; i < n; ++i) {
      double want = 0;
      for (Index j = 0; j < n; ++j) {
        ASSERT_EQ(a[i * n + j], a[j * n + i]);
        want += a[i * n + j] * x[j];
      }
      ASSERT_EQ(y[i], want) << i;
    }
  }
}

// F F' for a lower triangular F of whole numbers with ones on the diagonal: its factor is F.
TEST(Blas, CholeskyFindsTheFactor) {
  for (const Index n : {0, 1, 48, 192, 193, 500, 700}) {
    Entries64 factor = whole_numbers<double>(n * n, 12);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        if (j >= i) factor[i * n + j] = j == i ? 1 : 0;
      }
    }
    Entries64 a(factor.size());
    gemm(n, n, n, 1.0, {factor.data(), n}, {factor.data(), n, true}, 0.0, a.data(), n);
    ASSERT_TRUE(cholesky(n, a.data(), n)) << n;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j <= i; ++j) ASSERT_EQ(a[i * n + j], factor[i * n + j]) << n << " " << i;
    }
  }
}

TEST(Blas, InvertsDefiniteMatrices) {
  for (const Index n : {1, 150, 450}) {
    const Entries64 b = random_entries(n * n, 20);
    Entries64 a(b.size()), both(b.size());
    for (Index i = 0; i < n; ++i) a[i * (n + 1)] = static_cast<double>(n);
    syrk(Triangle::kLower, n, n, 1.0, {b.data(), n}, 1.0, a.data(), n);
    Entries64 inverse = a;
    for (Index i = 0; i < n; ++i) {
      for (Index j = i + 1; j < n; ++j) {
        a[i * n + j] = a[j * n + i];
        inverse[i * n + j] = NAN;  // never looked at
      }
    }
    ASSERT_TRUE(invert_definite(n, inverse.data()));
    gemm(n, n, n, 1.0, {a.data(), n}, {inverse.data(), n}, 0.0, both.data(), n);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        ASSERT_EQ(inverse[i * n + j], inverse[j * n + i]);
        ASSERT_NEAR(both[i * n + j], i == j ? 1 : 0, 1e-12) << n;
      }
    }
    a[0] = -1;
    EXPECT_FALSE(invert_definite(n, a.data()));
  }
}

TEST(Blas, CholeskyBreaksDownWhereItMust) {
  for (const Index n : {2, 300, 600}) {
    for (const Index bad : {Index{0}, n / 2, n - 1}) {
      Entries64 a(static_cast<std::size_t>(n * n));
      for (Index i = 0; i < n; ++i) a[i * (n + 1)] = i == bad ? -1 : 1;
      EXPECT_FALSE(cholesky(n, a.data(), n)) << n << " " << bad;
    }
  }
}

TEST(Blas, SolvesWithTriangles) {
  const Index rows = 700, n = 450;
  Entries64 factor = whole_numbers<double>(n * n, 13);
  for (Index i = 0; i < n; ++i) {
    factor[i * (n + 1)] = 1;
    for (Index j = i + 1; j < n; ++j) factor[i * n + j] = 0;
  }
  const Entries64 x = whole_numbers<double>(rows * n, 14);
  Entries64 b(x.size());
  gemm(rows, n, n, 1.0, {x.data(), n}, {factor.data(), n, true}, 0.0, b.data(), n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = i + 1; j < n; ++j) factor[i * n + j] = NAN;  // never looked at
  }
  solve_lower(rows, n, factor.data(), n, b.data(), n);
  EXPECT_EQ(b, x);
}

TEST(Blas, FindsWhatIsNotFinite) {
  const Index n = 700;
  Entries64 a(static_cast<std::size_t>(n * n), 1.0);
  EXPECT_TRUE(all_finite(n * n, a.data()));
  EXPECT_TRUE(lower_finite(n, a.data()));
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    a[650 * n + 10] = bad;
    EXPECT_FALSE(all_finite(n * n, a.data()));
    EXPECT_FALSE(lower_finite(n, a.data()));
    std::swap(a[650 * n + 10], a[10 * n + 650]);
    EXPECT_FALSE(all_finite(n * n, a.data()));
    EXPECT_TRUE(lower_finite(n, a.data()));
    a[10 * n + 650] = 1;
  }
}

// Random numbers, so that sums in another order would differ.
Entries64 everything() {
  const Index n = 640, k = 900;
  const Entries64 a = random_entries(n * k, 15), b = random_entries(k * n, 16);
  Entries64 out(static_cast<std::size_t>(n * n)), y(static_cast<std::size_t>(n));
  gemm(n, n, k, 1.0, {a.data(), k}, {b.data(), n}, 0.0, out.data(), n);
  gemv(n, k, 1.0, {a.data(), k}, b.data(), 1, 0.0, y.data(), 1);
  out.insert(out.end(), y.begin(), y.end());
  std::vector<float> rough(a.begin(), a.end()), thin(static_cast<std::size_t>(n * 60));
  gemm(n, 60, k, 1.0F, {rough.data(), k}, {rough.data(), 60}, 0.0F, thin.data(), 60);
  out.insert(out.end(), thin.begin(), thin.end());
  const Index large = 1100;
  const Entries64 c = random_entries(large * large, 17);
  Entries64 image(static_cast<std::size_t>(large));
  symv(large, c.data(), a.data(), image.data());
  out.insert(out.end(), image.begin(), image.end());
  Entries64 gram(static_cast<std::size_t>(n * n)), right = random_entries(500 * n, 18);
  syrk(Triangle::kLower, n, k, 1.0, {a.data(), k}, 0.0, gram.data(), n);
  EXPECT_TRUE(cholesky(n, gram.data(), n));
  solve_lower(500, n, gram.data(), n, right.data(), n);
  out.insert(out.end(), gram.begin(), gram.end());
  out.insert(out.end(), right.begin(), right.end());
  return out;
}

TEST(Blas, ThreadsChangeNoBitAndNoWork) {
  const int before = threads();
  set_threads(1);
  errand().work = 0;
  const Entries64 alone = everything();
  const double work = errand().work;
  EXPECT_GT(work, 1e7);
  testing::internal::CaptureStderr();
  for (const int count : {2, 3, 5}) {
    set_threads(count);
    errand().work = 0;
    EXPECT_EQ(everything(), alone) << count;
    EXPECT_EQ(errand().work, work) << count;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  set_threads(before);
}

// A product costs its multiplications and little more, in tiles or not.
TEST(Blas, WorkIsThatOfTheMultiplications) {
  const auto work_of = [](const std::function<void()>& body) {
    const double before = errand().work;
    body();
    return errand().work - before;
  };
  for (const Index n : {200, 1000}) {
    const Entries64 a = random_entries(n * n, 21);
    Entries64 c(a.size());
    const double size = static_cast<double>(n), all = kBlasOperation * size * size * size;
    const double product = work_of([&] {
      gemm(n, n, n, 1.0, {a.data(), n}, {a.data(), n}, 0.0, c.data(), n);
    });
    EXPECT_GT(product, all) << n;
    EXPECT_LT(product, 1.4 * all) << n;
    const double square = work_of([&] {
      syrk(Triangle::kUpper, n, n, 1.0, {a.data(), n}, 0.0, c.data(), n);
    });
    EXPECT_GT(square, 0.5 * all) << n;
    EXPECT_LT(square, 0.7 * all) << n;
  }
}

// Ends the run at the third look.
class EndsSoon final : public Watch {
 public:
  void look(const Errand&) const override {
    if (++looks_ >= 3) throw Stopped{StopCause::kTime};
  }

 private:
  mutable std::atomic<int> looks_ = 0;
};

TEST(Blas, LongProductsCanBeEnded) {
  const Index n = 1000;
  Entries64 a = random_entries(n * n, 19), c(a.size());
  for (Index i = 0; i < n; ++i) a[i * (n + 1)] = 4.0 * static_cast<double>(n);
  const std::vector<std::function<void()>> all{
      [&] {
        gemm(n, n, n, 1.0, {a.data(), n}, {a.data(), n}, 0.0, c.data(), n);
      },
      [&] {
        syrk(Triangle::kUpper, n, n, 1.0, {a.data(), n}, 0.0, c.data(), n);
      },
      [&] { (void)cholesky(n, a.data(), n); },
      [&] { solve_lower(n, n, a.data(), n, c.data(), n); }};
  for (const auto& long_one : all) {
    const Errand before = errand();
    const EndsSoon watch;
    errand() = {};
    errand().watch = &watch;
    EXPECT_THROW(long_one(), Stopped);
    errand() = before;
  }
}

}  // namespace
}  // namespace lipscope
