// SPDX-License-Identifier: Apache-2.0
#include "linalg/norm/block_definite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/rounding.h"
#include "linalg/norm/block_order.h"
#include "linalg/norm/definite.h"

namespace lipscope {
namespace {

// A full symmetric matrix read by blocks; what is zero counts as not coupled.
class FullBlocks final : public BlockSource {
 public:
  explicit FullBlocks(std::vector<Index> sizes) : sizes_(std::move(sizes)) {
    for (const Index size : sizes_) {
      begin_.push_back(order_);
      order_ += size;
    }
    entries_.assign(static_cast<std::size_t>(order_ * order_), 0);
  }
  Index order() const { return order_; }
  double& at(std::size_t i, Index r, std::size_t j, Index c) {
    return entries_[static_cast<std::size_t>((begin_[i] + r) * order_ + begin_[j] + c)];
  }
  double at(std::size_t i, Index r, std::size_t j, Index c) const {
    return entries_[static_cast<std::size_t>((begin_[i] + r) * order_ + begin_[j] + c)];
  }
  std::vector<double> full() const { return entries_; }
  void shift(double by) {
    for (Index e = 0; e < order_; ++e) entries_[static_cast<std::size_t>(e * (order_ + 1))] += by;
  }
  void couple(std::size_t i, std::size_t j, double share, std::mt19937_64& rng) {
    std::normal_distribution<double> normal;
    std::bernoulli_distribution some(share);
    for (Index r = 0; r < sizes_[i]; ++r) {
      for (Index c = 0; c < sizes_[j]; ++c) {
        if (i == j && c >= r) continue;
        const double w = some(rng) ? normal(rng) : 0;
        at(i, r, j, c) = w;
        at(j, c, i, r) = w;
      }
    }
  }

  const std::vector<Index>& sizes() const override { return sizes_; }
  bool couples(std::size_t i, std::size_t j) const override { return entries(i, j) > 0; }
  double entries(std::size_t i, std::size_t j) const override {
    double count = 0;
    for (Index r = 0; r < sizes_[i]; ++r) {
      for (Index c = 0; c < sizes_[j]; ++c) count += at(i, r, j, c) != 0 ? 1 : 0;
    }
    return count;
  }
  bool is_diagonal(std::size_t k) const override {
    return entries(k, k) <= static_cast<double>(sizes_[k]);
  }
  RowMatrix below(std::size_t i, std::size_t j) const override {
    return collect_rows(sizes_[i], sizes_[j], [&](const VisitEntry& visit) {
      for (Index r = 0; r < sizes_[i]; ++r) {
        for (Index c = 0; c < sizes_[j]; ++c) visit(r, c, at(i, r, j, c), at(i, r, j, c));
      }
    });
  }
  std::vector<double> diagonal(std::size_t k) const override {
    std::vector<double> result;
    for (Index e = 0; e < sizes_[k]; ++e) result.push_back(at(k, e, k, e));
    return result;
  }
  void add_to_diagonal_block(std::size_t k, double* block) const override {
    for (Index r = 0; r < sizes_[k]; ++r) {
      for (Index c = 0; c < r; ++c) block[r * sizes_[k] + c] += at(k, r, k, c);
    }
  }

 private:
  std::vector<Index> sizes_, begin_;
  Index order_ = 0;
  std::vector<double> entries_;
};

// Shifted so that its least eigenvalue is about `least`, by the proof for full matrices.
void set_least_eigenvalue(FullBlocks& matrix, double least) {
  double low = 0, high = 1;
  const auto definite = [&](double by) {
    FullBlocks copy = matrix;
    copy.shift(by);
    std::vector<double> full = copy.full();
    return definite_deficit_up(matrix.order(), full.data()) < kInf;
  };
  while (!definite(high)) high *= 2;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    (definite(middle) ? high : low) = middle;
  }
  matrix.shift(high + least);
}

FullBlocks random_blocks(std::mt19937_64& rng) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(rng() % n); };
  std::vector<Index> sizes;
  const std::size_t count = 1 + below(6);
  for (std::size_t k = 0; k < count; ++k) sizes.push_back(static_cast<Index>(1 + below(9)));
  FullBlocks matrix(sizes);
  for (std::size_t i = 0; i < count; ++i) {
    if (below(3) == 0) matrix.couple(i, i, 0.5, rng);
    for (std::size_t j = 0; j < i; ++j) {
      if (below(3) == 0 || i == j + 1) matrix.couple(i, j, below(2) == 0 ? 1 : 0.4, rng);
    }
  }
  return matrix;
}

