// SPDX-License-Identifier: Apache-2.0
// Golden values of docs/theory/pointwise.md.
#include <cmath>

#include "ops/bounds_for_test.h"

namespace lipscope {
namespace {

using namespace test;

TEST(PointwiseBounds, CopiesOfABroadcastInputCount) {
  const OneOp add("Add", {free_input({4}), free_input({})});
  EXPECT_EQ(add.gain("2", 0), 1);
  expect_just_above(add.gain("2", 1), 2);
  EXPECT_EQ(add.gain("1", 1), 4);
  EXPECT_EQ(add.gain("inf", 1), 1);
  // Four entries of their own: norm equivalence only.
  expect_just_above(add.gain("inf:1", 0), 4);
  expect_just_above(add.gain("2:1", 0), 2);
}

TEST(PointwiseBounds, ProductsUseTheBoxOfTheOtherFactor) {
  const OneOp mul("Mul", {free_input({2}), between({2}, {-3, 1}, {2, 2})});
  EXPECT_EQ(mul.gain("2", 0), 3);
  EXPECT_EQ(mul.gain("inf:1", 0), 5);
  EXPECT_EQ(mul.gain("2", 1), kInf);
  const OneOp scaled("Mul", {free_input({}), at(Tensor::vector({3, 4}), true)});
  expect_just_above(scaled.gain("2"), 5);
  EXPECT_EQ(scaled.gain("1"), 7);
  EXPECT_EQ(scaled.gain("inf"), 4);
}

TEST(PointwiseBounds, DivisionNeedsADenominatorAwayFromZero) {
  const OneOp good("Div", {uniform({1}, -6, 3), uniform({1}, 2, 4)});
  EXPECT_EQ(good.gain("2", 0), 0.5);
  EXPECT_EQ(good.gain("2", 1), 1.5);
  expect_entry(good.range(), 0, -3, 1.5);
  const OneOp bad("Div", {uniform({1}, 1, 2), uniform({1}, 0, 4)});
  EXPECT_EQ(bad.gain("2", 0), kInf);
  EXPECT_EQ(bad.gain("2", 1), kInf);
  EXPECT_EQ(bad.range().upper.at(0), kInf);
}

TEST(PointwiseBounds, Powers) {
  const OneOp square("Pow", {uniform({1}, -3, 2), at(Tensor::scalar(2), true)});
  expect_just_above(square.gain("2"), 6);
  expect_entry(square.range(), 0, 0, 9);
  const OneOp root("Pow", {uniform({1}, 0.25, 4), at(Tensor::scalar(0.5), true)});
  expect_just_above(root.gain("2"), 1);
  EXPECT_EQ(OneOp("Pow", {uniform({1}, 0, 4), at(Tensor::scalar(0.5), true)}).gain("2"), kInf);
  EXPECT_EQ(OneOp("Pow", {free_input({1}), at(Tensor::scalar(0), true)}).gain("2"), 0);
  EXPECT_EQ(OneOp("Pow", {free_input({1}), at(Tensor::scalar(1), true)}).gain("2"), 1);
  EXPECT_EQ(OneOp("Pow", {uniform({1}, -1, 1), at(Tensor::scalar(-1), true)}).gain("2"), kInf);
  // a^b log a on [0, 1] x [2, 3]: 1 / (2 e).
  const OneOp exponent("Pow", {uniform({1}, 0, 1), uniform({1}, 2, 3)});
  expect_just_above(exponent.gain("2", 1), 1 / (2 * std::exp(1.0)));
}

TEST(PointwiseBounds, MeanOfInputsAndMaximum) {
  const OneOp mean("Mean", {free_input({3}), free_input({3}), free_input({3}), free_input({3})});
  EXPECT_EQ(mean.gain("2", 2), 0.25);
  const OneOp top("Max", {uniform({2}, 0, 1), between({2}, {2, 0.5}, {3, 3})});
  EXPECT_EQ(top.gain("1", 0), 1);  // the second entry may win
  EXPECT_EQ(top.gain("inf:1", 0), 1);
  expect_entry(top.range(), 0, 2, 3);
  expect_entry(top.range(), 1, 0.5, 3);
  EXPECT_EQ(OneOp("Min", {uniform({1}, 2, 3), uniform({1}, 0, 1)}).gain("2", 0), 0);
}

TEST(PointwiseBounds, WhereSelectsWithAKnownCondition) {
  const Tensor condition(ElementType::kBool, {2}, std::vector<Index>{1, 0});
  const OneOp known("Where", {at(condition, true), uniform({2}, 0, 1), uniform({2}, 5, 7)});
  expect_entry(known.range(), 0, 0, 1);
  expect_entry(known.range(), 1, 5, 7);
  EXPECT_EQ(known.gain("inf:1", 1), 1);
  EXPECT_EQ(known.gain("2", 0), 0);
}

TEST(PointwiseBounds, StepsHaveNoFiniteGainUnlessDecided) {
  EXPECT_EQ(OneOp("Greater", {uniform({1}, 0, 1), uniform({1}, 0.5, 2)}).gain("2"), kInf);
  EXPECT_EQ(OneOp("Greater", {uniform({1}, 3, 4), uniform({1}, 0.5, 2)}).gain("2"), 0);
  const Attributes to_int = {{"to", Index{7}}};
  EXPECT_EQ(OneOp("Cast", {uniform({1}, 0, 1)}, to_int).gain("2"), kInf);
  EXPECT_EQ(OneOp("Cast", {uniform({1}, 0.1, 0.9)}, to_int).gain("2"), 0);
  EXPECT_EQ(OneOp("Cast", {free_input({1})}, {{"to", Index{11}}}).gain("2"), 1);
  EXPECT_EQ(OneOp("ArgMax", {uniform({1, 2}, 0, 1)}, {{"axis", Index{1}}}).gain("2"), kInf);
  EXPECT_EQ(OneOp("Hardmax", {uniform({1, 2}, 0, 1)}).gain("2"), kInf);
  const Boxed scale = at(Tensor::scalar(0.5).cast(ElementType::kFloat32), true);
  EXPECT_EQ(OneOp("QuantizeLinear", {uniform({2}, 0, 1), scale}).gain("2"), kInf);
  EXPECT_EQ(OneOp("QuantizeLinear", {uniform({2}, 0.3, 0.7), scale}).gain("2"), 0);
  const Tensor low(ElementType::kUInt8, {2}, std::vector<Index>{0, 0});
  const Tensor high(ElementType::kUInt8, {2}, std::vector<Index>{255, 255});
  EXPECT_EQ(OneOp("DequantizeLinear", {{{low, high}}, scale}).gain("2"), 0.5);
}

// A float32 times a small integer is a double; a scale of more bits makes a narrow interval.
TEST(PointwiseBounds, DequantisedWeightsAreExact) {
  const Boxed x = at(Tensor(ElementType::kInt8, {3}, std::vector<Index>{-128, 0, 77}), true);
  const double tenth = double{0.1F};
  const Boxed scale = at(Tensor::scalar(tenth).cast(ElementType::kFloat32), true);
  const Box y = OneOp("DequantizeLinear", {x, scale}).range();
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(y.lower.at(i), y.upper.at(i));
  EXPECT_EQ(y.lower.at(0), -128 * tenth);
  EXPECT_EQ(y.lower.at(1), 0);
  EXPECT_EQ(y.lower.at(2), 77 * tenth);
  const Box z = OneOp("DequantizeLinear", {x, at(Tensor::scalar(0.1), true)}, {}, 23).range();
  const double lower = z.lower.doubles()[2], upper = z.upper.doubles()[2];
  EXPECT_LE(std::fma(-77.0, 0.1, lower), 0);
  EXPECT_GE(std::fma(-77.0, 0.1, upper), 0);
  EXPECT_LT(lower, upper);
}

double reduced_gain(const std::string& op, const Boxed& x, const std::string& norms) {
  return OneOp(op, {x}, {{"axes", std::vector<Index>{1}}}, 12).gain(norms);
}

TEST(PointwiseBounds, Reductions) {
  const Boxed rows = free_input({2, 4});
  expect_just_above(reduced_gain("ReduceSum", rows, "2"), 2);
  EXPECT_EQ(reduced_gain("ReduceSum", rows, "1"), 1);
  EXPECT_EQ(reduced_gain("ReduceSum", rows, "inf"), 4);
  expect_just_above(reduced_gain("ReduceSum", rows, "inf:1"), 8);
  EXPECT_EQ(reduced_gain("ReduceMean", rows, "1"), 0.25);
  expect_just_above(reduced_gain("ReduceMean", rows, "2"), 0.5);
  EXPECT_EQ(reduced_gain("ReduceMean", rows, "inf"), 1);
  EXPECT_EQ(reduced_gain("ReduceMax", rows, "3"), 1);
  EXPECT_EQ(reduced_gain("ReduceMin", rows, "1"), 1);
  expect_just_above(reduced_gain("ReduceL1", rows, "2"), 2);
  EXPECT_EQ(reduced_gain("ReduceL2", rows, "2"), 1);
  EXPECT_EQ(reduced_gain("ReduceL2", rows, "1"), 1);
  expect_just_above(reduced_gain("ReduceL2", rows, "inf"), 2);
  EXPECT_EQ(reduced_gain("ReduceLogSumExp", rows, "2"), 1);
  EXPECT_EQ(reduced_gain("ReduceSumSquare", rows, "2"), kInf);
  expect_just_above(reduced_gain("ReduceSumSquare", uniform({2, 4}, -1, 3), "2"), 12);
  expect_just_above(reduced_gain("ReduceProd", uniform({1, 3}, -2, 1), "inf"), 12);
  expect_just_above(reduced_gain("ReduceLogSum", uniform({1, 4}, 0.5, 9), "inf"), 2);
  EXPECT_EQ(reduced_gain("ReduceLogSum", uniform({1, 4}, 0, 9), "inf"), kInf);
}

TEST(PointwiseBounds, ReducedRangesKeepExtremeNumbers) {
  for (const double scale : {1e-300, 1.0, 1e300}) {
    const OneOp norm(
        "ReduceL2",
        {at(Tensor(ElementType::kFloat64, {1, 2}, std::vector<double>{3 * scale, 4 * scale}))},
        {{"axes", std::vector<Index>{1}}}, 12);
    const Box y = norm.range();
    EXPECT_LE(y.lower.at(0), y.upper.at(0));
    EXPECT_NEAR(y.lower.at(0) / scale, 5, 1e-14);
    EXPECT_NEAR(y.upper.at(0) / scale, 5, 1e-14);
  }
}

TEST(PointwiseBounds, RunningSums) {
  const auto gain = [](Index n, const std::string& norms) {
    return OneOp("CumSum", {free_input({n}),
                            {{Tensor::integers({1}, {0}), Tensor::integers({1}, {0})}, true}})
        .gain(norms);
  };
  EXPECT_EQ(gain(5, "1"), 5);
  EXPECT_EQ(gain(5, "inf"), 5);
  EXPECT_EQ(gain(5, "1:inf"), 1);
  expect_just_above(gain(2, "2"), (1 + std::sqrt(5.0)) / 2);
}

}  // namespace
}  // namespace lipscope
