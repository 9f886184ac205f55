// SPDX-License-Identifier: Apache-2.0
#include "linalg/softmax/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "linalg/softmax/softmax_kernel.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using Random = std::mt19937_64;
template <class T>
using Row = std::vector<T>;
constexpr float kInfF = std::numeric_limits<float>::infinity();
constexpr double kInfD = std::numeric_limits<double>::infinity();
constexpr SoftmaxMode kModes[] = {SoftmaxMode::kFast, SoftmaxMode::kAccurate};

// Softmax of finite rows in long double; the last entry is the log-sum-exp.
template <class T>
std::vector<long double> exact(const Row<T>& x, double lambda) {
  const auto z = [&](T v) {
    return static_cast<long double>(lambda) * static_cast<long double>(v);
  };
  long double top = -std::numeric_limits<long double>::infinity(), sum = 0;
  for (const T v : x) top = std::max(top, z(v));
  std::vector<long double> s;
  for (const T v : x) s.push_back(std::exp(z(v) - top));
  for (const long double e : s) sum += e;
  for (long double& e : s) e /= sum;
  s.push_back(top + std::log(sum));
  return s;
}

// Error in units of the last place of the exact value, at least the smallest normal number's.
template <class T>
double ulps(T value, long double truth) {
  const long double size =
      std::max(std::abs(truth), static_cast<long double>(std::numeric_limits<T>::min()));
  const long double ulp = std::ldexp(1.0L, std::ilogb(size) - (std::numeric_limits<T>::digits - 1));
  return static_cast<double>(std::abs(static_cast<long double>(value) - truth) / ulp);
}

template <class T>
Row<T> random_row(Random& r, std::size_t n, double spread, double shift = 0) {
  std::uniform_real_distribution<double> u(-spread, spread);
  Row<T> x(n);
  for (T& v : x) v = static_cast<T>(shift + u(r));
  return x;
}

template <class T>
Row<T> softmax(const Row<T>& x, const SoftmaxOptions& options = {}) {
  Row<T> s(x.size());
  softmax_rows(RowLayout::adjacent(1, static_cast<Index>(x.size())), x.data(), s.data(), options);
  return s;
}
template <class T>
Row<T> log_softmax(const Row<T>& x, const SoftmaxOptions& options = {}) {
  Row<T> s(x.size());
  log_softmax_rows(RowLayout::adjacent(1, static_cast<Index>(x.size())), x.data(), s.data(),
                   options);
  return s;
}
template <class T>
T log_sum_exp(const Row<T>& x, const SoftmaxOptions& options = {}) {
  T out = 0;
  log_sum_exp_rows(RowLayout::adjacent(1, static_cast<Index>(x.size())), x.data(), &out, options);
  return out;
}

template <class T>
void check_row(const Row<T>& x, double lambda, double limit, SoftmaxMode mode) {
  const std::vector<long double> truth = exact(x, lambda);
  const SoftmaxOptions options{.lambda = lambda, .mode = mode};
  const Row<T> s = softmax(x, options), logs = log_softmax(x, options);
  const T total = log_sum_exp(x, options);
  const long double lse = truth.back();
  const double u = std::numeric_limits<T>::epsilon() / 2;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double z = static_cast<long double>(lambda) * static_cast<long double>(x[i]);
    ASSERT_LE(ulps(s[i], truth[i]), limit)
        << "n " << x.size() << " lambda " << lambda << " i " << i;
    const double scale = static_cast<double>(std::max({1.0L, std::abs(z), std::abs(lse)}));
    ASSERT_LE(std::abs(static_cast<double>(static_cast<long double>(logs[i]) - (z - lse))),
              6 * u * scale)
        << "n " << x.size() << " lambda " << lambda << " i " << i;
  }
  double size = static_cast<double>(std::max(1.0L, std::abs(lse)));
  for (const T v : x) size = std::max(size, std::abs(lambda * static_cast<double>(v)));
  ASSERT_LE(std::abs(static_cast<double>(static_cast<long double>(total) - lse)), 4 * u * size);
}