TEST(BlockDefinite, AgreesWithTheProofForFullMatrices) {
  std::mt19937_64 rng(5);
  for (int trial = 0; trial < 300; ++trial) {
    FullBlocks matrix = random_blocks(rng);
    set_least_eigenvalue(matrix, 1e-6);
    EXPECT_LT(block_definite_deficit_up(matrix), 1e-9) << trial;
    matrix.shift(-2e-6);
    EXPECT_EQ(block_definite_deficit_up(matrix), kInf) << trial;
  }
}

// diag(2, 4) and a full block of 2 behind it: [[5, 1], [1, 3]] - [[1, 1], [1, 0]]' of halves.
TEST(BlockDefinite, RemainderIsTheSchurComplement) {
  FullBlocks matrix({2, 2});
  matrix.at(0, 0, 0, 0) = 2;
  matrix.at(0, 1, 0, 1) = 4;
  const double last[2][2] = {{5, 1}, {1, 3}}, beside[2][2] = {{1, 2}, {2, 0}};
  for (Index r = 0; r < 2; ++r) {
    for (Index c = 0; c < 2; ++c) {
      matrix.at(1, r, 1, c) = last[r][c];
      matrix.at(1, r, 0, c) = matrix.at(0, c, 1, r) = beside[r][c];
    }
  }
  const std::vector<double> left = block_remainder(matrix);
  ASSERT_EQ(left.size(), 4U);
  EXPECT_NEAR(left[0], 5 - 0.5 - 1, 1e-14);
  EXPECT_NEAR(left[2], 1 - 1, 1e-14);
  EXPECT_NEAR(left[3], 3 - 2, 1e-14);
  EXPECT_TRUE(block_remainder(matrix, [] { return true; }).empty());
}

TEST(BlockDefinite, StopsWhenAsked) {
  std::mt19937_64 rng(6);
  FullBlocks matrix = random_blocks(rng);
  set_least_eigenvalue(matrix, 1);
  EXPECT_EQ(block_definite_deficit_up(matrix, [] { return true; }), kInf);
}

TEST(BlockOrder, ThinBlocksAreDiagonalApartAndBeforeTheirNeighbours) {
  std::mt19937_64 rng(8);
  for (int trial = 0; trial < 300; ++trial) {
    const FullBlocks matrix = random_blocks(rng);
    const BlockOrder order(matrix);
    std::vector<std::size_t> nodes;
    for (std::size_t p = 0; p < order.count(); ++p) {
      nodes.push_back(order.node(p));
      if (!order.thin(p)) continue;
      EXPECT_TRUE(matrix.is_diagonal(order.node(p)));
      for (std::size_t q = 0; q < order.count(); ++q) {
        if (q == p || matrix.entries(order.node(p), order.node(q)) == 0) continue;
        EXPECT_FALSE(order.thin(q));
        EXPECT_GT(q, p);
        EXPECT_TRUE(order.below(p).contains(q));
      }
    }
    std::ranges::sort(nodes);
    for (std::size_t k = 0; k < nodes.size(); ++k) EXPECT_EQ(nodes[k], k);
  }
}

// A wide layer between narrow ones, as of a convolution before a pool.
TEST(BlockOrder, AWideLayerCostsWhatItsNeighboursCost) {
  std::mt19937_64 rng(9);
  FullBlocks matrix({6, 200, 5, 3});
  matrix.couple(1, 0, 0.05, rng);
  matrix.couple(2, 1, 0.05, rng);
  matrix.couple(3, 2, 1, rng);
  const BlockOrder order(matrix);
  EXPECT_EQ(order.node(0), 1U);
  EXPECT_TRUE(order.thin(0));
  EXPECT_LT(order.cost().doubles, 200);
  EXPECT_LT(order.cost().operations, 20000);
}

}  // namespace
}  // namespace lipscope
