// SPDX-License-Identifier: Apache-2.0
// Affine maps that take at most one entry each: reshapes, transpositions, scales, masks.
#pragma once

#include <optional>
#include <vector>

#include "attention/dependence.h"
#include "base/interval.h"

namespace lipscope {

// Entry p of one value is weight[p] times entry source[p] of another (-1: none) plus offset[p].
struct EntryMap {
  std::vector<Index> source;
  std::vector<Interval> weight, offset;
  bool offset_known = true;  // false: the offset depends on an integer input
};

[[nodiscard]] EntryMap same_entries(Index size);
// What a node does to input k, when each output entry takes at most one entry of it.
[[nodiscard]] std::optional<EntryMap> entry_map(const Dependence& dependence, const Node& node,
                                                std::size_t k);
// second(first(x)).
[[nodiscard]] EntryMap composed(const EntryMap& first, const EntryMap& second);

}  // namespace lipscope
