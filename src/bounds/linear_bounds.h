// SPDX-License-Identifier: Apache-2.0
// Backward linear bounds on graphs: a function of the output is bounded by affine functions of one
// value after another, back to the input [local-13].
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bounds/affine_nodes.h"
#include "bounds/boxes.h"
#include "bounds/domain_support.h"

namespace lipscope {

struct EntryLines;

class LinearBounds {
 public:
  struct Options {
    double most_work = 3e10;  // products of numbers, for the ranges of all values
    std::function<bool()> stop = [] { return false; };
  };
  // Borrows the graph and its nodes. The domain has to be bounded. Finds ranges of the values
  // before each node that is not affine; `stop` and the limit cost tightness only.
  LinearBounds(const Graph& graph, const AffineNodes& nodes, const Domain& domain,
               const Options& options);
  ~LinearBounds();

  // Lower bounds on the domain of rows times a value; -infinity where nothing is known.
  [[nodiscard]] std::vector<double> lower(ValueId value, std::span<const double> rows);
  // The same with lines chosen by so many steps of an ascent, until all are above `enough`.
  // Bounds of parts of the domain are in linear_parts.h.
  [[nodiscard]] std::vector<double> raised(ValueId value, std::span<const double> rows,
                                           std::span<const double> enough, int steps);
  // A range of each entry of a value.
  [[nodiscard]] std::vector<Interval> ranges(ValueId value);
  // Boxes that hold every value on the domain.
  [[nodiscard]] ValueBoxes& values() { return values_; }
  // What is known here, for other boxes of the same domain.
  void narrow(ValueBoxes& others);

 private:
  friend class LinearAscent;
  friend class LinearParts;
  using Table = std::vector<std::vector<double>>;
  struct Forms;
  struct Rows;
  [[nodiscard]] const Forms& forms(std::size_t node);
  [[nodiscard]] Forms affine_forms(std::size_t node);
  [[nodiscard]] Forms relaxed_forms(std::size_t node);
  void add_other_lines(const Node& node, Forms& forms);
  [[nodiscard]] double size_of(ValueId id, std::size_t entry);
  // Writes the weights of function r to w[0], w[stride], ...
  using Fill = std::function<void(std::size_t r, double* w, std::size_t stride)>;
  [[nodiscard]] std::vector<double> lower_of(ValueId value, std::size_t count, const Fill& fill);
  [[nodiscard]] std::vector<double> lower_by_box(ValueId value, std::span<const double> rows);
  void make_forms(std::size_t upto);
  void find_terms();
  void find_ranges(const Options& options);
  [[nodiscard]] std::vector<std::size_t> entries_to_narrow(const Node& node, ValueId id);
  [[nodiscard]] std::vector<Interval> narrowed(ValueId id, const std::vector<std::size_t>& entries);
  void pull(const Node& node, const Forms& forms, Rows& rows) const;
  static void pull_cut(const EntryLines& lines, double weight, double share, std::size_t row,
                       double& to, Rows& rows);
  static void pull_multipliers(ValueId id, Rows& rows);
  void run(Rows& rows, std::size_t from) const;
  void gather(const Rows& rows, std::size_t r, std::vector<double>& a) const;
  [[nodiscard]] std::vector<double> finish(const Rows& rows) const;

  const Graph& graph_;
  const AffineNodes& nodes_;
  DomainSupport support_;
  ValueBoxes values_;
  std::vector<std::size_t> maker_;             // by value: position of its node, plus one
  std::vector<double> terms_;                  // by value: most terms that add up to a weight
  std::vector<std::unique_ptr<Forms>> forms_;  // by node
  std::function<bool()> stop_;
};

}  // namespace lipscope
