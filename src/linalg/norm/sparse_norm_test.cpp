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
using reference::Matrix;
using Random = std::mt19937_64;

TEST(SparseNorm, AgreesWithDense) {
  Random r(8);
  for (int trial = 0; trial < 300; ++trial) {
    const Index rows = integer(r, 1, 12), cols = integer(r, 1, 12);
    std::vector<Index> row, col;
    std::vector<double> weight;
    Matrix m(rows, cols);
    for (Index k = integer(r, 0, 30); k > 0; --k) {
      row.push_back(integer(r, 0, rows - 1));
      col.push_back(integer(r, 0, cols - 1));
      weight.push_back(std::uniform_real_distribution<double>(-1, 1)(r));
      m(row.back(), col.back()) += static_cast<long double>(weight.back());
    }
    const SparseView map{rows, cols, row, col, weight};
    const long double value = reference::spectral(m);
    const NormBracket two = sparse_norm(map, parse_norms("2"));
    EXPECT_LE(static_cast<long double>(two.lower), value * (1 + 1e-17L));
    EXPECT_GE(static_cast<long double>(two.upper), value * (1 - 1e-17L));
    EXPECT_LE(two.upper, two.lower * (1 + 1e-12));
    std::vector<double> dense(m.at.size());
    for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = static_cast<double>(m.at[i]);
    for (const char* text : {"1", "inf", "1.5", "3:1.2", "inf:2", "1.1:4"}) {
      const NormBracket s = sparse_norm(map, parse_norms(text));
      const NormBracket d = matrix_norm({rows, cols, dense.data()}, parse_norms(text));
      EXPECT_LE(s.lower, s.upper);
      EXPECT_LE(s.lower, d.upper * (1 + 1e-12)) << text;
      EXPECT_GE(s.upper, d.lower * (1 - 1e-12)) << text;
    }
  }
}

TEST(SparseNorm, PoolsAndPermutations) {
  // Non-overlapping windows of four on 4000 cells: components are found, 1/4 * 4^(1 - 1/p).
  std::vector<Index> row, col;
  std::vector<double> weight;
  for (Index i = 0; i < 4000; ++i) {
    row.push_back(i / 4);
    col.push_back(i);
    weight.push_back(0.25);
  }
  const SparseView pool{1000, 4000, row, col, weight};
  for (const double p : {1.0, 1.5, 2.0, 3.0}) {
    const NormBracket b = sparse_norm(pool, {Norm(p), Norm(p)});
    EXPECT_NEAR(b.upper, std::pow(4, -1 / p), 1e-12);
    EXPECT_NEAR(b.lower, std::pow(4, -1 / p), 1e-12);
  }
  // p > q: the blocks add up in r.
  const NormBracket b = sparse_norm(pool, parse_norms("inf:1"));
  EXPECT_NEAR(b.upper, 1000, 1e-9);
  EXPECT_NEAR(b.lower, 1000, 1e-9);
}

TEST(DiagonalNorm, HoelderExponent) {
  const double d[] = {3, 0, 4};
  EXPECT_EQ(diagonal_norm_up(d, parse_norms("2")), 4);
  EXPECT_EQ(diagonal_norm_up(d, parse_norms("1:3")), 4);
  EXPECT_EQ(diagonal_norm_up(d, parse_norms("inf:1")), 7);
  EXPECT_NEAR(diagonal_norm_up(d, parse_norms("inf:2")), 5, 1e-14);
  EXPECT_NEAR(diagonal_norm_up(d, parse_norms("2:1")), 5, 1e-13);
  EXPECT_GE(diagonal_norm_up(d, parse_norms("2:1")), 5);
  EXPECT_LE(diagonal_norm_down(d, parse_norms("2:1")), 5);
  EXPECT_EQ(norm_equivalence_up(9, Norm(2), Norm(1)), 3);
  EXPECT_EQ(norm_equivalence_up(9, Norm::infinity(), Norm(1)), 9);
  EXPECT_EQ(norm_equivalence_up(9, Norm(1), Norm(2)), 1);
  EXPECT_EQ(norm_equivalence_up(0, Norm(2), Norm(1)), 0);
}

}  // namespace
}  // namespace lipscope