template <class T>
void check_rows(std::uint64_t seed) {
  Random r(seed);
  for (const double lambda : {1.0, -1.0, 0.37, -2.5, 8.0, 1e-3}) {
    for (const std::size_t n :
         {1, 2, 3, 7, 8, 9, 15, 16, 31, 33, 64, 65, 100, 512, 1000, 2049, 4096, 10007}) {
      for (const double spread : {0.0, 1e-3, 1.0, 39.9}) {
        const Row<T> x = random_row<T>(r, n, spread / std::abs(lambda), spread == 1 ? 100 : 0);
        check_row(x, lambda, 4, SoftmaxMode::kAccurate);
        check_row(x, lambda, 6, SoftmaxMode::kFast);
      }
    }
  }
}

TEST(Softmax, FloatAgreesWithLongDouble) { check_rows<float>(1); }
TEST(Softmax, DoubleAgreesWithLongDouble) { check_rows<double>(2); }

TEST(Softmax, LongRows) {
  Random r(3);
  for (const std::size_t n : {std::size_t{300001}, std::size_t{2100003}}) {
    const Row<float> x = random_row<float>(r, n, 20);
    const std::vector<long double> truth = exact(x, 1);
    for (const SoftmaxMode mode : kModes) {
      // Odd addresses, as streaming stores do not take them.
      for (const std::size_t offset : {0, 1, 3}) {
        Row<float> s(n + offset + 1, -1);
        softmax_rows(RowLayout::adjacent(1, static_cast<Index>(n)), x.data(), s.data() + offset,
                     {.mode = mode});
        double worst = 0;
        for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, ulps(s[i + offset], truth[i]));
        EXPECT_LE(worst, 4);
        EXPECT_EQ(s.back(), -1);
        EXPECT_EQ(offset == 0 ? -1 : s[offset - 1], -1);
      }
      Row<float> place = x;
      softmax_rows(RowLayout::adjacent(1, static_cast<Index>(n)), place.data(), place.data(),
                   {.mode = mode});
      EXPECT_EQ(place, softmax(x, {.mode = mode}));
    }
  }
}

// The maximum moves from block to block; parts of the row are far below or masked out.
TEST(Softmax, LongRowsWithMovingMaximum) {
  Random r(4);
  for (int kind = 0; kind < 4; ++kind) {
    Row<double> x = random_row<double>(r, 1100000, 3);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double t = static_cast<double>(i) / static_cast<double>(x.size());
      if (kind == 0) x[i] += 700 * t;
      if (kind == 1) x[i] -= 700 * t;
      if (kind == 2) x[i] += i < 5000 ? -1e300 : 5000 * t;
      if (kind == 3 && i < 900000) x[i] = -1e7;
    }
    const std::vector<long double> truth = exact(x, 1);
    const Row<double> s = softmax(x, {.mode = SoftmaxMode::kAccurate});
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (truth[i] > 1e-300L) worst = std::max(worst, ulps(s[i], truth[i]));
      if (truth[i] < 1e-330L) worst = std::max(worst, s[i] == 0 ? 0.0 : kInfD);
    }
    EXPECT_LE(worst, 4) << kind;
    EXPECT_NEAR(log_sum_exp(x), static_cast<double>(truth.back()), 1e-11);
  }
}

TEST(Softmax, PlainAndVectorCodeAgree) {
  Random r(5);
  for (const std::size_t n : {1, 5, 64, 333}) {
    for (const double lambda : {1.0, -0.7}) {
      const Row<float> x = random_row<float>(r, n, 30);
      Row<float> s(n);
      softmax_detail::Rows<float> job{.rows = 1, .length = static_cast<Index>(n)};
      job.x = x.data();
      job.y = s.data();
      job.lambda = lambda;
      softmax_detail::plain_row(job, 0);
      const std::vector<long double> truth = exact(x, lambda);
      for (std::size_t i = 0; i < n; ++i) EXPECT_LE(ulps(s[i], truth[i]), 0.51);
    }
  }
}

// Out of the vector code's range.
TEST(Softmax, LargeLogits) {
  for (const SoftmaxMode mode : kModes) {
    EXPECT_EQ(softmax<float>({1e30f, 1e30f, -3e38f, 0}, {.mode = mode}),
              Row<float>({0.5f, 0.5f, 0, 0}));
    EXPECT_EQ(softmax<double>({1e308, -1e308}, {.lambda = 1e10, .mode = mode}),
              Row<double>({1, 0}));
    EXPECT_EQ(softmax<double>({1e308, -1e308}, {.lambda = -1e10, .mode = mode}),
              Row<double>({0, 1}));
    check_row<float>({123456.5f, 123450.25f, 123457.f}, 1, 4, mode);
    check_row<double>({1e9, 1e9 - 1, 1e9 - 3.5}, 1, 4, mode);
    check_row<double>({1e-200, 3e-200, 2e-200}, 1e200, 4, mode);
    check_row<float>({1e-30f, 3e-30f, 2e-30f}, 1e30, 4, mode);
  }
}

