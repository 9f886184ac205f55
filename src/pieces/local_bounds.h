// SPDX-License-Identifier: Apache-2.0
// Bounds of the Jacobian on a bounded domain that follow from the network and its slopes alone, by
// name: a certificate names the bound and the checker computes it again.
#pragma once

#include <functional>
#include <string_view>

#include "lipscope/norm.h"
#include "pieces/bounded_region.h"

namespace lipscope {

struct LocalBound {
  std::string_view name;
  // Why it says nothing in these norms; empty when it does.
  std::string (*unsupported)(const NormPair& norms, Index inputs, Index outputs);
  // Upper bound of the norm of every Jacobian whose slopes lie in the intervals, every rounding
  // included; +inf when there is none. `stop` is asked now and then: +inf when it says so.
  double (*upper)(const LayeredNet& net, const Slopes& slopes, const NormPair& norms,
                  const std::function<bool()>& stop);
  double (*cost)(const LayeredNet& net, const NormPair& norms);  // multiplications, about
};

// Null for an unknown name.
[[nodiscard]] const LocalBound* find_local_bound(std::string_view name);

// The bound on the region's domain. Where the network ends in a softmax, the smaller one of that
// and what the parts before and behind the differences of logits say [pieces-11].
[[nodiscard]] double local_bound_up(const LocalBound& bound, const LayeredNet& net,
                                    BoundedRegion& region, const NormPair& norms,
                                    const std::function<bool()>& stop);

// Multiplications of linear bounds of the values before all units [pieces-6].
[[nodiscard]] double forward_cost(const LayeredNet& net);

}  // namespace lipscope
