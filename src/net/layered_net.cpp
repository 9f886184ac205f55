// SPDX-License-Identifier: Apache-2.0
#include "net/layered_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/checkpoint.h"
#include "base/rounding.h"
#include "net/unit_network.h"

namespace lipscope {
namespace {

// The nodes of a layer come first, then what passes through, each as a block of entries.
struct Layout {
  std::map<std::size_t, Index> begin;  // of the entries of a node
  Index size = 0;

  void add(std::size_t node, Index entries) {
    begin[node] = size;
    size += entries;
  }
};

class Lowering {
 public:
  explicit Lowering(const UnitNetwork& net) : net_(net) {
    const std::size_t end = net_.nodes.size() - 1;
    std::vector<int> last_use(net_.nodes.size(), 0);
    for (const UnitNode& node : net_.nodes) {
      for (const UnitNode::Edge& edge : node.edges)
        last_use[edge.from] = std::max(last_use[edge.from], node.depth);
    }
    layouts_.emplace_back();
    layouts_[0].add(0, net_.nodes[0].size);
    for (int depth = 1; depth <= net_.nodes[end].depth; ++depth) {
      const Layout& before = layouts_.back();
      Layout after;
      for (std::size_t k = 1; k <= end; ++k) {
        if (net_.nodes[k].depth == depth) after.add(k, net_.nodes[k].size);
      }
      std::vector<std::size_t> passing;
      for (const auto& [node, begin] : before.begin) {
        if (last_use[node] > depth) passing.push_back(node);
      }
      for (const std::size_t node : passing) after.add(node, net_.nodes[node].size);
      weights_ += before.size * after.size;
      layouts_.push_back(std::move(after));
    }
  }

  [[nodiscard]] Index weights() const { return weights_; }

  [[nodiscard]] LayeredNet lower() const {
    LayeredNet made;
    for (std::size_t k = 1; k < layouts_.size(); ++k)
      made.layers.push_back(layer(layouts_[k - 1], layouts_[k], static_cast<int>(k)));
    return made;
  }

 private:
  DenseLayer layer(const Layout& before, const Layout& after, int depth) const {
    DenseLayer made;
    made.in = before.size;
    made.out = after.size;
    const auto entries = static_cast<std::size_t>(after.size);
    charge(5 * static_cast<double>(made.in) * static_cast<double>(made.out));
    made.weights.assign(static_cast<std::size_t>(made.in * made.out), 0);
    made.radius = made.weights;
    made.bias.assign(entries, point(0));
    const bool last = depth == net_.nodes.back().depth;
    std::vector<UnitForm> units(last ? 0 : entries);
    for (const auto& [k, begin] : after.begin) {
      const UnitNode& node = net_.nodes[k];
      if (node.depth != depth) {
        for (Index i = 0; i < node.size; ++i)
          made.weights[static_cast<std::size_t>((begin + i) * made.in + before.begin.at(k) + i)] =
              1;
        continue;
      }
      for (const UnitNode::Edge& edge : node.edges) place(edge, begin, before, made);
      std::ranges::copy(node.bias, made.bias.begin() + begin);
      if (last) continue;
      const NodeForms forms(node);
      for (Index i = 0; i < node.size; ++i)
        units[static_cast<std::size_t>(begin + i)] = forms[static_cast<std::size_t>(i)];
    }
    for (const UnitForm& unit : units) made.add_unit(unit);
    if (std::ranges::all_of(made.radius, [](double r) { return r == 0; })) made.radius.clear();
    return made;
  }

  static void place(const UnitNode::Edge& edge, Index row, const Layout& before, DenseLayer& made) {
    const Index column = before.begin.at(edge.from);
    for (Index i = 0; i < edge.map.rows; ++i) {
      edge.map.for_row(i, [&](Index j, std::size_t at) {
        const auto to = static_cast<std::size_t>((row + i) * made.in + column + j);
        made.weights[to] = edge.map.weights[at];
        made.radius[to] = edge.map.radius_at(at);
      });
    }
  }

  const UnitNetwork& net_;
  std::vector<Layout> layouts_;  // by depth
  Index weights_ = 0;
};

}  // namespace

Index LayeredNet::size() const {
  Index size = 0;
  for (const DenseLayer& layer : layers) size += layer.in * layer.out;
  return size;
}

void DenseLayer::add_unit(const UnitForm& form) {
  below.push_back(form.below);
  above.push_back(form.above);
  slopes.push_back(form.slopes);
  phi.push_back(form.phi);
  if (!form.linear && linear.empty()) return;
  linear.resize(below.size());
  linear.back() = form.linear;
}

bool LayeredNet::piecewise_linear() const {
  return std::ranges::all_of(layers, [](const DenseLayer& layer) {
    for (std::size_t i = 0; i < layer.below.size(); ++i) {
      if (std::isnan(layer.below[i]) && !layer.form(i).linear) return false;
    }
    return true;
  });
}

bool LayeredNet::kinks_at_zero() const {
  return std::ranges::all_of(layers, [](const DenseLayer& layer) {
    return std::ranges::none_of(layer.below, [](double slope) { return std::isnan(slope); });
  });
}

Expected<LayeredNet> as_layered_net(const UnitNetwork& net, Index most) {
  for (std::size_t k = 1; k < net.nodes.size(); ++k) {
    if (!std::ranges::all_of(net.nodes[k].bias, is_bounded))
      return Reason{"biases that are not finite"};
  }
  const Lowering lowering(net);
  if (lowering.weights() > most) return too_large_a_chain(most);
  return lowering.lower();
}

Index chain_size(const UnitNetwork& net) { return Lowering(net).weights(); }

Reason too_large_a_chain(Index most) {
  return {fmt::format("more than {} weights as dense layers", most)};
}

LayeredNet transposed(const LayeredNet& net) {
  LayeredNet made;
  for (std::size_t k = net.layers.size(); k-- > 0;) {
    const DenseLayer& layer = net.layers[k];
    DenseLayer turned{layer.out, layer.in, layer.weights, layer.radius, {}, {}, {}, {}, {}};
    turned.bias.assign(static_cast<std::size_t>(layer.in), point(0));
    for (Index i = 0; i < layer.out; ++i) {
      for (Index j = 0; j < layer.in; ++j) {
        const auto from = static_cast<std::size_t>(i * layer.in + j);
        const auto to = static_cast<std::size_t>(j * layer.out + i);
        turned.weights[to] = layer.weights[from];
        if (!layer.radius.empty()) turned.radius[to] = layer.radius[from];
      }
    }
    if (k > 0) {
      turned.below = net.layers[k - 1].below;
      turned.above = net.layers[k - 1].above;
      turned.slopes = net.layers[k - 1].slopes;
      turned.phi = net.layers[k - 1].phi;
      turned.linear = net.layers[k - 1].linear;
    }
    made.layers.push_back(std::move(turned));
  }
  return made;
}

}  // namespace lipscope
