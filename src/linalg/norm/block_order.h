// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include "linalg/norm/block_definite.h"

namespace lipscope {

// In which order the blocks of a symmetric matrix are eliminated. Blocks whose diagonal block is
// diagonal and that are not coupled to one another are *thin*: eliminating one takes the square
// roots of its diagonal and keeps the couplings as sparse as they are, so the widest layers of a
// network cost least when they are thin. A thin block comes right before the first of its
// neighbours, so that nothing fills it in.
class BlockOrder {
 public:
  // The cheapest of a few orders.
  explicit BlockOrder(const BlockSource& matrix);

  [[nodiscard]] std::size_t count() const { return nodes_.size(); }
  // What follows is by place in the order.
  [[nodiscard]] std::size_t node(std::size_t place) const { return nodes_[place]; }
  [[nodiscard]] bool thin(std::size_t place) const { return thin_[place]; }
  // Later places in whose rows the factor's column may have entries.
  [[nodiscard]] const std::set<std::size_t>& below(std::size_t place) const {
    return below_[place];
  }
  [[nodiscard]] const BlockCost& cost() const { return cost_; }

 private:
  using Coupled = std::vector<std::vector<bool>>;
  BlockOrder(const BlockSource& matrix, const Coupled& coupled, const std::vector<bool>& thin);
  void find_pattern(const Coupled& coupled);
  void find_cost(const BlockSource& matrix);

  std::vector<std::size_t> nodes_;
  std::vector<bool> thin_;
  std::vector<std::set<std::size_t>> below_;
  BlockCost cost_;
};

}  // namespace lipscope
