// SPDX-License-Identifier: Apache-2.0
#include "pieces/local_net.h"

#include "pieces/unit_ranges.h"

namespace lipscope {

std::optional<LocalNet> find_local_net(const Graph& graph, const Domain& domain, Index most,
                                       std::string& reason, const std::function<bool()>& stop) {
  constexpr Index kSmall = 10'000;  // weights: not worth the ranges
  constexpr double kWorthIt = 0.75;
  const auto network = network_with_biases(graph, reason);
  if (!network) return std::nullopt;
  auto whole = as_layered_net(*network, most, reason);
  const auto as_it_is = [&]() -> std::optional<LocalNet> {
    if (!whole) return std::nullopt;
    return LocalNet{*std::move(whole), std::nullopt};
  };
  if (domain.everywhere() || (whole && whole->size() < kSmall)) return as_it_is();
  const DomainSupport support(domain, static_cast<std::size_t>(network->nodes[0].size));
  if (!support.bounded()) return as_it_is();
  const auto ranges = unit_ranges(*network, support, stop);
  if (ranges.empty()) {
    reason = "stopped";
    return as_it_is();
  }
  UnitList open = open_units(*network, ranges);
  if (whole) most = static_cast<Index>(kWorthIt * static_cast<double>(whole->size()));
  auto net = reduced_net(*network, ranges, open, most, reason);
  if (!net) return as_it_is();
  return LocalNet{*std::move(net), std::move(open)};
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
