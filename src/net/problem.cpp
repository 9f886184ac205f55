// SPDX-License-Identifier: Apache-2.0
#include "net/problem.h"

#include <algorithm>
#include <ranges>

#include "net/trim.h"
#include "passes/split_softmax.h"

namespace lipscope {
namespace {

// The one that split_softmax splits.
const Node& softmax_of(const Graph& graph) {
  const auto last = std::ranges::find_if(graph.nodes() | std::views::reverse, [](const Node& node) {
    return node.op->softmax_rows() != nullptr;
  });
  return *last;
}

}  // namespace

Problem::Problem(Query query, std::function<bool()> stop)
    : query_(std::move(query)),
      stop_(std::move(stop)),
      boxes_(*query_.graph, input_boxes(*query_.graph, query_.domain)) {}

const Graph& Problem::chain_graph() {
  if (domain().everywhere()) return graph();
  if (!split_) split_.emplace(split_softmax(graph()));
  return *split_ ? **split_ : graph();
}

const Expected<UnitNetwork>& Problem::network() {
  if (network_) return *network_;
  const Graph& lowered = chain_graph();
  ValueBoxes wide(lowered, input_boxes(lowered, {}));
  ValueBoxes& boxes = domain().everywhere() ? boxes_ : wide;
  const auto box = [&](ValueId id) -> const Box& { return boxes.at(id); };
  return network_.emplace(read_unit_network(lowered, box, {.biases = true}));
}

Expected<UnitNetwork> Problem::read_units() {
  const auto box = [&](ValueId id) -> const Box& { return boxes_.at(id); };
  const Expected<UnitNetwork>& everywhere = network();
  if (everywhere && split_ && *split_) return Reason{neither_affine_nor_units(softmax_of(graph()))};
  if (everywhere) {
    if (auto here = on_boxes(*everywhere, box)) return *std::move(here);
  } else if (everywhere.reason() == kOneAffineLayer) {
    return everywhere;
  }
  return read_unit_network(graph(), box);
}

const Expected<UnitNetwork>& Problem::units() {
  if (!units_) {
    Expected<UnitNetwork> read = read_units();
    if (read) trim(*read);
    units_.emplace(std::move(read));
  }
  return *units_;
}

Expected<std::shared_ptr<const UnitNetwork>> Problem::units_between(ValueId from, ValueId to) {
  if (graph().inputs().size() == 1 && from == graph().inputs()[0] && to == graph().outputs()[0]) {
    if (!units()) return Reason{units().reason()};
    return std::shared_ptr<const UnitNetwork>(std::shared_ptr<void>(), &**units_);  // borrowed
  }
  const auto box = [&](ValueId id) -> const Box& { return boxes_.at(id); };
  auto part = read_unit_network(graph(), box, {.from = from, .to = to});
  if (!part) return Reason{part.reason()};
  trim(*part);
  return std::make_shared<const UnitNetwork>(*std::move(part));
}

const Expected<LayeredNet>& Problem::chain() {
  if (chain_) return *chain_;
  if (!network()) return chain_.emplace(Reason{network().reason()});
  return chain_.emplace(as_layered_net(*network()));
}

void Problem::forget_chain() { chain_.emplace(Reason{"memory limit reached"}); }

Expected<LocalNet> Problem::whole_chain() {
  if (!chain()) return Reason{chain().reason()};
  return LocalNet{{std::shared_ptr<void>(), &**chain_}, std::nullopt};  // borrowed
}

Expected<LocalNet> Problem::chain_on(const Domain& domain, const std::function<bool()>& stop) {
  if (!network()) return Reason{network().reason()};
  const Index size = chain_size(*network());
  const bool fits = chain_ ? static_cast<bool>(*chain_) : size <= kMostChainWeights;
  auto reduced =
      reduced_to(*network(), domain, fits ? worthwhile_size(size) : kMostChainWeights, stop);
  if (reduced || (!fits && !reduced.reason().empty())) return reduced;
  return whole_chain();
}

const Expected<LocalNet>& Problem::local_chain() {
  if (local_chain_) return *local_chain_;
  // What is no network of units on the domain is none on the larger boxes of a chain, unless the
  // domain is so small that no unit is left.
  if (&chain_graph() == &graph() && !units() && units().reason() != kOneAffineLayer)
    return local_chain_.emplace(Reason{units().reason()});
  return local_chain_.emplace(chain_on(domain(), stop_));
}

Expected<LocalNet> Problem::local_chain(const std::optional<UnitNumbers>& unstable) {
  if (!unstable) return whole_chain();
  if (!network()) return Reason{network().reason()};
  return reduced_to(*network(), domain(), *unstable);
}

}  // namespace lipscope