TEST(Softmax, InfiniteLogits) {
  for (const SoftmaxMode mode : kModes) {
    for (const std::size_t n : {5, 2200000}) {
      Row<float> x(n, 1), want(n, 0);
      x[1] = x[4] = kInfF;
      want[1] = want[4] = 0.5f;
      x[3] = -kInfF;
      EXPECT_EQ(softmax(x, {.mode = mode}), want);
      const Row<float> logs = log_softmax(x, {.mode = mode});
      EXPECT_FLOAT_EQ(logs[1], -std::log(2.0f));
      EXPECT_EQ(logs[0], -kInfF);
      EXPECT_EQ(log_sum_exp(x, {.mode = mode}), kInfF);
      // Softmin: the one -inf takes all.
      Row<float> s(n);
      softmin_rows(RowLayout::adjacent(1, static_cast<Index>(n)), x.data(), s.data(),
                   {.mode = mode});
      std::fill(want.begin(), want.end(), 0.f);
      want[3] = 1;
      EXPECT_EQ(s, want);
    }
    // -inf beside finite entries.
    const Row<double> s = softmax<double>({-kInfD, 0, 0, -kInfD}, {.mode = mode});
    EXPECT_EQ(s[0], 0);
    EXPECT_EQ(s[1], 0.5);
    const Row<double> logs = log_softmax<double>({-kInfD, 0, 0}, {.mode = mode});
    EXPECT_EQ(logs[0], -kInfD);
    EXPECT_DOUBLE_EQ(logs[1], -std::log(2.0));
    // Nothing but -inf.
    EXPECT_EQ(softmax<double>({-kInfD, -kInfD}, {.mode = mode}), Row<double>({0, 0}));
    EXPECT_EQ(log_softmax<float>({-kInfF}, {.mode = mode}), Row<float>({-kInfF}));
    EXPECT_EQ(log_sum_exp<double>({-kInfD, -kInfD}, {.mode = mode}), -kInfD);
    EXPECT_EQ(log_sum_exp<double>({}, {.mode = mode}), -kInfD);
    EXPECT_EQ(softmax<double>({}, {.mode = mode}), Row<double>{});
  }
}

TEST(Softmax, LayoutsAndMasks) {
  Random r(6);
  for (const Index n : {1, 4, 33, 700}) {
    for (const Index rows : {1, 3, 40}) {
      const auto count = static_cast<std::size_t>(n * rows);
      const Row<double> x = random_row<double>(r, count, 5);
      Row<double> turned(count), s(count), t(count), lse(static_cast<std::size_t>(rows)),
          lse2 = lse;
      std::vector<std::uint8_t> mask(count), turned_mask(count);
      for (auto& m : mask) m = r() % 4 != 0;
      std::fill(mask.begin(), mask.begin() + n, std::uint8_t{0});
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < n; ++j) {
          const auto a = static_cast<std::size_t>(i * n + j),
                     b = static_cast<std::size_t>(j * rows + i);
          turned[b] = x[a];
          turned_mask[b] = mask[a];
        }
      }
      for (const double lambda : {1.0, -2.0}) {
        const SoftmaxOptions options{.lambda = lambda, .mode = SoftmaxMode::kAccurate};
        softmax_rows(RowLayout::adjacent(rows, n), x.data(), s.data(), options);
        softmax_rows(RowLayout::columns(rows, n), turned.data(), t.data(), options);
        log_sum_exp_rows(RowLayout::adjacent(rows, n), x.data(), lse.data(), options);
        log_sum_exp_rows(RowLayout::columns(rows, n), turned.data(), lse2.data(), options);
        EXPECT_EQ(lse, lse2);
        for (Index i = 0; i < rows; ++i) {
          for (Index j = 0; j < n; ++j) {
            EXPECT_EQ(s[static_cast<std::size_t>(i * n + j)],
                      t[static_cast<std::size_t>(j * rows + i)]);
          }
        }
        // A masked entry is as if it were not there; a row of them is 0.
        SoftmaxOptions masked = options;
        masked.mask = turned_mask.data();
        softmax_rows(RowLayout::columns(rows, n), turned.data(), t.data(), masked);
        for (Index i = 0; i < rows; ++i) {
          Row<double> kept;
          for (Index j = 0; j < n; ++j) {
            if (mask[static_cast<std::size_t>(i * n + j)])
              kept.push_back(x[static_cast<std::size_t>(i * n + j)]);
          }
          const std::vector<long double> truth = exact(kept, lambda);
          std::size_t at = 0;
          for (Index j = 0; j < n; ++j) {
            const double v = t[static_cast<std::size_t>(j * rows + i)];
            if (mask[static_cast<std::size_t>(i * n + j)]) {
              EXPECT_LE(ulps(v, truth[at++]), 4);
            } else {
              EXPECT_EQ(v, 0);
            }
          }
        }
      }
    }
  }
}

