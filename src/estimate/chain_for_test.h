// SPDX-License-Identifier: Apache-2.0
// Random small networks and what is known of them, for the tests of the bounds of chains.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "bounds/boxes.h"
#include "estimate/lipsdp_solver.h"
#include "estimate/quotient.h"
#include "estimate/sdp_query.h"
#include "linalg/norm/operator_norm.h"
#include "lipscope/select.h"
#include "net/nets_for_test.h"
#include "tests/support/graph_maker.h"

namespace lipscope::testing_support {

inline Index pick(Rng& rng, std::uint64_t n) { return static_cast<Index>(rng() % n); }

// Up to four layers; dense ones, now and then a convolution or a scaling first, every kind of
// activation.
inline Graph random_chain(Rng& rng) {
  static const char* kNames[] = {"Relu",     "LeakyRelu", "Tanh", "Sigmoid", "Elu", "Gelu",
                                 "Softplus", "Abs",       "Mish", "Neg",     "Silu"};
  GraphMaker m;
  const bool plain = pick(rng, 2) == 0;
  const auto activate = [&](ValueId v) {
    return m.add(plain ? "Relu" : kNames[rng() % std::size(kNames)], {v}, {}, 20);
  };
  ValueId x = pick(rng, 3) == 0 ? m.input({1, 2, 4}) : m.input({1, 1 + pick(rng, 5)});
  if (m.shape(x).size() == 3) {
    x = m.add("Conv", {x, m.weights(random_tensor(rng, {2, 2, 3}, -1, 1))},
              {{"pads", std::vector<Index>{1, 1}}});
    x = m.add("Flatten", {activate(x)});
  }
  for (Index depth = 1 + pick(rng, 3); depth > 0; --depth) {
    const Index n = m.shape(x).back(), k = 1 + pick(rng, 6);
    x = m.add("Gemm", {x, m.weights(random_tensor(rng, {n, k}, -1, 1)),
                       m.weights(random_tensor(rng, {k}, -1, 1))});
    if (pick(rng, 4) == 0) x = m.add("Div", {x, m.weights(random_tensor(rng, {k}, 0.5, 3))});
    x = activate(x);
  }
  const Index n = m.shape(x).back();
  return m.finish(
      m.add("MatMul", {x, m.weights(random_tensor(rng, {n, 1 + pick(rng, 3)}, -1, 1))}));
}

// x + A relu(B x) twice, with a map before and behind.
inline Graph random_residual(Rng& rng) {
  GraphMaker m;
  const Index n = 1 + pick(rng, 4);
  const auto dense = [&](ValueId v, Index to) {
    return m.add("MatMul", {v, m.weights(random_tensor(rng, {m.shape(v).back(), to}, -1, 1))});
  };
  ValueId x = dense(m.input({1, 1 + pick(rng, 4)}), n);
  for (int block = 0; block < 2; ++block) {
    const ValueId inner =
        m.add(pick(rng, 2) == 0 ? "Relu" : "LeakyRelu", {dense(x, 1 + pick(rng, 4))});
    x = m.add("Add", {x, dense(inner, n)});
    if (pick(rng, 2) == 0) x = m.add("Relu", {x});
  }
  return m.finish(dense(m.add("Tanh", {x}), 1 + pick(rng, 3)));
}

// Everywhere, or a small box.
inline Domain random_domain(Rng& rng, const Graph& graph) {
  Domain domain;
  if (pick(rng, 2) == 0) return domain;
  std::vector<double> low(static_cast<std::size_t>(input_size(graph)));
  for (double& e : low) e = std::normal_distribution<double>()(rng);
  std::vector<double> high = low;
  for (double& e : high) e += 0.3;
  domain.box = Box{Tensor::vector(low), Tensor::vector(high)};
  return domain;
}

// The largest proved quotient of a few pairs in the domain of random_domain.
inline double largest_quotient(const Query& query, Rng& rng) {
  const auto size = static_cast<std::size_t>(input_size(*query.graph));
  const auto& box = query.domain.box;
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  double largest = 0;
  for (int pair = 0; pair < 6; ++pair) {
    Witness w{std::vector<double>(size), std::vector<double>(size)};
    for (std::size_t i = 0; i < size; ++i) {
      const double sign = pair % 2 == 0 || normal(rng) > 0 ? 1 : -1;
      w.x[i] = box ? box->lower.doubles()[i] + 0.01 + 0.28 * uniform(rng) : 2 * normal(rng);
      w.y[i] = w.x[i] + (box ? 0.01 : 1e-3) * uniform(rng) * sign;
    }
    if (in_domain(query.domain, w.x) && in_domain(query.domain, w.y))
      largest = std::max(largest, proved_quotient(query, w));
  }
  return largest;
}

// What no multipliers can prove less than, in units of the network; 0 when the search says nothing.
inline double lipsdp_dual(const UnitNetwork& network) {
  double dual = 0;
  solve_lipsdp(
      network, 1e-3, *RunClock::by_wall(HUGE_VAL), [] { return false; },
      [&](const LipsdpGuess& guess) {
        dual = std::max(dual, guess.dual);
        return proves(network, guess.multipliers, guess.rho);
      });
  return std::ldexp(std::sqrt(dual), network.exponent);
}

// The product of the norms of the maps and of the largest slopes.
inline double product_of_layers(const UnitNetwork& network) {
  double product = std::ldexp(1.0, network.exponent);
  for (const UnitNode& node : network.nodes) {
    for (const UnitNode::Edge& edge : node.edges) {
      std::vector<Index> row, col;
      for (Index i = 0; i < edge.map.rows; ++i) {
        edge.map.for_row(i, [&](Index j, std::size_t) {
          row.push_back(i);
          col.push_back(j);
        });
      }
      const SparseView map{edge.map.rows, edge.map.cols, row, col, edge.map.weights};
      product *= sparse_norm(map, parse_norms("2")).upper;
    }
    double slope = node.slopes.empty() ? 1 : 0;
    for (const Interval& s : node.slopes) slope = std::max(slope, magnitude(s));
    product *= slope;
  }
  return product;
}

inline bool is_chain(const UnitNetwork& network) {
  return std::ranges::all_of(network.nodes,
                             [](const UnitNode& node) { return node.edges.size() < 2; });
}

// A chain of dense layers with slopes [lo, hi] whose weights are known up to a radius.
inline UnitNetwork uncertain_chain(Rng& rng, const std::vector<Index>& sizes, double radius) {
  UnitNetwork network;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    UnitNode node;
    node.size = sizes[k];
    node.depth = static_cast<int>(k);
    if (k > 0) {
      const Tensor w = random_tensor(rng, {sizes[k], sizes[k - 1]}, -1, 1);
      RowMatrix map;
      map.rows = sizes[k];
      map.cols = sizes[k - 1];
      map.weights.assign(w.doubles().begin(), w.doubles().end());
      map.radius.assign(map.weights.size(), radius);
      node.edges.push_back({k - 1, std::move(map)});
      const auto low = static_cast<double>(pick(rng, 3)) / 2 - 0.5;
      if (k + 1 < sizes.size())
        node.slopes.assign(static_cast<std::size_t>(sizes[k]), {low, low + 1});
    }
    network.nodes.push_back(std::move(node));
  }
  return network;
}

