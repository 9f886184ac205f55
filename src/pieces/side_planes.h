// SPDX-License-Identifier: Apache-2.0
// Linear functions that are at least 0 on a part of the domain, and what they say about others
// there [pieces-6].
#pragma once

#include <span>
#include <vector>

#include "bounds/domain_support.h"

namespace lipscope {

struct Planes {
  std::vector<double> weights;  // count x inputs
  std::vector<double> offsets;
};

// Upper bound of <row, x> + offset on the domain where all functions are at least 0: its largest
// value on the domain with the functions added, each times its multiplier; +inf unless those are
// at least 0. All rounding is included.
[[nodiscard]] double max_up(const DomainSupport& domain, std::span<const double> row, double offset,
                            const Planes& planes, std::span<const double> multipliers);

// Multipliers that make this small, up to rounding: a few steps, each the best one for the function
// that is lowest where the row is largest on the box around the domain. Empty when all would be 0.
[[nodiscard]] std::vector<double> best_multipliers(const DomainSupport& domain,
                                                   std::span<const double> row,
                                                   const Planes& planes);

}  // namespace lipscope
