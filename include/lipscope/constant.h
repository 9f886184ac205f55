// SPDX-License-Identifier: Apache-2.0
// A constant of a graph: numbers that are known exactly, or numbers of which a box is known that
// holds them, because computing them took rounding or because they stand for any number.
//
//   if (const Tensor* numbers = constant.exact()) ...   // proofs may read these
//   const Box box = constant.box();                     // and these, exact or not
//
// Immutable; safe to share between threads.
#pragma once

#include <memory>
#include <vector>

#include "lipscope/op.h"

namespace lipscope {

class Constant;

// How a constant came about: output `output` of an operator at constants.
struct Folded {
  std::shared_ptr<const Op> op;
  std::vector<std::shared_ptr<const Constant>> inputs;
  std::size_t output = 0;
};

class Constant {
 public:
  // These numbers and no others.
  explicit Constant(Tensor exact, std::shared_ptr<const Folded> folded = nullptr);
  // Floating numbers in a box, and one point near them. A box of width zero makes them exact.
  Constant(Tensor near, Box box, std::shared_ptr<const Folded> folded = nullptr);

  // Null where the numbers are not known exactly; never null for integers.
  [[nodiscard]] const Tensor* exact() const noexcept { return box_ ? nullptr : &near_; }
  // Near the numbers it stands for, when there is such a point: for searching and for showing,
  // never for proving.
  [[nodiscard]] const Tensor& approximate() const noexcept { return near_; }
  // Holds the numbers; of width zero when they are exact.
  [[nodiscard]] Box box() const { return box_ ? *box_ : Box{near_, near_}; }
  // How they were computed, for those who want to know them better than the box does, or as another
  // arithmetic would compute them; null for numbers that were not, and for integers that were
  // computed from integers alone.
  [[nodiscard]] const Folded* folded() const noexcept { return folded_.get(); }

  [[nodiscard]] ElementType type() const noexcept { return near_.type(); }
  [[nodiscard]] const Shape& shape() const noexcept { return near_.shape(); }
  [[nodiscard]] Index size() const noexcept { return near_.size(); }

 private:
  Tensor near_;
  std::unique_ptr<const Box> box_;  // null: exact
  std::shared_ptr<const Folded> folded_;
};

}  // namespace lipscope
