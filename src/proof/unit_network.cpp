// SPDX-License-Identifier: Apache-2.0
#include "proof/unit_network.h"

#include "pieces/local_net.h"

namespace lipscope {

SdpNetwork unit_network(Problem& problem, ValueId from, ValueId to) {
  std::string reason;
  auto network =
      as_sdp_network(problem.graph(), [&](ValueId id) -> const Box& { return problem.box(id); },
                     kMostSdpEntries, reason, {from, to});
  if (!network) reject("a proof for another kind of network: {}", reason);
  return *std::move(network);
}

LayeredNet layer_chain(Problem& problem, const std::optional<UnitNumbers>& open_units) {
  const Domain& domain = problem.domain();
  const Graph& graph = domain.everywhere() ? problem.graph() : problem.with_softmax_split();
  std::string reason;
  auto net = open_units ? local_net(graph, domain, kMostPieceWeights, *open_units, reason)
                        : as_layered_net(graph, kMostPieceWeights, reason);
  if (!net) reject("a proof for another kind of network: {}", reason);
  return *std::move(net);
}

}  // namespace lipscope
