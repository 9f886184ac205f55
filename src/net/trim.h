// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/unit_network.h"

namespace lipscope {

// By node and entry.
using EntryFlags = std::vector<std::vector<bool>>;

// The entries that are kept, in their units; nodes without entries are left out.
[[nodiscard]] UnitNetwork restricted(const UnitNetwork& network, const EntryFlags& keep);
// The largest sets of entries without weights between them.
[[nodiscard]] std::vector<EntryFlags> components(const UnitNetwork& network);

// Leaves out entries that the input cannot move (no weight or a slope that is zero) and entries
// that cannot move the output, then nodes without entries. Exact. A function that is constant has
// no nodes afterwards.
void drop_dead_entries(UnitNetwork& network);

// Units of 2^e per node, so that the largest entry of the maps into it is in [1/2, 1). Digits that
// underflow go into the radii.
void scale_nodes(UnitNetwork& network);

// Both.
void trim(UnitNetwork& network);

}  // namespace lipscope
