// SPDX-License-Identifier: Apache-2.0
// Products with the Jacobian of an operator, for every input in a box at once.
#pragma once

#include <span>

#include "base/interval.h"
#include "lipscope/op.h"

namespace lipscope {

// For operators whose Jacobian with respect to input 0 is not told entry by entry (Op::matrix) and
// that are not functions of single entries: Op::box_product.
class BoxProduct {
 public:
  virtual ~BoxProduct() = default;
  // Encloses J t (or J't where `transposed`) for every point of the boxes and every member of t; J
  // is the derivative of output 0. False when the operator cannot tell.
  [[nodiscard]] virtual bool enclose_product(std::span<const Box> in, std::span<const Interval> t,
                                             bool transposed, std::span<Interval> out) const = 0;
  // Upper bound of the l2 norm of J(x) - J(y) for y in the boxes and |x - y| <= radius in l2;
  // infinite when the operator cannot tell.
  [[nodiscard]] virtual double derivative_change_up(std::span<const Box> in,
                                                    double radius) const = 0;
};

}  // namespace lipscope
