// SPDX-License-Identifier: Apache-2.0
#include "net/local_net.h"

#include "net/unit_ranges.h"

namespace lipscope {
namespace {

Expected<LocalNet> with_units(Expected<LayeredNet> net, UnitNumbers unstable) {
  if (!net) return Reason{net.reason()};
  return LocalNet{std::make_shared<const LayeredNet>(*std::move(net)), std::move(unstable)};
}

}  // namespace

Index worthwhile_size(Index weights) {
  constexpr Index kSmall = 10'000;
  return weights < kSmall ? 0 : weights / 4 * 3;
}

Expected<LocalNet> reduced_to(const UnitNetwork& network, const Domain& domain, Index most,
                              const std::function<bool()>& stop) {
  if (domain.everywhere() || most == 0) return Reason{};
  const DomainSupport support(domain, static_cast<std::size_t>(network.nodes[0].size));
  if (!support.bounded()) return Reason{};
  const auto ranges = unit_ranges(network, support, stop);
  if (ranges.empty()) return Reason{"stopped"};
  UnitNumbers unstable = unstable_units(network, ranges);
  auto net = reduced_net(network, ranges, unstable, most);
  return with_units(std::move(net), std::move(unstable));
}

Expected<LocalNet> reduced_to(const UnitNetwork& network, const Domain& domain,
                              const UnitNumbers& unstable) {
  const DomainSupport support(domain, static_cast<std::size_t>(network.nodes[0].size));
  if (domain.everywhere() || !support.bounded())
    return Reason{"unstable units of a domain that is not bounded"};
  const auto ranges = unit_ranges(network, support, {});
  return with_units(reduced_net(network, ranges, unstable, kMostChainWeights), unstable);
}

}  // namespace lipscope
