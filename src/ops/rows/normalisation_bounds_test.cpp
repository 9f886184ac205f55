// SPDX-License-Identifier: Apache-2.0
// Golden values of docs/theory/normalisation.md.
#include <cmath>

#include "ops/bounds_for_test.h"

namespace lipscope {
namespace {

using namespace test;

TEST(NormalisationBounds, SoftmaxGlobalConstants) {
  const OneOp softmax("Softmax", {free_input({1, 7})});
  for (const char* norms : {"1", "1.5", "2", "3", "inf"}) {
    EXPECT_EQ(softmax.gain(norms), 0.5) << norms;
  }
  expect_just_above(softmax.gain("1:inf"), 0.25);
  expect_just_above(softmax.gain("inf:1"), 1);
  expect_just_above(softmax.gain("2:1"), std::exp2(-0.5));
  expect_just_above(softmax.gain("1.5:3"), std::exp2(1.0 / 3 - 2.0 / 3 - 1));
  EXPECT_EQ(OneOp("Softmax", {free_input({5, 1})}).gain("2"), 0);
  EXPECT_EQ(OneOp("Softmax", {free_input({5, 3})}).gain("2"), 0.5);
  // Five rows: the number of rows counts for q < p.
  expect_just_above(OneOp("Softmax", {free_input({5, 3})}).gain("inf:1"), 5);
}

TEST(NormalisationBounds, SoftmaxOnABox) {
  // Uniform over 100: the spectral norm is 1/100, the 1 and inf norms 2 (1/100) (99/100).
  const OneOp flat("Softmax", {uniform({1, 100}, 0, 1e-12)});
  EXPECT_NEAR(flat.gain("2"), 0.01, 1e-12);
  EXPECT_NEAR(flat.gain("1"), 0.0198, 1e-12);
  // One entry far above: nothing is lost by cancellation.
  std::vector<double> logits(1001, 0.0), moved(1001, 1e-9);
  logits[0] = moved[0] = 60;
  const OneOp sharp("Softmax", {between({1, 1001}, logits, moved)});
  const double tail = 1000 * std::exp(-60.0);
  EXPECT_GE(sharp.gain("inf"), 2 * tail * (1 - 1e-6));
  EXPECT_LE(sharp.gain("inf"), 2 * tail * (1 + 1e-6));
  const Box y = OneOp("Softmax", {between({1, 2}, {0, -1}, {1, 0})}).range();
  expect_entry(y, 0, 0.5, 1 / (1 + std::exp(-2.0)));
  expect_entry(y, 1, 1 / (1 + std::exp(2.0)), 0.5);
}

TEST(NormalisationBounds, LogSoftmax) {
  const OneOp five("LogSoftmax", {free_input({1, 5})});
  expect_just_above(five.gain("2"), std::sqrt(5.0));
  EXPECT_EQ(five.gain("inf"), 2);
  EXPECT_EQ(five.gain("1"), 4);
  EXPECT_EQ(OneOp("LogSoftmax", {free_input({1, 2})}).gain("1"), 1);
  EXPECT_EQ(OneOp("LogSoftmax", {free_input({1, 1})}).gain("2"), 0);
  const Tensor far(ElementType::kFloat64, {1, 2}, std::vector<double>{0, 5000});
  const Box y = OneOp("LogSoftmax", {at(far)}).range();
  expect_entry(y, 0, -5000, -5000);
  expect_entry(y, 1, 0, 0);
}

Boxed ones(Index n) {
  return at(Tensor(ElementType::kFloat64, {n}, std::vector<double>(static_cast<std::size_t>(n), 1)),
            true);
}

TEST(NormalisationBounds, LayerNormGlobalConstant) {
  const OneOp norm("LayerNormalization", {free_input({3, 8}), ones(8)}, {{"epsilon", 1e-5}}, 17);
  EXPECT_GE(norm.gain("2"), 316.2277660168379);
  EXPECT_LE(norm.gain("2"), 316.22776601683810);
  const double edge = (1 + std::sqrt(8.0)) / 2;
  expect_just_above(norm.gain("1"), edge / std::sqrt(1e-5));
  expect_just_above(norm.gain("inf"), edge / std::sqrt(1e-5));
  expect_just_above(norm.gain("1.5"), std::pow(edge, 1.0 / 3) / std::sqrt(1e-5));
  const Box y = norm.range();
  expect_entry(y, 0, -std::sqrt(7.0), std::sqrt(7.0));
}

TEST(NormalisationBounds, LayerNormOnABox) {
  // Entries around -1 and 1: the deviation is at least 0.9.
  const OneOp local("LayerNormalization", {between({2}, {-1.1, 0.9}, {-0.9, 1.1}), ones(2)},
                    {{"epsilon", 0.0}, {"axis", Index{0}}}, 17);
  expect_just_above(local.gain("2"), 1 / 0.9);
  const OneOp flat("LayerNormalization", {uniform({2}, 0, 1), ones(2)},
                   {{"epsilon", 0.0}, {"axis", Index{0}}}, 17);
  EXPECT_EQ(flat.gain("2"), kInf);
  // A far away mean does not blur a point.
  const Tensor x(ElementType::kFloat64, {4},
                 std::vector<double>{1e6 + 1, 1e6 - 1, 1e6 + 2, 1e6 - 2});
  const Box y = OneOp("LayerNormalization", {at(x), ones(4)}, {{"epsilon", 0.0}}, 17).range();
  expect_entry(y, 0, std::sqrt(0.4), std::sqrt(0.4));
  expect_entry(y, 3, -2 * std::sqrt(0.4), -2 * std::sqrt(0.4));
}

TEST(NormalisationBounds, MeanVarianceNormalisationHasEpsilonOutside) {
  const OneOp norm("MeanVarianceNormalization", {free_input({1, 2, 2, 2})});
  expect_just_above(norm.gain("2"), 1 / double{1e-9F});
}

TEST(NormalisationBounds, UnitRows) {
  const OneOp far("LpNormalization", {between({1, 2}, {3, 4}, {5, 6})});
  expect_just_above(far.gain("2"), 0.2);
  expect_just_above(far.gain("inf"), (1 + std::sqrt(2.0)) / 10);
  EXPECT_EQ(OneOp("LpNormalization", {uniform({1, 2}, -1, 1)}).gain("2"), kInf);
  const OneOp one("LpNormalization", {between({1, 3}, {1, 2, 5}, {2, 3, 6})}, {{"p", Index{1}}});
  expect_just_above(one.gain("1"), 0.25);
  const Tensor tiny(ElementType::kFloat64, {1, 2}, std::vector<double>{3e-300, -4e-300});
  const Box y = OneOp("LpNormalization", {at(tiny)}).range();
  expect_entry(y, 0, 0.6, 0.6);
  expect_entry(y, 1, -0.8, -0.8);
}

}  // namespace
}  // namespace lipscope
