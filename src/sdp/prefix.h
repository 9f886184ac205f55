// SPDX-License-Identifier: Apache-2.0
// A network cut at one of its nodes [global-8].
#pragma once

#include "net/unit_network.h"

namespace lipscope {

// Whether all that is behind a node, not the input, goes through its functions.
[[nodiscard]] bool passes_all(const UnitNetwork& network, std::size_t node);

// From the input to the values before the functions of a node.
[[nodiscard]] UnitNetwork before_node(const UnitNetwork& network, std::size_t node);

// From z to the output where the values before the functions of the node are 2^exponent G z, G
// given by rows.
[[nodiscard]] UnitNetwork behind_factor(const UnitNetwork& network, std::size_t node,
                                        const std::vector<double>& factor, int exponent);

}  // namespace lipscope
