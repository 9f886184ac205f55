// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast/binary.h"

namespace lipscope {
namespace {

struct PRelu {
  static constexpr std::string_view kName = "PRelu";
  static constexpr bool kScalesNegativeEntries = true;
  template <class T>
  T value(T a, T b) const {
    return a < 0 ? a * b : a;
  }
  double slope_a(double a, double b) const { return a < 0 ? b : 1; }
  double slope_b(double a, double) const { return a < 0 ? a : 0; }
  Index integer(ElementType type, Index a, Index b) const {
    return a < 0 && !is_unsigned(type) ? multiply_integers(a, b) : a;
  }
  Interval range(const Interval& a, const Interval& b) const {
    if (a.lo >= 0) return a;
    if (a.hi <= 0) return a * b;
    return hull(Interval{a.lo, 0} * b, {0, a.hi});
  }
  double reach_a(const Interval& a, const Interval& b) const {
    return a.lo >= 0 ? 1 : a.hi <= 0 ? magnitude(b) : max_nan(1, magnitude(b));
  }
  double reach_b(const Interval& a, const Interval&) const { return a.lo < 0 ? -a.lo : 0; }
};

// Before opset 7 the slope is one number or one per channel; since then it broadcasts to x.
Imported import_prelu(const OnnxNode& node) {
  require_same_type(node);
  node.ignore({"consumed_inputs"});
  const Shape& x = node.input(0).shape;
  Shape slope = node.input(1).shape;
  if (node.opset() < 7) {
    if (element_count(slope) == 1) {
      slope = {};
    } else if (slope.size() == 1 && x.size() > 1) {
      // Before opset 7 slopes belong to channels, whatever the length of the last axis.
      if (slope[0] != x[1]) node.unsupported("slopes that are not one for each channel");
      slope.resize(x.size() - 1, 1);
    }
  }
  if (broadcast_shape(x, slope) != x) node.malformed("the slope does not fit the input");
  return {
      std::make_shared<BinaryOp<PRelu>>(PRelu{}, Broadcast<2>(x, {x, slope}), node.input(0).type),
      {0, 1}};
}

std::vector<OpCase> prelu_cases(Rng& rng) {
  std::vector<OpCase> cases;
  const auto add = [&](Shape x, Shape slope, int opset) {
    cases.push_back({.inputs = {{random_tensor_avoiding(rng, std::move(x), {0})},
                                {random_tensor(rng, std::move(slope)), cases.size() % 2 == 0}},
                     .opset = opset});
  };
  add({1, 3, 2, 2}, {3, 1, 1}, 9);
  add({1, 3, 2, 2}, {3, 1, 1}, 16);
  add({2, 3}, {3}, 9);
  add({2, 3}, {}, 9);
  add({1, 3, 2, 2}, {3}, 6);
  add({1, 3, 2}, {3}, 6);
  add({1, 3, 2}, {1}, 1);
  add({0, 3}, {1}, 9);
  return cases;
}

}  // namespace

std::vector<OpKind> op_prelu() { return {{PRelu::kName, import_prelu, prelu_cases}}; }

}  // namespace lipscope
