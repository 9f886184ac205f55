// SPDX-License-Identifier: Apache-2.0
#include "estimate/gated_net.h"

#include <algorithm>

#include "bounds/boxes.h"
#include "estimate/quotient.h"
#include "lipscope/evaluate.h"
#include "ops/elementwise.h"
#include "sdp/network.h"

namespace lipscope {
namespace {

constexpr Index kMost = 60'000;

}  // namespace

std::optional<GatedNet> GatedNet::read(const Graph& graph, const Domain& domain,
                                       std::string& reason) {
  ValueBoxes boxes(graph, input_boxes(graph, domain));
  const auto net = read_sdp_network(
      graph, [&](ValueId id) -> const Box& { return boxes.at(id); }, kMost, reason);
  if (!net) return std::nullopt;
  GatedNet made;
  for (const SdpNode& node : net->nodes) {
    Unit unit{node.size, {}, Vector(static_cast<std::size_t>(node.size), 0), {}, {}};
    for (const SdpNode::Edge& edge : node.edges)
      unit.edges.push_back(
          {edge.from, edge.map, edge.map.dense() ? RowMatrix{} : transposed(edge.map)});
    if (!node.below.empty()) {
      unit.below = node.below;
      unit.above.assign(unit.below.size(), 1);
    } else if (!node.slopes.empty()) {
      const auto* phi = node.origin != nullptr
                            ? dynamic_cast<const Elementwise*>(node.origin->op.get())
                            : nullptr;
      const auto beside = phi != nullptr ? slopes_beside_zero(*phi) : std::nullopt;
      if (!beside) {
        reason = "an activation that is not linear on both sides of zero";
        return std::nullopt;
      }
      unit.below.assign(static_cast<std::size_t>(node.size), beside->below);
      unit.above.assign(static_cast<std::size_t>(node.size), beside->above);
    }
    made.nodes_.push_back(std::move(unit));
  }
  // Biases from the values at one point of the domain.
  Vector x(made.inputs(), 0);
  DomainProjection(graph, domain).apply(x);
  const Trace trace(graph, split_inputs(graph, x));
  Layers seen = made.values(x);
  for (std::size_t k = 1; k < made.nodes_.size(); ++k) {
    const ValueId id =
        k + 1 == made.nodes_.size() ? graph.outputs()[0] : net->nodes[k].origin->inputs[0];
    const auto value = trace.value(id).doubles();
    std::ranges::copy(value, seen[k].begin());
    Vector sum(seen[k].size(), 0);
    for (const Edge& edge : made.nodes_[k].edges) {
      Vector from = edge.from == 0 ? x : seen[edge.from];
      if (edge.from != 0) {
        const Unit& unit = made.nodes_[edge.from];
        for (std::size_t i = 0; i < from.size(); ++i)
          from[i] *= from[i] > 0 ? unit.above[i] : unit.below[i];
      }
      add_product(edge.map, from.data(), 1, sum.data());
    }
    for (std::size_t i = 0; i < sum.size(); ++i) made.nodes_[k].bias[i] = seen[k][i] - sum[i];
  }
  return made;
}

std::size_t GatedNet::units() const {
  std::size_t count = 0;
  for (const Unit& unit : nodes_) count += unit.below.size();
  return count;
}

GatedNet::Layers GatedNet::values(const Vector& x) const {
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

GatedNet::Layers GatedNet::gates(const Layers& values) const {
  Layers g(nodes_.size());
  for (std::size_t k = 1; k < nodes_.size(); ++k) {
    if (!is_unit(k)) continue;
    g[k].resize(values[k].size());
    for (std::size_t i = 0; i < g[k].size(); ++i)
      g[k][i] = values[k][i] > 0 ? nodes_[k].above[i] : nodes_[k].below[i];
  }
  return g;
}

GatedNet::Layers GatedNet::push(const Layers& gates, const Vector& d) const {
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

void GatedNet::add_back(const Edge& edge, const Vector& from, Vector& to) const {
  if (edge.map.dense()) {
    add_transposed_product(edge.map, from.data(), 1, to.data());
  } else {
    add_product(edge.back, from.data(), 1, to.data());
  }
}

GatedNet::Layers GatedNet::pull(const Layers& gates, const Vector& w) const {
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

GatedNet::Vector GatedNet::gradient(const Layers& gates, const Layers& partial) const {
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
