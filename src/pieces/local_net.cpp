// SPDX-License-Identifier: Apache-2.0
#include "pieces/local_net.h"

#include "pieces/unit_ranges.h"

namespace lipscope {

Index worthwhile_size(Index weights) {
  constexpr Index kSmall = 10'000;
  return weights < kSmall ? 0 : weights / 4 * 3;
}

std::optional<LocalNet> reduced_to(const SdpNetwork& network, const Domain& domain, Index most,
                                   std::string& reason, const std::function<bool()>& stop) {
  if (domain.everywhere() || most == 0) return std::nullopt;
  const DomainSupport support(domain, static_cast<std::size_t>(network.nodes[0].size));
  if (!support.bounded()) return std::nullopt;
  const auto ranges = unit_ranges(network, support, stop);
  if (ranges.empty()) {
    reason = "stopped";
    return std::nullopt;
  }
  UnitList open = open_units(network, ranges);
  auto net = reduced_net(network, ranges, open, most, reason);
  if (!net) return std::nullopt;
  return LocalNet{*std::move(net), std::move(open)};
}

std::optional<LocalNet> find_local_net(const Graph& graph, const Domain& domain, Index most,
                                       std::string& reason, const std::function<bool()>& stop) {
  const auto network = network_with_biases(graph, reason);
  if (!network) return std::nullopt;
  auto whole = as_layered_net(*network, most, reason);
  if (whole) most = worthwhile_size(whole->size());
  auto reduced = reduced_to(*network, domain, most, reason, stop);
  if (reduced || !whole) return reduced;
  return LocalNet{*std::move(whole), std::nullopt};
}

std::optional<LayeredNet> local_net(const Graph& graph, const Domain& domain, Index most,
                                    const UnitList& open, std::string& reason) {
  const auto network = network_with_biases(graph, reason);
  if (!network) return std::nullopt;
  const DomainSupport support(domain, static_cast<std::size_t>(network->nodes[0].size));
  if (domain.everywhere() || !support.bounded()) {
    reason = "open units of a domain that is not bounded";
    return std::nullopt;
  }
  return reduced_net(*network, unit_ranges(*network, support, {}), open, most, reason);
}

}  // namespace lipscope
