// SPDX-License-Identifier: Apache-2.0
// A Cast of a constant rounds as the file says; a Cast of what moves does not.
#include "ops/integer/cast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rounding.h"
#include "lipscope/evaluate.h"
#include "passes/add_node.h"

namespace lipscope {
namespace {

// As ONNX numbers them.
constexpr Index kCastFloat = 1, kCastHalf = 10, kCastDouble = 11, kCastBrain = 16;

Value folded_cast(Tensor constant, Index to) {
  GraphBuilder builder;
  const ValueId c = builder.constant("c", std::move(constant));
  return builder.value(add_node(builder, "Cast", {c}, "cast", {{"to", to}}));
}
Tensor number(ElementType type, double value) { return {type, {}, std::vector<double>{value}}; }
Box box_of(const Value& value) { return value.constant->box(); }
void expect_exactly(const Value& value, double expected) {
  const Box box = box_of(value);
  EXPECT_EQ(box.lower.at(0), expected);
  EXPECT_EQ(box.upper.at(0), expected);
}

TEST(CastOfAConstant, RoundsToNearestEven) {
  expect_exactly(folded_cast(number(ElementType::kFloat32, double{1.0007F}), kCastHalf),
                 1.0009765625);
  expect_exactly(folded_cast(number(ElementType::kFloat64, 0.1), kCastFloat), double{0.1F});
  expect_exactly(folded_cast(number(ElementType::kFloat32, 1 + 0x1p-8), kCastBrain), 1);
  expect_exactly(folded_cast(number(ElementType::kFloat32, 1 + 3 * 0x1p-8), kCastBrain),
                 1 + 0x1p-6);
  expect_exactly(folded_cast(number(ElementType::kFloat16, 0.5), kCastDouble), 0.5);
  expect_exactly(folded_cast(number(ElementType::kFloat64, 0x1p-1074), kCastFloat), 0);
  expect_exactly(folded_cast(number(ElementType::kFloat64, 0x1.8p-25), kCastHalf), 0x1p-24);
}

TEST(CastOfAConstant, OverflowsToInfinity) {
  EXPECT_EQ(
      folded_cast(number(ElementType::kFloat64, 1e39), kCastFloat).constant->approximate().at(0),
      kInf);
  EXPECT_EQ(
      folded_cast(number(ElementType::kFloat32, -65520), kCastHalf).constant->approximate().at(0),
      -kInf);
  expect_exactly(folded_cast(number(ElementType::kFloat32, 65519), kCastHalf), 65504);
}

TEST(CastOfAConstant, RoundsIntegers) {
  expect_exactly(folded_cast(Tensor::integers({1}, {16777217}), kCastFloat), 16777216);
  expect_exactly(folded_cast(Tensor::integers({1}, {(Index{1} << 53) + 1}), kCastDouble), 0x1p53);
  // By way of a double this would be a tie.
  expect_exactly(
      folded_cast(Tensor::integers({1}, {(Index{1} << 60) + (Index{1} << 36) + 1}), kCastFloat),
      0x1p60 + 0x1p37);
}

// Rounding to float32 first lands on a tie: programs differ, and the constant is both.
TEST(CastOfAConstant, IsBothWhereTwoRoundingsDiffer) {
  const Box box =
      box_of(folded_cast(number(ElementType::kFloat64, 1 + 0x1p-11 + 0x1p-40), kCastHalf));
  EXPECT_EQ(box.lower.at(0), 1);
  EXPECT_EQ(box.upper.at(0), 1 + 0x1p-10);
}

// A third is known between two doubles; its rounding to float32 is one number.
TEST(CastOfAConstant, TakesEnclosures) {
  GraphBuilder builder;
  const auto constant = [&](double value) {
    return builder.constant("c", number(ElementType::kFloat64, value));
  };
  const ValueId third = add_node(builder, "Div", {constant(1), constant(3)}, "third");
  EXPECT_LT(box_of(builder.value(third)).lower.at(0), box_of(builder.value(third)).upper.at(0));
  const ValueId cast = add_node(builder, "Cast", {third}, "cast", {{"to", kCastFloat}});
  expect_exactly(builder.value(cast), double{1.0F / 3});
  // 1 + 2^-24 - e rounds down, and the enclosure ends at the tie or beyond.
  const ValueId tie = add_node(
      builder, "Sub",
      {constant(1 + 0x1p-24), add_node(builder, "Div", {constant(0x1p-90), constant(3)}, "e")},
      "tie");
  const Box both =
      box_of(builder.value(add_node(builder, "Cast", {tie}, "cast", {{"to", kCastFloat}})));
  EXPECT_EQ(both.lower.at(0), 1);
}

TEST(CastOfWhatMoves, IsTheIdentity) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", {ElementType::kFloat32, {1}});
  const Graph graph = builder.finish({add_node(builder, "Cast", {x}, "cast", {{"to", kCastHalf}})});
  const double at = double{1.0007F};
  EXPECT_EQ(
      evaluate(graph, std::vector{Tensor(ElementType::kFloat32, {1}, std::vector{at})})[0].at(0),
      at);
  const auto types = as_cast_to_real(*graph.nodes()[0].op);
  ASSERT_TRUE(types);
  EXPECT_TRUE(loses_values(*types));
}

TEST(LosesValues, ComparesDigitsAndRange) {
  using enum ElementType;
  EXPECT_TRUE(loses_values({kFloat64, kFloat32}));
  EXPECT_TRUE(loses_values({kFloat16, kBFloat16}));
  EXPECT_TRUE(loses_values({kBFloat16, kFloat16}));
  EXPECT_TRUE(loses_values({kInt32, kFloat32}));
  EXPECT_FALSE(loses_values({kFloat16, kFloat32}));
  EXPECT_FALSE(loses_values({kBFloat16, kFloat32}));
  EXPECT_FALSE(loses_values({kUInt8, kFloat16}));
  EXPECT_FALSE(loses_values({kUInt8, kBFloat16}));
  EXPECT_FALSE(loses_values({kInt32, kFloat64}));
  EXPECT_FALSE(loses_values({kBool, kFloat16}));
}

}  // namespace
}  // namespace lipscope
