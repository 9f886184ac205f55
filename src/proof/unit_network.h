// SPDX-License-Identifier: Apache-2.0
// Networks of units, as proofs are about them. Reject graphs of another form.
#pragma once

#include "pieces/layered_net.h"
#include "proof/problem.h"
#include "sdp/network.h"

namespace lipscope {

// The map from one value to another, with slopes on the boxes of the domain.
[[nodiscard]] SdpNetwork unit_network(Problem& problem, ValueId from, ValueId to);

// The chain of layers for bounds by cases; on a bounded domain a softmax at the end counts as
// units, and a list of open units leaves out the others. Borrows operators of the problem.
[[nodiscard]] LayeredNet layer_chain(Problem& problem,
                                     const std::optional<UnitNumbers>& open_units);

}  // namespace lipscope
