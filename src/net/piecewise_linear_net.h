// SPDX-License-Identifier: Apache-2.0
// A piecewise linear network whose units have one kink each, at zero: plain arithmetic, made for
// searches that evaluate it very often.
#pragma once

#include <vector>

#include "net/unit_network.h"

namespace lipscope {

class PiecewiseLinearNet {
 public:
  using Vector = std::vector<double>;
  using Layers = std::vector<Vector>;  // one vector per node

  // Of a network read with biases; nothing for one with other units.
  [[nodiscard]] static Expected<PiecewiseLinearNet> of(const UnitNetwork& network);

  [[nodiscard]] std::size_t nodes() const { return nodes_.size(); }
  [[nodiscard]] std::size_t inputs() const { return static_cast<std::size_t>(nodes_[0].size); }
  [[nodiscard]] std::size_t outputs() const { return static_cast<std::size_t>(nodes_.back().size); }
  [[nodiscard]] bool is_unit(std::size_t node) const { return !nodes_[node].below.empty(); }
  [[nodiscard]] std::size_t units() const;
  // Slopes below and above the kink.
  [[nodiscard]] const Vector& below(std::size_t node) const { return nodes_[node].below; }
  [[nodiscard]] const Vector& above(std::size_t node) const { return nodes_[node].above; }

  // Values before the units; those of the last node are the output.
  [[nodiscard]] Layers values(const Vector& x) const;
  [[nodiscard]] Layers gates(const Layers& values) const;
  // d: a change of the input. Changes before the units when these have the given slopes.
  [[nodiscard]] Layers push(const Layers& gates, const Vector& d) const;
  // The gradient of <w, output>, by the values behind the units; that of node 0 is by the input.
  [[nodiscard]] Layers pull(const Layers& gates, const Vector& w) const;
  // Gradients of a function of the values before the units, given its partial derivatives there.
  [[nodiscard]] Vector gradient(const Layers& gates, const Layers& partial) const;

 private:
  struct Edge {
    std::size_t from;
    RowMatrix map, back;  // back: transposed, empty for a dense map
  };
  struct Unit {
    Index size;
    std::vector<Edge> edges;
    Vector bias, below, above;
  };
  void add_back(const Edge& edge, const Vector& from, Vector& to) const;

  std::vector<Unit> nodes_;
};

}  // namespace lipscope
