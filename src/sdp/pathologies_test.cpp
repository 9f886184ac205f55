// SPDX-License-Identifier: Apache-2.0
// Networks on which solvers of the semidefinite bound are known to stall, overflow or give NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "estimate/lipsdp_solver.h"
#include "net/nets_for_test.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using Matrix = std::vector<std::vector<double>>;  // rows: outputs of the layer

class Pathologies : public testing::Test {
 protected:
  Matrix gaussian(std::size_t rows, std::size_t cols, double scale = 1) {
    Matrix m(rows, std::vector<double>(cols));
    for (auto& row : m) {
      for (double& e : row) e = scale * normal_(rng_) / std::sqrt(static_cast<double>(cols));
    }
    return m;
  }

  // The bound of a chain with ReLU between the layers, held as doubles; its gap has to be small.
  double solve(const std::vector<Matrix>& layers, double most = 1e-3) {
    GraphMaker m;
    ValueId x = m.input({1, static_cast<Index>(layers[0][0].size())}, ElementType::kFloat64);
    for (std::size_t k = 0; k < layers.size(); ++k) {
      const Matrix& w = layers[k];
      std::vector<double> entries;
      for (std::size_t j = 0; j < w[0].size(); ++j) {
        for (const auto& row : w) entries.push_back(row[j]);
      }
      const Shape shape{static_cast<Index>(w[0].size()), static_cast<Index>(w.size())};
      x = m.add("MatMul", {x, m.weights(Tensor(ElementType::kFloat64, shape, entries))});
      if (k + 1 < layers.size()) x = m.add("Relu", {x});
    }
    const Graph graph = m.finish(x);
    const auto net = testing_support::units_of({.graph = &graph});
    EXPECT_TRUE(net) << net.reason();
    if (!net) return NAN;
    double best = HUGE_VAL, gap = HUGE_VAL;
    solve_lipsdp(
        *net, 3e-4, *RunClock::by_wall(HUGE_VAL), [] { return false; },
        [&](const LipsdpGuess& guess) {
          if (!proves(*net, guess.multipliers, guess.rho)) return false;
          if (guess.rho < best) {
            best = guess.rho;
            gap = guess.dual > 0 ? std::sqrt(guess.rho / guess.dual) - 1 : 0;
          }
          return true;
        });
    EXPECT_LT(gap, most);
    const double bound = constant_up(*net, best);
    EXPECT_TRUE(std::isfinite(bound));
    return bound;
  }

  // Two layers side by side that do not touch.
  static Matrix beside(const Matrix& a, const Matrix& b, double scale) {
    Matrix both(a.size() + b.size(), std::vector<double>(a[0].size() + b[0].size(), 0));
    for (std::size_t i = 0; i < a.size(); ++i) std::ranges::copy(a[i], both[i].begin());
    for (std::size_t i = 0; i < b.size(); ++i) {
      for (std::size_t j = 0; j < b[i].size(); ++j)
        both[a.size() + i][a[0].size() + j] = scale * b[i][j];
    }
    return both;
  }

 private:
  std::mt19937_64 rng_{3};
  std::normal_distribution<double> normal_;
};

TEST_F(Pathologies, DeadUnits) {
  Matrix a = gaussian(20, 6), b = gaussian(20, 20), c = gaussian(3, 20);
  const double before = solve({a, b, c});
  for (const std::size_t i : {1U, 5U, 6U}) a[i].assign(6, 0);
  for (auto& row : b) row[7] = row[8] = 0;
  for (auto& row : c) row[3] = 0;
  b[4].assign(20, 0);
  EXPECT_LT(solve({a, b, c}), before * 1.001);
}

TEST_F(Pathologies, PartsThatDoNotTouch) {
  const Matrix a = gaussian(12, 5), b = gaussian(12, 12), c = gaussian(2, 12);
  const double alone = solve({a, b, c});
  for (const double scale : {0.5, 0.1, 1e-3, 1e-9}) {
    const double both =
        solve({beside(a, gaussian(12, 5), scale), beside(b, gaussian(12, 12), scale),
               beside(c, gaussian(2, 12), scale)});
    EXPECT_GE(both, alone * 0.999) << scale;
    EXPECT_LE(both, alone * (scale < 0.4 ? 1.001 : 1.5)) << scale;
  }
}

TEST_F(Pathologies, SizesFarApart) {
  const Matrix a = gaussian(10, 4), b = gaussian(10, 10), c = gaussian(3, 10);
  const double usual = solve({a, b, c});
  const auto scaled = [](Matrix m, double factor) {
    for (auto& row : m) {
      for (double& e : row) e *= factor;
    }
    return m;
  };
  EXPECT_NEAR(solve({scaled(a, 1e100), scaled(b, 1e-100), c}), usual, 1e-3 * usual);
  EXPECT_NEAR(solve({scaled(a, 1e-30), b, scaled(c, 1e30)}), usual, 1e-3 * usual);
  // Units rescaled one by one: the same function.
  Matrix rows = a, cols = b;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double factor = std::pow(10.0, static_cast<double>(i % 5) * 4 - 8);
    for (double& e : rows[i]) e *= factor;
    for (auto& row : cols) row[i] /= factor;
  }
  EXPECT_NEAR(solve({rows, cols, c}), usual, 1e-3 * usual);
  // Almost dead.
  Matrix weak = a;
  for (double& e : weak[2]) e *= 1e-14;
  for (double& e : weak[3]) e *= 1e-9;
  EXPECT_LE(solve({weak, b, c}), usual * 1.001);
}

TEST_F(Pathologies, DeepAndNarrow) {
  std::vector<Matrix> layers{gaussian(6, 3)};
  for (int k = 0; k < 198; ++k) layers.push_back(gaussian(6, 6, 2));
  layers.push_back(gaussian(2, 6));
  EXPECT_GT(solve(layers), 0);
  solve({gaussian(1, 7), gaussian(5, 1), gaussian(1, 5), gaussian(4, 1)});
}

TEST_F(Pathologies, DependentRows) {
  Matrix a = gaussian(8, 4);
  for (std::size_t i = 0; i < 4; ++i) a[i + 4] = a[i];  // duplicates
  solve({a, gaussian(5, 8), gaussian(2, 5)});
  Matrix rank_one = gaussian(9, 4);
  for (auto& row : rank_one) row = rank_one[0];
  solve({rank_one, gaussian(5, 9), gaussian(2, 5)});
  // relu(x) - relu(-x) = x twice: exactly 1.
  const Matrix pairs{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}, back{{1, 0, -1, 0}, {0, 1, 0, -1}};
  const double one = solve({pairs, back, pairs, back});
  EXPECT_GE(one, 1);
  // Outliers.
  Matrix large = gaussian(10, 10);
  for (double& e : large[0]) e *= 1000;
  solve({gaussian(10, 5), large, gaussian(3, 10)});
}

TEST_F(Pathologies, VeryWideAndShallow) { solve({gaussian(600, 5), gaussian(3, 600)}); }

}  // namespace
}  // namespace lipscope
