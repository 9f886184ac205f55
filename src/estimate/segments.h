// SPDX-License-Identifier: Apache-2.0
// A graph cut into parts that the semidefinite bound can take.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/problem.h"

namespace lipscope {

// Values that everything from the inputs to the output goes through, in the order of the graph; the
// last one is the output, the first one the input where it is the only one.
[[nodiscard]] std::vector<ValueId> cut_values(const Graph& graph);

struct SdpSegment {
  ValueId from, to;
  std::shared_ptr<const UnitNetwork> network;
};

struct SegmentLimits {
  double doubles = 0;          // held by its proof
  double operations = 0;       // of its proof
  std::function<bool()> stop;  // asked before a part is read: no more of them
};

// From the input on, each part as long as the limits allow, between values of `cut_values`; what
// has no such form lies between the parts. Empty, with the reason why the whole does not fit, when
// there is none.
// Segments may borrow from the problem.
[[nodiscard]] std::vector<SdpSegment> sdp_segments(Problem& problem, const SegmentLimits& limits,
                                                   std::string& reason);

}  // namespace lipscope
