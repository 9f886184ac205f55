// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "linalg/tensor/row_matrix.h"

namespace lipscope {

// A symmetric matrix by blocks that are made when they are needed. Radii of blocks are not looked
// at.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  [[nodiscard]] virtual const std::vector<Index>& sizes() const = 0;
  // Whether block (i, j) with i > j may have entries.
  [[nodiscard]] virtual bool couples(std::size_t i, std::size_t j) const = 0;
  // Block (i, j) with i > j and couples(i, j): sizes[i] rows, sizes[j] columns.
  [[nodiscard]] virtual RowMatrix below(std::size_t i, std::size_t j) const = 0;
  // How many entries of block (i, j) with i > j and couples(i, j) may not be zero.
  [[nodiscard]] virtual double entries(std::size_t i, std::size_t j) const = 0;
  // Whether block (k, k) is diagonal: eliminated first, it keeps its couplings sparse.
  [[nodiscard]] virtual bool is_diagonal(std::size_t k) const = 0;
  // The diagonal of block (k, k).
  [[nodiscard]] virtual std::vector<double> diagonal(std::size_t k) const = 0;
  // Adds the other entries of block (k, k), row-major with sizes[k]^2 entries; of these the lower
  // triangle counts.
  virtual void add_to_diagonal_block(std::size_t k, double* block) const = 0;
};

// r such that lambda_min >= -r; +inf if the factorisation breaks down or something is not finite.
// [norms-16] Also +inf once `stop`, asked before each block, says so.
[[nodiscard]] double block_definite_deficit_up(const BlockSource& matrix,
                                               const std::function<bool()>& stop = {});

// What is left of the last block, which must not be diagonal, when all others are eliminated: its
// lower triangle; empty where that breaks down. Plain arithmetic.
[[nodiscard]] std::vector<double> block_remainder(const BlockSource& matrix,
                                                  const std::function<bool()>& stop = {});

// Numbers the factorisation holds at a time, and its multiplications with additions.
struct BlockCost {
  double doubles = 0, operations = 0;
};
[[nodiscard]] BlockCost block_cost(const BlockSource& matrix);
// The largest number of entries a row of the factor can have.
[[nodiscard]] double widest_row(const BlockSource& matrix);

}  // namespace lipscope
