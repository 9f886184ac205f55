// SPDX-License-Identifier: Apache-2.0
// What a unit makes of its value: its slopes on both sides of zero, and lines around its graph.
#pragma once

#include "base/interval.h"

namespace lipscope {

class Elementwise;
struct SdpNode;

struct UnitForm {
  double below = 1, above = 1;       // slopes; both NaN for a function of another form
  Interval slopes = {1, 1};          // everywhere
  const Elementwise* phi = nullptr;  // null where the slopes say all

  // Whether more than one slope occurs on a range of values before it.
  [[nodiscard]] bool is_open(const Interval& range) const;
};

// Of all entries of a node of the network that is not its input or output.
[[nodiscard]] UnitForm form_of(const SdpNode& node);

struct Line {
  double slope = 0, offset = 0;
};
struct UnitLines {
  Line up, down;    // above and below the function on the range
  double size = 0;  // at least its absolute values there
};
[[nodiscard]] UnitLines lines_of(const UnitForm& form, const Interval& range);

}  // namespace lipscope
