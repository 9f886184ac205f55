// SPDX-License-Identifier: Apache-2.0
// The chain of layers for bounds on a bounded domain: the network as it is, or what is left of it
// there when it is large.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "pieces/reduced_net.h"

namespace lipscope {

struct LocalNet {
  LayeredNet net;
  std::optional<UnitList> open;  // the units it is reduced to; nothing: it is not
};

// Nothing, and `reason` set, for a graph of another form, or one with more than `most` weights even
// then, or when stopped. Borrows the graph's operators.
[[nodiscard]] std::optional<LocalNet> find_local_net(const Graph& graph, const Domain& domain,
                                                     Index most, std::string& reason,
                                                     const std::function<bool()>& stop);
// The part of it that is about a network which is read already.
[[nodiscard]] std::optional<LocalNet> reduced_to(const SdpNetwork& network, const Domain& domain,
                                                 Index most, std::string& reason,
                                                 const std::function<bool()>& stop);
// Whether it makes a network of so many weights smaller than worth the work: at most as many.
[[nodiscard]] Index worthwhile_size(Index weights);

// The same for a known list of open units; nothing if it leaves one out.
[[nodiscard]] std::optional<LayeredNet> local_net(const Graph& graph, const Domain& domain,
                                                  Index most, const UnitList& open,
                                                  std::string& reason);

}  // namespace lipscope
