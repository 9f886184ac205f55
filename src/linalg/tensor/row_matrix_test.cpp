// SPDX-License-Identifier: Apache-2.0
#include "linalg/tensor/row_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lipscope {
namespace {

std::mt19937_64 row_rng(5);

double entry(const RowMatrix& m, Index row, Index col, bool radius = false) {
  double found = 0;
  m.for_row(row, [&](Index j, std::size_t at) {
    if (j == col) found = radius ? m.radius_at(at) : m.weights[at];
  });
  return found;
}

RowMatrix random(Index rows, Index cols, double share, double radius = 0) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> entries(static_cast<std::size_t>(rows * cols), 0);
  for (double& e : entries) e = uniform(row_rng) < share ? normal(row_rng) : 0;
  return collect_rows(rows, cols, [&](const VisitEntry& visit) {
    for (Index i = rows; i-- > 0;) {
      for (Index j = cols; j-- > 0;) {
        const double e = entries[static_cast<std::size_t>(i * cols + j)];
        visit(i, j, e - (e != 0 ? radius : 0), e + (e != 0 ? radius : 0));
      }
    }
  });
}

TEST(RowMatrix, SparseAndDenseHoldTheSame) {
  const RowMatrix dense = random(9, 7, 0.9), sparse = random(9, 70, 0.05);
  EXPECT_TRUE(dense.dense());
  EXPECT_FALSE(sparse.dense());
  EXPECT_TRUE(dense.radius.empty());
  const RowMatrix back = transposed(transposed(sparse));
  EXPECT_EQ(back.weights, sparse.weights);
  EXPECT_EQ(back.columns, sparse.columns);
}

// Of a dense matrix a quarter is seen before it is known to be one.
TEST(RowMatrix, DenseOnesAreListedOnceAndAQuarter) {
  int visits = 0;
  const RowMatrix m = collect_rows(8, 8, [&](const VisitEntry& visit) {
    for (Index i = 0; i < 64; ++i) {
      ++visits;
      visit(i / 8, i % 8, 7, 7);
    }
  });
  EXPECT_TRUE(m.dense());
  EXPECT_EQ(visits, 16 + 64);
  for (Index i = 0; i < 64; ++i) EXPECT_EQ(entry(m, i / 8, i % 8), 7);
}

TEST(RowMatrix, PiecesAreAdded) {
  const RowMatrix m = collect_rows(2, 40, [](const VisitEntry& visit) {
    visit(1, 30, 0.5, 0.5);
    visit(0, 3, 1, 2);
    visit(1, 30, 0.25, 0.25);
    visit(1, 2, 7, 7);
  });
  EXPECT_NEAR(entry(m, 1, 30), 0.75, 1e-15);
  EXPECT_EQ(entry(m, 1, 2), 7);
  EXPECT_EQ(entry(m, 0, 3), 1.5);
  EXPECT_EQ(entry(m, 0, 3, true), 0.5);
}

// Against sums in long double: the true product lies within the radius.
TEST(RowMatrix, ProductsAndSumsEncloseTheTruth) {
  for (const double share : {0.05, 0.8}) {
    for (const double radius : {0.0, 1e-6}) {
      const RowMatrix a = random(12, 30, share, radius), b = random(30, 25, share, radius),
                      c = random(12, 25, share, radius);
      const RowMatrix ab = product(a, b), total = sum(ab, c);
      for (Index i = 0; i < 12; ++i) {
        for (Index j = 0; j < 25; ++j) {
          // The corners of the intervals furthest out.
          for (const double side : {-1.0, 0.0, 1.0}) {
            long double exact = 0;
            for (Index k = 0; k < 30; ++k) {
              const long double x = entry(a, i, k), y = entry(b, k, j);
              exact += (x + side * entry(a, i, k, true)) * (y + side * entry(b, k, j, true));
            }
            EXPECT_LE(std::fabs(static_cast<double>(exact - entry(ab, i, j))),
                      entry(ab, i, j, true) + 1e-18);
            exact += entry(c, i, j) + side * entry(c, i, j, true);
            EXPECT_LE(std::fabs(static_cast<double>(exact - entry(total, i, j))),
                      entry(total, i, j, true) + 1e-18);
          }
          EXPECT_LE(entry(ab, i, j, true), radius == 0 ? 1e-13 : 1e-3);
        }
      }
    }
  }
}

TEST(RowMatrix, SelectionsAreExact) {
  const RowMatrix a = random(20, 30, 0.1);
  const RowMatrix picked = product(identity_rows(20), a);
  EXPECT_TRUE(picked.radius.empty());
  EXPECT_EQ(picked.weights, a.weights);
}

TEST(RowMatrix, KeepsRowsAndColumns) {
  const RowMatrix a = random(4, 50, 0.1);
  std::vector<bool> rows{true, false, true, true}, cols(50, true);
  cols[7] = cols[8] = false;
  const RowMatrix part = kept(a, rows, cols);
  ASSERT_EQ(part.rows, 3);
  ASSERT_EQ(part.cols, 48);
  EXPECT_EQ(entry(part, 1, 7), entry(a, 2, 9));
  EXPECT_EQ(entry(part, 2, 0), entry(a, 3, 0));
}

TEST(RowMatrix, AppliesToManyVectors) {
  for (const double share : {0.05, 0.9}) {
    const RowMatrix a = random(40, 33, share);
    for (const Index width : {1, 3, 12, 37}) {
      std::vector<double> x(static_cast<std::size_t>(33 * width)),
          y(static_cast<std::size_t>(40 * width), 1);
      std::normal_distribution<double> normal;
      for (double& e : x) e = normal(row_rng);
      add_product(a, x.data(), width, y.data());
      for (Index i = 0; i < 40; ++i) {
        for (Index v = 0; v < width; ++v) {
          double expected = 1;
          for (Index j = 0; j < 33; ++j)
            expected += entry(a, i, j) * x[static_cast<std::size_t>(j * width + v)];
          EXPECT_NEAR(y[static_cast<std::size_t>(i * width + v)], expected, 1e-12);
        }
      }
      if (!a.dense()) continue;
      std::vector<double> back(x.size(), 0);
      add_transposed_product(a, y.data(), width, back.data());
      double expected = 0;
      for (Index i = 0; i < 40; ++i)
        expected += entry(a, i, 5) * y[static_cast<std::size_t>(i * width)];
      EXPECT_NEAR(back[static_cast<std::size_t>(5 * width)], expected, 1e-11);
    }
  }
}

}  // namespace
}  // namespace lipscope
