// SPDX-License-Identifier: Apache-2.0
// From a graph to a UnitNetwork; used by unit_network.cpp.
#pragma once

#include <map>

#include "graph/usage.h"
#include "net/unit_network.h"
#include "net/unit_slopes.h"

namespace lipscope {

// A value as a sum of maps of nodes. No map: the entries of the node as they are.
struct AffineTerm {
  std::size_t node;
  std::optional<RowMatrix> map;
};
using AffineTerms = std::vector<AffineTerm>;

class UnitReader {
 public:
  UnitReader(const Graph& graph, const BoxOf& box, const ReadOptions& options)
      : graph_(graph), box_(box), options_(options), biases_(options.biases) {}
  [[nodiscard]] Expected<UnitNetwork> read();

 private:
  // These are false, with the reason set, where the network cannot have the node.
  bool add(const Node& node);
  bool add_affine(const Node& node, bool several);
  bool add_activation(const Node& node, const class Elementwise& phi);
  bool add_prelu(const Node& node);
  // Units that make the node's result of its first input.
  bool append_units(const Node& node, std::vector<Interval> slopes);
  // selection.cpp
  bool add_max_pool(const Node& node, Windows windows);
  bool reduce_max_pairwise(const Node& node, int round, Windows& windows,
                           std::vector<Interval>& ranges, AffineTerms& terms,
                           std::vector<Interval>& offsets);
  bool add_max_or_min(const Node& node);

  bool refuse(const Node& node, const std::string& why);
  bool has_room(const Node& node, std::size_t more);

  [[nodiscard]] Index entries(ValueId id) const;
  [[nodiscard]] AffineTerms terms_of(ValueId id) const;
  // The same for the only one who asks, without a copy.
  [[nodiscard]] AffineTerms last_terms_of(ValueId id);
  [[nodiscard]] bool moves(ValueId id) const { return values_.contains(id.index); }
  [[nodiscard]] std::vector<Interval> ranges_of(ValueId id) const;
  // The box of a value and what lies between it and the value's offset, if biases are wanted: a
  // function is its offset and a linear map of what comes on top only if it is a line all the way
  // from there. The range of a unit need not hold 0, its offset.
  [[nodiscard]] Box with_offset(ValueId id) const;
  // The slopes of a function that is a line in each entry, in that sense.
  [[nodiscard]] std::optional<std::vector<double>> slopes_of_line(
      ValueId id, const class Elementwise& phi) const;
  std::optional<RowMatrix> matrix(const Node& node, std::size_t k, std::size_t o, bool several);
  // Makes the matrices of large dense layers side by side; matrix() hands them out. `nodes`: those
  // the network is made of.
  void prepare(const std::vector<bool>& nodes, ValueId input);
  // result += map * terms.
  bool add_through(const Node& node, RowMatrix map, const AffineTerms& terms, AffineTerms& result);
  void append(Index size, std::vector<Interval> slopes, AffineTerms terms);
  // The value when the input is zero and so is everything behind functions; empty unless wanted.
  [[nodiscard]] std::vector<Interval> offset_of(ValueId id) const;
  void set_offset(ValueId id, const std::vector<Interval>& offset);
  void set_offsets_behind(const Node& node);  // an affine one

  const Graph& graph_;
  std::vector<bool> used_ = used_values(graph_);
  std::vector<int> users_;  // by value: how many take it
  const BoxOf& box_;
  const ReadOptions& options_;
  bool biases_;
  Index size_ = 0;
  std::string reason_;
  std::map<std::uint32_t, Box> offsets_;
  UnitNetwork net_;
  std::map<const Node*, RowMatrix> ready_;
  std::map<std::uint32_t, AffineTerms> values_;  // of values that depend on the input
  // relu(b - a) for operands a, b of a Max or Min.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> leads_;
};

}  // namespace lipscope
