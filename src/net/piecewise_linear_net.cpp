// SPDX-License-Identifier: Apache-2.0
#include "net/piecewise_linear_net.h"

#include <algorithm>

#include "ops/elementwise/elementwise.h"

namespace lipscope {

Expected<PiecewiseLinearNet> PiecewiseLinearNet::of(const UnitNetwork& network) {
  PiecewiseLinearNet made;
  for (const UnitNode& node : network.nodes) {
    Unit unit{node.size, {}, Vector(static_cast<std::size_t>(node.size), 0), {}, {}};
    if (!std::ranges::all_of(node.bias, is_bounded)) return Reason{"biases that are not finite"};
    std::ranges::transform(node.bias, unit.bias.begin(), midpoint);
    for (const UnitNode::Edge& edge : node.edges)
      unit.edges.push_back(
          {edge.from, edge.map, edge.map.dense() ? RowMatrix{} : transposed(edge.map)});
    if (!node.below.empty()) {
      unit.below = node.below;
      unit.above.assign(unit.below.size(), 1);
    } else if (!node.slopes.empty()) {
      const Elementwise* phi = node.origin != nullptr ? node.origin->op->elementwise() : nullptr;
      const auto beside = phi != nullptr ? slopes_beside_zero(*phi) : std::nullopt;
      if (!beside) return Reason{"an activation that is not linear on both sides of zero"};
      unit.below.assign(static_cast<std::size_t>(node.size), beside->below);
      unit.above.assign(static_cast<std::size_t>(node.size), beside->above);
    }
    made.nodes_.push_back(std::move(unit));
  }
  return made;
}

std::size_t PiecewiseLinearNet::units() const {
  std::size_t count = 0;
  for (const Unit& unit : nodes_) count += unit.below.size();
  return count;
}

PiecewiseLinearNet::Layers PiecewiseLinearNet::values(const Vector& x) const {
  Layers v(nodes_.size());
  Layers out(nodes_.size());
  v[0] = x;
  for (std::size_t k = 1; k < nodes_.size(); ++k) {
    v[k] = nodes_[k].bias;
    for (const Edge& edge : nodes_[k].edges) {
      const Vector& from = edge.from == 0 ? x : out[edge.from];
      add_product(edge.map, from.data(), 1, v[k].data());
    }
    if (!is_unit(k)) continue;
    out[k] = v[k];
    for (std::size_t i = 0; i < out[k].size(); ++i)
      out[k][i] *= v[k][i] > 0 ? nodes_[k].above[i] : nodes_[k].below[i];
  }
  return v;
}

PiecewiseLinearNet::Layers PiecewiseLinearNet::gates(const Layers& values) const {
  Layers g(nodes_.size());
  for (std::size_t k = 1; k < nodes_.size(); ++k) {
    if (!is_unit(k)) continue;
    g[k].resize(values[k].size());
    for (std::size_t i = 0; i < g[k].size(); ++i)
      g[k][i] = values[k][i] > 0 ? nodes_[k].above[i] : nodes_[k].below[i];
  }
  return g;
}

PiecewiseLinearNet::Layers PiecewiseLinearNet::push(const Layers& gates, const Vector& d) const {
  Layers q(nodes_.size()), out(nodes_.size());
  q[0] = d;
  for (std::size_t k = 1; k < nodes_.size(); ++k) {
    q[k].assign(static_cast<std::size_t>(nodes_[k].size), 0);
    for (const Edge& edge : nodes_[k].edges) {
      const Vector& from = edge.from == 0 ? d : out[edge.from];
      add_product(edge.map, from.data(), 1, q[k].data());
    }
    if (!is_unit(k)) continue;
    out[k] = q[k];
    for (std::size_t i = 0; i < out[k].size(); ++i) out[k][i] *= gates[k][i];
  }
  return q;
}

void PiecewiseLinearNet::add_back(const Edge& edge, const Vector& from, Vector& to) const {
  if (edge.map.dense()) {
    add_transposed_product(edge.map, from.data(), 1, to.data());
  } else {
    add_product(edge.back, from.data(), 1, to.data());
  }
}

PiecewiseLinearNet::Layers PiecewiseLinearNet::pull(const Layers& gates, const Vector& w) const {
  Layers g(nodes_.size());
  for (std::size_t k = 0; k < nodes_.size(); ++k)
    g[k].assign(static_cast<std::size_t>(nodes_[k].size), 0);
  g.back() = w;
  for (std::size_t k = nodes_.size(); k-- > 1;) {
    Vector inner = g[k];
    for (std::size_t i = 0; is_unit(k) && i < inner.size(); ++i) inner[i] *= gates[k][i];
    for (const Edge& edge : nodes_[k].edges) add_back(edge, inner, g[edge.from]);
  }
  return g;
}

PiecewiseLinearNet::Vector PiecewiseLinearNet::gradient(const Layers& gates,
                                                        const Layers& partial) const {
  Layers g(nodes_.size());
  for (std::size_t k = 0; k < nodes_.size(); ++k)
    g[k].assign(static_cast<std::size_t>(nodes_[k].size), 0);
  for (std::size_t k = nodes_.size(); k-- > 1;) {
    Vector inner = g[k];
    for (std::size_t i = 0; i < inner.size(); ++i) {
      if (is_unit(k)) inner[i] *= gates[k][i];
      if (!partial[k].empty()) inner[i] += partial[k][i];
    }
    for (const Edge& edge : nodes_[k].edges) add_back(edge, inner, g[edge.from]);
  }
  return g[0];
}

}  // namespace lipscope
