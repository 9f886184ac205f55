// SPDX-License-Identifier: Apache-2.0
// Which values of a graph depend on which, and how.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

// Op::matrix of output 0, and the same for functions of single entries that have one slope (Neg).
[[nodiscard]] bool visit_matrix(const Node& node, const MatrixQuery& query,
                                const EntryVisitor& visit);

// Borrows the graph. Remembers what it was asked. Where no floating input reaches the output
// without becoming an integer, what moves starts at the first Gather: a model of token ids.
class Dependence {
 public:
  explicit Dependence(const Graph& graph);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  // Reached from a floating input without becoming an integer on the way.
  [[nodiscard]] bool moves(ValueId id) const { return moves_[id.index]; }
  [[nodiscard]] const Node* maker(ValueId id) const { return maker_[id.index]; }
  [[nodiscard]] const std::vector<const Node*>& users(ValueId id) const { return users_[id.index]; }
  // The only input of a node that moves; nothing when there are none, several, or one twice.
  [[nodiscard]] std::optional<std::size_t> moving_input(const Node& node) const;
  // Whether output 0 is an affine function of all inputs that move, together, and of nothing that
  // jumps when they do.
  [[nodiscard]] bool affine(const Node& node);
  [[nodiscard]] bool depends(ValueId later, ValueId earlier) const;
  // The values between which and `id` all is affine, latest first, `id` included.
  [[nodiscard]] std::vector<ValueId> affine_origins(ValueId id);
  // Whether `id` is an affine function of `origin` alone.
  [[nodiscard]] bool affine_in(ValueId id, ValueId origin);

  // Boxes for asking a node about its matrix: constants as they are, the whole line otherwise.
  [[nodiscard]] std::vector<Box> loose_boxes(const Node& node) const;

 private:
  const Graph& graph_;
  std::vector<bool> moves_;
  std::vector<bool> jumps_;  // depends on what moves, but only through integers
  std::vector<const Node*> maker_;
  std::vector<std::vector<const Node*>> users_;
  std::map<const Node*, bool> affine_;
};

}  // namespace lipscope
