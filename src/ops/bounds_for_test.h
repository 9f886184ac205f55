// SPDX-License-Identifier: Apache-2.0
// One operator with boxes for its inputs, for tests of the range and gain facets.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rounding_basic.h"
#include "ops/kind.h"

namespace lipscope::test {

struct Boxed {
  Box box;
  bool constant = false;  // given to the importer as a constant
};

inline Boxed between(Shape shape, std::vector<double> lower, std::vector<double> upper) {
  return {{Tensor(ElementType::kFloat64, shape, std::move(lower)),
           Tensor(ElementType::kFloat64, shape, std::move(upper))}};
}
inline Boxed uniform(Shape shape, double lower, double upper) {
  const auto n = static_cast<std::size_t>(element_count(shape));
  return between(std::move(shape), std::vector<double>(n, lower), std::vector<double>(n, upper));
}
inline Boxed free_input(Shape shape) { return uniform(std::move(shape), -kInf, kInf); }
inline Boxed at(Tensor value, bool constant = false) { return {{value, value}, constant}; }

class OneOp {
 public:
  OneOp(const std::string& name, std::vector<Boxed> inputs, const Attributes& attributes = {},
        int opset = 13) {
    std::vector<std::optional<NodeInput>> infos;
    for (const Boxed& input : inputs) {
      const Tensor& t = input.box.lower;
      infos.push_back(NodeInput::like(t, input.constant));
    }
    const Imported made = find_op_kind(name)->import(OnnxNode(name, opset, attributes, infos));
    op_ = made.op;
    for (const Index k : made.uses) boxes_.push_back(inputs[static_cast<std::size_t>(k)].box);
  }
  [[nodiscard]] Box range() const { return op_->range(boxes_)->front(); }
  [[nodiscard]] bool offers_range() const { return op_->range(boxes_).has_value(); }
  [[nodiscard]] double gain(const std::string& norms, Index wrt = 0) const {
    const auto gain = op_->gain({parse_norms(norms), boxes_, wrt});
    return gain ? gain->value : kNaN;
  }

 private:
  std::shared_ptr<const Op> op_;
  std::vector<Box> boxes_;
};

// Not below the true value and above it by rounding only.
inline void expect_just_above(double got, double exact) {
  EXPECT_GE(got, exact * (1 - 4e-16));
  EXPECT_LE(got, exact * (1 + 1e-13));
}
inline void expect_entry(const Box& box, Index i, double lower, double upper) {
  EXPECT_NEAR(box.lower.at(i), lower, 1e-13 * std::max(1.0, std::abs(lower))) << "entry " << i;
  EXPECT_NEAR(box.upper.at(i), upper, 1e-13 * std::max(1.0, std::abs(upper))) << "entry " << i;
}

}  // namespace lipscope::test
