// SPDX-License-Identifier: Apache-2.0
// What every kind of proof is about: the function, the norms and the domain of a statement.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "bounds/boxes.h"
#include "lipscope/certificate.h"

namespace lipscope {

// A claim that is not proved, and why.
struct Rejected {
  std::string reason;
};

template <class... Args>
[[noreturn]] void reject(fmt::format_string<Args...> text, Args&&... args) {
  throw Rejected{fmt::format(text, std::forward<Args>(args)...)};
}

class Problem {
 public:
  // Borrows both. Rejects a domain of another size, or one that is none.
  Problem(const Graph& graph, const Statement& statement);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const NormPair& norms() const { return statement_.norms; }
  [[nodiscard]] const Domain& domain() const { return statement_.domain; }
  // A box around every value that it has on the domain.
  [[nodiscard]] const Box& box(ValueId id) { return boxes_.at(id); }
  // The graph with a softmax at its end as units, where it ends so; see passes/split_softmax.h.
  [[nodiscard]] const Graph& with_softmax_split();
  // The value of that name that a node makes.
  [[nodiscard]] ValueId value_named(const std::string& name) const;

 private:
  const Graph& graph_;
  const Statement& statement_;
  ValueBoxes boxes_;
  std::optional<Graph> split_;  // networks borrow its operators
};

}  // namespace lipscope
