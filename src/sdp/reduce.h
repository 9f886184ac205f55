// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdp/network.h"

namespace lipscope {

// Leaves out entries that the input cannot move (no weight or a slope that is zero) and entries
// that cannot move the output, then nodes without entries. Exact. A function that is constant has
// no nodes afterwards.
void drop_dead_entries(SdpNetwork& network);

// Units of 2^e per node, so that the largest entry of the maps into it is in [1/2, 1). Digits that
// underflow go into the radii.
void scale_nodes(SdpNetwork& network);

}  // namespace lipscope
