// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lipscope/bound.h"

namespace lipscope {

// A proved lower bound: |f(y) - f(x)| / |y - x| with both values enclosed by interval evaluation
// and everything rounded outward [composition-4]. 0 when nothing can be said. Both points have to
// lie in the domain for the bound to be one on the domain: see in_domain.
[[nodiscard]] double proved_quotient(const Query& query, const Witness& witness);

// Whether a point lies in the domain, decided on the safe side.
[[nodiscard]] bool in_domain(const Domain& domain, std::span<const double> point);

}  // namespace lipscope
