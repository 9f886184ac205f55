// SPDX-License-Identifier: Apache-2.0
// The inner loops of a pool, laid out once when the operator is made: which runs of output entries
// of a plane see which input entries. Pools are then plain loops over runs.
#pragma once

#include <cstdint>
#include <vector>

#include "lipscope/norm.h"
#include "ops/windows/window.h"

namespace lipscope {

struct Tap {
  std::int32_t out, in, length;  // out, out+1, ... sees in, in+step, ...
};

struct Taps {
  Index in_size = 0, out_size = 0;  // entries of a plane
  Index step = 1;
  std::vector<Tap> taps;
};

// Padding is left out.
[[nodiscard]] Taps lay_out(const Window& window);

// How many positions of each output entry's window lie in the input, or with `include_pad` in the
// padded input (never beyond it, where ceil mode may reach).
[[nodiscard]] std::vector<Index> window_counts(const Window& window, bool include_pad);

// Bound, rounded up, of the gain of x -> (order-norm of each window), or of the window maxima for
// order = infinity, applied to each of `planes` planes [linear-7].
[[nodiscard]] double window_gain_up(const Taps& taps, Index planes, Norm order,
                                    const NormPair& norms);

}  // namespace lipscope