TEST(Softmax, RowsApartAndInPlace) {
  Random r(7);
  const Row<float> x = random_row<float>(r, 50 * 70, 4);
  Row<float> apart = x;
  softmax_rows({50, 61, 70, 1}, apart.data(), apart.data());
  for (std::size_t i = 0; i < 50; ++i) {
    const auto row = x.begin() + static_cast<std::ptrdiff_t>(70 * i);
    const Row<float> s = softmax(Row<float>(row, row + 61));
    for (std::size_t j = 0; j < 70; ++j)
      EXPECT_EQ(apart[70 * i + j], j < 61 ? s[j] : x[70 * i + j]);
  }
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "";
}

TEST(Softmax, NanNamesRowAndColumn) {
  for (const SoftmaxMode mode : kModes) {
    for (const Index n : {1, 20, 64, 2000, 2200000}) {
      for (const Index bad : {Index{0}, n / 2, n - 1}) {
        Row<float> x(static_cast<std::size_t>(3 * n), 1);
        x[static_cast<std::size_t>(n + bad)] = std::nanf("");
        const std::string want = "row 1, column " + std::to_string(bad);
        Row<float> y(x.size());
        const RowLayout layout = RowLayout::adjacent(3, n);
        const SoftmaxOptions options{.mode = mode};
        for (const std::string& message :
             {message_of([&] { softmax_rows(layout, x.data(), y.data(), options); }),
              message_of([&] { log_softmax_rows(layout, x.data(), y.data(), options); }),
              message_of([&] { log_sum_exp_rows(layout, x.data(), y.data(), options); })}) {
          EXPECT_NE(message.find(want), std::string::npos) << message;
        }
        std::vector<std::uint8_t> mask(x.size(), 1);
        mask[static_cast<std::size_t>(n + bad)] = 0;
        softmax_rows(layout, x.data(), y.data(), {.mode = mode, .mask = mask.data()});
        const std::string place =
            message_of([&] { softmax_rows(layout, x.data(), x.data(), options); });
        EXPECT_NE(place.find(want), std::string::npos) << place;
      }
    }
    Row<double> columns(60, 2);
    columns[static_cast<std::size_t>(7 * 3 + 2)] = std::nan("");
    const std::string message = message_of([&] {
      softmax_rows(RowLayout::columns(3, 20), columns.data(), columns.data(), {.mode = mode});
    });
    EXPECT_NE(message.find("row 2, column 7"), std::string::npos) << message;
  }
}

TEST(Softmax, LambdaMustBeUsable) {
  Row<double> x = {1, 2};
  for (const double lambda : {0.0, kInfD, std::nan("")}) {
    EXPECT_NE(message_of([&] { (void)softmax(x, {.lambda = lambda}); }).find("lambda"),
              std::string::npos);
  }
}

TEST(Softmax, SharesStayBelowOne) {
  Random r(8);
  for (int trial = 0; trial < 20000; ++trial) {
    Row<float> x = random_row<float>(r, 1 + r() % 3, 20);
    for (const SoftmaxMode mode : kModes) {
      for (const float s : softmax(x, {.mode = mode})) EXPECT_TRUE(s >= 0 && s <= 1) << s;
    }
  }
}

}  // namespace
}  // namespace lipscope
