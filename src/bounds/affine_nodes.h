// SPDX-License-Identifier: Apache-2.0
// The nodes of a graph that are affine in everything that moves, as sparse matrices [local-13].
#pragma once

#include <optional>
#include <vector>

#include "base/interval.h"
#include "lipscope/graph.h"

namespace lipscope {

// Rows of weights, each within `width` of the true one where that is not empty.
struct SparseRows {
  std::vector<Index> begin = {0};
  std::vector<std::uint32_t> columns;
  std::vector<double> weights, width;
  [[nodiscard]] std::size_t rows() const { return begin.size() - 1; }
};

struct AffineNode {
  struct Block {
    std::size_t input = 0, output = 0;
    SparseRows matrix;
    Index most_terms = 0;  // of a column
  };
  std::vector<Block> blocks;
  std::vector<std::vector<Interval>> constants;  // by output: its value where all that moves is 0
};

// Borrows the graph. Does not depend on a domain: one for all balls.
class AffineNodes {
 public:
  // Matrices of more than `most_entries` in all are not made: such a graph is not `usable`.
  explicit AffineNodes(const Graph& graph, double most_entries = 1.5e7);
  [[nodiscard]] bool usable() const { return usable_; }
  // Null for a node that is not affine.
  [[nodiscard]] const AffineNode* at(std::size_t node) const {
    return nodes_[node] ? &*nodes_[node] : nullptr;
  }
  [[nodiscard]] bool moves(ValueId id) const { return moves_[id.index]; }

 private:
  [[nodiscard]] std::optional<AffineNode> read(const Graph& graph, const Node& node);

  std::vector<std::optional<AffineNode>> nodes_;
  std::vector<bool> moves_;
  double left_ = 0;  // entries that may still be made
  bool usable_ = true;
};

}  // namespace lipscope