// The norm of the product for some weights and slopes at their ends.
inline double norm_of_some(const UnitNetwork& chain, const NormPair& norms, Rng& rng) {
  const Index inputs = chain.nodes[0].size;
  std::vector<double> product(static_cast<std::size_t>(inputs * inputs));
  for (Index i = 0; i < inputs; ++i) product[static_cast<std::size_t>(i * (inputs + 1))] = 1;
  for (std::size_t k = 1; k < chain.nodes.size(); ++k) {
    const UnitNode& node = chain.nodes[k];
    const RowMatrix& map = node.edges[0].map;
    std::vector<double> next(static_cast<std::size_t>(node.size * inputs));
    for (Index i = 0; i < node.size; ++i) {
      map.for_row(i, [&](Index j, std::size_t at) {
        const double w = map.weights[at] + (pick(rng, 2) == 0 ? 1 : -1) * map.radius_at(at);
        for (Index c = 0; c < inputs; ++c)
          next[static_cast<std::size_t>(i * inputs + c)] +=
              w * product[static_cast<std::size_t>(j * inputs + c)];
      });
      if (node.slopes.empty()) continue;
      const Interval slope = node.slopes[static_cast<std::size_t>(i)];
      const double s = pick(rng, 2) == 0 ? slope.lo : slope.hi;
      for (Index c = 0; c < inputs; ++c) next[static_cast<std::size_t>(i * inputs + c)] *= s;
    }
    product = std::move(next);
  }
  return matrix_norm({chain.nodes.back().size, inputs, product.data()}, norms).lower;
}

// Dense layers with ReLU between them. Each matrix by rows of its inputs.
inline Graph relu_chain(const std::vector<Tensor>& layers) {
  GraphMaker m;
  ValueId x = m.input({1, layers[0].shape()[0]});
  for (std::size_t k = 0; k < layers.size(); ++k) {
    if (k > 0) x = m.add("Relu", {x});
    x = m.add("MatMul", {x, m.weights(layers[k])});
  }
  return m.finish(x);
}
inline Tensor matrix(Index rows, Index cols, std::vector<double> entries) {
  return Tensor(ElementType::kFloat32, {rows, cols}, std::move(entries));
}

}  // namespace lipscope::testing_support
