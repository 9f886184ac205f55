// SPDX-License-Identifier: Apache-2.0
// The chain of layers for bounds on a bounded domain: the network as it is, or what is left of it
// there when it is large.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lipscope/query.h"
#include "net/reduced_net.h"

namespace lipscope {

struct LocalNet {
  std::shared_ptr<const LayeredNet> net;
  std::optional<UnitNumbers> unstable;  // the units it is reduced to; nothing: it is not
};

// Reduced to the units that are unstable on the domain, or to a given list. Nothing for a domain
// without bounds, one with more than `most` weights even then, or when stopped, and for a list that
// leaves out an unstable unit.
[[nodiscard]] Expected<LocalNet> reduced_to(const UnitNetwork& network, const Domain& domain,
                                            Index most, const std::function<bool()>& stop);
[[nodiscard]] Expected<LocalNet> reduced_to(const UnitNetwork& network, const Domain& domain,
                                            const UnitNumbers& unstable);
// Whether it makes a network of so many weights smaller than worth the work: at most as many.
[[nodiscard]] Index worthwhile_size(Index weights);

}  // namespace lipscope
