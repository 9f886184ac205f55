// SPDX-License-Identifier: Apache-2.0
// Gains composed along a graph, each proved to be as small as claimed. Theory:
// docs/theory/composition.md.
#pragma once

#include <vector>

#include "lipscope/proof.h"
#include "proof/statement.h"

namespace lipscope {

// A constant, in the input norm, that is known otherwise.
struct KnownPart {
  ValueId from, to;
  double constant = 0;
};

[[nodiscard]] double composed_up(const std::vector<GainClaim>& gains,
                                 const std::vector<KnownPart>& known, Problem& problem);

}  // namespace lipscope
