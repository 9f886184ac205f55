// SPDX-License-Identifier: Apache-2.0
// Operators in rational arithmetic: for integers that hang on the last bit of what they are
// computed from.
#pragma once

#include <span>
#include <vector>

#include "base/rational.h"
#include "lipscope/op.h"

namespace lipscope {

// The entries of a constant. Integers come as numbers, bool as 0 and 1.
using ExactTensor = std::vector<RationalInterval>;

// Op::exact_map.
class ExactMap {
 public:
  virtual ~ExactMap() = default;
  // The outputs, one tensor each; an integer that is not decided is an interval, or unknown. False
  // when the operator cannot tell.
  [[nodiscard]] virtual bool push_exact(std::span<const ExactTensor* const> in,
                                        std::span<ExactTensor> out) const = 0;
};

}  // namespace lipscope
