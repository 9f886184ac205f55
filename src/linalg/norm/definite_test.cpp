// SPDX-License-Identifier: Apache-2.0
#include "linalg/norm/definite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/rounding.h"

namespace lipscope {
namespace {

TEST(Definite, CholeskyOfNaNIsNoProof) {
  std::vector<double> bad(9, kNaN), inf = {kInf, 0, 0, 0, 1, 0, 0, 0, 1};
  EXPECT_EQ(definite_deficit_up(3, bad.data()), kInf);
  EXPECT_EQ(definite_deficit_up(3, inf.data()), kInf);
  std::vector<double> corner = {1, 0, 0, 0, 1, 0, kNaN, 0, 1};
  EXPECT_EQ(definite_deficit_up(3, corner.data()), kInf);
  std::vector<double> indefinite = {1, 0, 2, 1};
  EXPECT_EQ(definite_deficit_up(2, indefinite.data()), kInf);
  std::vector<double> good = {2, 0, 1, 2};
  EXPECT_LT(definite_deficit_up(2, good.data()), 1e-13);
}

// The assumption behind [norms-5], measured on this BLAS: |F'F - M| <= gamma |F|'|F|.
TEST(Definite, FactorHasTheAssumedBackwardError) {
  std::mt19937_64 r(7);
  std::normal_distribution<double> normal;
  for (const Index n : {1, 2, 7, 33, 64, 130, 257, 300}) {
    std::vector<double> b(static_cast<std::size_t>(n * n));
    for (double& v : b) v = normal(r);
    std::vector<double> m(static_cast<std::size_t>(n * n));
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j <= i; ++j) {
        for (Index k = 0; k < n; ++k) m[i * n + j] += b[i * n + k] * b[j * n + k];
      }
      m[i * n + i] += 1e-9;
    }
    std::vector<double> f = m;
    ASSERT_LT(definite_deficit_up(n, f.data()), kInf);
    const long double gamma = static_cast<long double>(gamma_up(static_cast<std::size_t>(n + 4)));
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j <= i; ++j) {
        long double product = 0, size = 0;
        for (Index k = 0; k <= j; ++k) {
          const long double term =
              static_cast<long double>(f[i * n + k]) * static_cast<long double>(f[j * n + k]);
          product += term;
          size += std::fabs(term);
        }
        ASSERT_LE(std::fabs(product - static_cast<long double>(m[i * n + j])), gamma * size);
      }
    }
  }
}

}  // namespace
}  // namespace lipscope
