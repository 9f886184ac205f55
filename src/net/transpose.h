// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/unit_network.h"

namespace lipscope {

// The network of the transposed maps, from the output to the input: if dy = G dx for some slopes
// of the one, the other can have dx = G'dy with the same slopes.
[[nodiscard]] UnitNetwork transposed(const UnitNetwork& network);

}  // namespace lipscope
