// SPDX-License-Identifier: Apache-2.0
// What is known of a query by those who look for its constant and by those who check what they
// found: its graph is read once as a network of units, and other forms are made of that one, each
// when it is first asked for.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "bounds/boxes.h"
#include "net/local_net.h"

namespace lipscope {

// Borrows the graph. For one thread at a time, until what several ask for is made.
class Problem {
 public:
  // `stop` is asked while ranges of units are found: where it says so there is no local chain.
  explicit Problem(Query query, std::function<bool()> stop = {});
  Problem(const Problem&) = delete;  // forms borrow from one another
  Problem& operator=(const Problem&) = delete;

  [[nodiscard]] const Graph& graph() const { return *query_.graph; }
  [[nodiscard]] const NormPair& norms() const { return query_.norms; }
  [[nodiscard]] const Domain& domain() const { return query_.domain; }
  // A box around every value that it has on the domain.
  [[nodiscard]] const Box& box(ValueId id) { return boxes_.at(id); }
  [[nodiscard]] ValueBoxes& boxes() { return boxes_; }

  // The same function everywhere, with biases. On a bounded domain a softmax at the end counts as
  // units, see passes/split_softmax.h.
  [[nodiscard]] const Expected<UnitNetwork>& network();
  // With slopes on the boxes of the domain, without entries that do not matter, and scaled
  // (trim.h).
  [[nodiscard]] const Expected<UnitNetwork>& units();
  // The same for the map from one value to another.
  [[nodiscard]] Expected<std::shared_ptr<const UnitNetwork>> units_between(ValueId from,
                                                                           ValueId to);

  // `network` as a chain of dense layers.
  [[nodiscard]] const Expected<LayeredNet>& chain();
  // Where memory is short.
  void forget_chain();
  // What is left of it on a bounded domain, where that is much less or it is too large [pieces-9];
  // on that of the query, and with a known list of unstable units or none.
  [[nodiscard]] Expected<LocalNet> chain_on(const Domain& domain,
                                            const std::function<bool()>& stop);
  [[nodiscard]] const Expected<LocalNet>& local_chain();
  [[nodiscard]] Expected<LocalNet> local_chain(const std::optional<UnitNumbers>& unstable);

 private:
  const Graph& chain_graph();
  [[nodiscard]] Expected<UnitNetwork> read_units();
  [[nodiscard]] Expected<LocalNet> whole_chain();

  Query query_;
  std::function<bool()> stop_;
  ValueBoxes boxes_;
  std::optional<std::optional<Graph>> split_;  // networks borrow its operators
  std::optional<Expected<UnitNetwork>> network_, units_;
  std::optional<Expected<LayeredNet>> chain_;
  std::optional<Expected<LocalNet>> local_chain_;
};

}  // namespace lipscope
