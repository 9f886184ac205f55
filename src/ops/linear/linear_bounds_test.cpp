// SPDX-License-Identifier: Apache-2.0
// Ranges and gains of linear operators and pools on small examples with known answers.
#include <gtest/gtest.h>

#include <cmath>

#include "base/interval.h"
#include "lipscope/evaluate.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

using Ints = std::vector<Index>;

struct Argument {
  ValueType type;
  std::optional<Tensor> constant = std::nullopt;
};
Argument real(Shape shape) { return {{ElementType::kFloat64, std::move(shape)}}; }
Argument fixed(Tensor value) {
  const ValueType type{value.type(), value.shape()};
  return {type, std::move(value)};
}

std::shared_ptr<const Op> make_linear(const std::string& name,
                                      const std::vector<Argument>& arguments,
                                      Attributes attributes = {}, int opset = 13,
                                      Index outputs = 1) {
  std::vector<std::optional<NodeInput>> infos;
  for (const Argument& a : arguments) {
    infos.push_back(a.constant ? NodeInput::like(*a.constant, true) : NodeInput{a.type});
  }
  const OnnxNode node(name, opset, std::move(attributes), infos,
                      std::vector<bool>(static_cast<std::size_t>(outputs), true));
  return find_op_kind(name)->import(node).op;
}

Tensor tensor(Shape shape, std::vector<double> entries) {
  return {ElementType::kFloat64, std::move(shape), std::move(entries)};
}
Box box(Shape shape, std::vector<double> lower, std::vector<double> upper) {
  return {tensor(shape, std::move(lower)), tensor(shape, std::move(upper))};
}
Box constant(Shape shape, const std::vector<double>& entries) {
  return box(std::move(shape), entries, entries);
}
Box ball(const Shape& shape, double centre, double radius) {
  const auto n = static_cast<std::size_t>(element_count(shape));
  return box(shape, std::vector<double>(n, centre - radius),
             std::vector<double>(n, centre + radius));
}

double linear_gain(const Op& op, const std::vector<Box>& in, std::string_view norms,
                   Index wrt = 0) {
  const auto g = op.gain({parse_norms(norms), in, wrt});
  if (!g) return kNaN;
  EXPECT_FALSE(g->theorem.empty());
  return g->value;
}

// Never below, and above by rounding only.
void expect_tight(double got, double exact) {
  EXPECT_GE(got, exact * (1 - 4e-16));
  EXPECT_LE(got, exact * (1 + 1e-9));
}

TEST(IndexMapGain, CopiesEachEntryOnce) {
  const auto transpose = make_linear("Transpose", {real({2, 3})});
  const std::vector<Box> in{ball({2, 3}, 0, 1)};
  for (const char* norms : {"1", "2", "3", "inf", "1:inf", "1.5:4"}) {
    EXPECT_EQ(linear_gain(*transpose, in, norms), 1) << norms;
  }
  expect_tight(linear_gain(*transpose, in, "inf:1"), 6);
  expect_tight(linear_gain(*transpose, in, "inf:2"), std::sqrt(6));
  EXPECT_EQ(linear_gain(*transpose, {constant({2, 3}, {1, 2, 3, 4, 5, 6})}, "inf:1"), 0);
}

TEST(IndexMapGain, NearestResizeCopies) {
  const Tensor roi(ElementType::kFloat32, {0}, std::vector<double>{});
  const Tensor scales(ElementType::kFloat32, {4}, std::vector<double>{1, 1, 2, 3});
  const auto op = make_linear("Resize", {real({1, 1, 2, 2}), fixed(roi), fixed(scales)});
  const std::vector<Box> in{ball({1, 1, 2, 2}, 0, 1)};
  expect_tight(linear_gain(*op, in, "1"), 6);
  expect_tight(linear_gain(*op, in, "2"), std::sqrt(6));
  expect_tight(linear_gain(*op, in, "3"), std::cbrt(6));
  EXPECT_EQ(linear_gain(*op, in, "inf"), 1);
  expect_tight(linear_gain(*op, in, "2:1"), 6 * 2);
  expect_tight(linear_gain(*op, in, "1:2"), std::sqrt(6));
}

// Each entry of a reflected line is counted twice near the border: the l1 constant of the
// convolution alone (3) is not one of the composition (4).
TEST(IndexMapGain, ReflectedPaddingCountsCopies) {
  const auto pad =
      make_linear("Pad", {real({1, 1, 4}), fixed(Tensor::integers({6}, {0, 0, 1, 0, 0, 1}))},
                  {{"mode", std::string("reflect")}});
  const auto conv = make_linear("Conv", {real({1, 1, 6}), real({1, 1, 3})});
  const std::vector<Box> image{ball({1, 1, 4}, 0, 1)};
  const auto padded = pad->range(image);
  ASSERT_TRUE(padded);
  const std::vector<Box> in{padded->front(), constant({1, 1, 3}, {1, 1, 1})};
  const double composed = linear_gain(*pad, image, "1") * linear_gain(*conv, in, "1");
  EXPECT_GE(composed, 4);
  expect_tight(linear_gain(*pad, image, "1"), 2);
  expect_tight(linear_gain(*pad, image, "2"), std::sqrt(2));
  EXPECT_EQ(linear_gain(*pad, image, "inf"), 1);
}

TEST(IndexMapGain, AveragePoolDividesBorderWindowsByTheirCount) {
  const Attributes three{{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}};
  const auto op = make_linear("AveragePool", {real({1, 1, 3})}, three);
  const std::vector<Box> in{ball({1, 1, 3}, 0, 1)};
  // (x1 + x2) / 2, (x1 + x2 + x3) / 3, (x2 + x3) / 2
  expect_tight(linear_gain(*op, in, "1"), 0.5 + 1.0 / 3 + 0.5);
  expect_tight(linear_gain(*op, in, "inf"), 1);
  EXPECT_GE(linear_gain(*op, in, "2"), std::sqrt(1.5) * (1.0 / std::sqrt(1.5)));
  Attributes with_pad = three;
  with_pad["count_include_pad"] = Index{1};
  const auto padded = make_linear("AveragePool", {real({1, 1, 3})}, with_pad);
  expect_tight(linear_gain(*padded, in, "1"), 1);
  const auto range = op->range(std::vector<Box>{constant({1, 1, 3}, {1, 2, 4})});
  ASSERT_TRUE(range);
  const std::vector<double> exact{1.5, 7.0 / 3, 3};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(range->front().lower.doubles()[i], exact[i], 1e-14);
    EXPECT_NEAR(range->front().upper.doubles()[i], exact[i], 1e-14);
    EXPECT_LE(range->front().lower.doubles()[i], exact[i]);
    EXPECT_GE(range->front().upper.doubles()[i], exact[i]);
  }
  // 7/3 is no double.
  EXPECT_LT(range->front().lower.doubles()[1], range->front().upper.doubles()[1]);
}

TEST(IndexMapGain, AveragesOverDisjointWindows) {
  const auto op = make_linear("GlobalAveragePool", {real({1, 2, 3, 3})});
  const std::vector<Box> in{ball({1, 2, 3, 3}, 0, 1)};
  expect_tight(linear_gain(*op, in, "1"), 1.0 / 9);
  expect_tight(linear_gain(*op, in, "2"), 1.0 / 3);
  expect_tight(linear_gain(*op, in, "3"), std::pow(9, -1.0 / 3));
  expect_tight(linear_gain(*op, in, "inf"), 1);
  expect_tight(linear_gain(*op, in, "inf:1"), 2);
}

TEST(MaxPoolGain, CountsTheWindowsOverACell) {
  const auto op = make_linear("MaxPool", {real({1, 1, 8, 8})}, {{"kernel_shape", Ints{3, 3}}});
  const std::vector<Box> in{ball({1, 1, 8, 8}, 0, 1)};
  expect_tight(linear_gain(*op, in, "1"), 9);
  expect_tight(linear_gain(*op, in, "2"), 3);
  expect_tight(linear_gain(*op, in, "3"), std::cbrt(9));
  EXPECT_EQ(linear_gain(*op, in, "inf"), 1);
  expect_tight(linear_gain(*op, in, "1:2"), 3);
  expect_tight(linear_gain(*op, in, "inf:1"), 36);
  const auto apart = make_linear("MaxPool", {real({1, 1, 8, 8})},
                                 {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  for (const char* norms : {"1", "2", "3", "inf", "1:2"})
    EXPECT_EQ(linear_gain(*apart, in, norms), 1);
  expect_tight(linear_gain(*apart, in, "2:1"), 4);
}

TEST(MaxPoolRange, IsTheMaximumOfTheEnds) {
  const auto op = make_linear("MaxPool", {real({1, 1, 3})}, {{"kernel_shape", Ints{2}}});
  const auto range = op->range(std::vector<Box>{box({1, 1, 3}, {-1, 0, -kInf}, {1, 5, kInf})});
  ASSERT_TRUE(range);
  EXPECT_EQ(range->front().lower, tensor({1, 1, 2}, {0, 0}));
  EXPECT_EQ(range->front().upper, tensor({1, 1, 2}, {5, kInf}));
}

TEST(MatMulRange, ThinBoxesStayThin) {
  const Index n = 200;
  const auto op = make_linear("MatMul", {real({1, n}), real({n, 3})});
  std::vector<double> x, w;
  for (Index i = 0; i < n; ++i) x.push_back(std::sin(static_cast<double>(i)));
  for (Index i = 0; i < 3 * n; ++i) w.push_back(std::cos(static_cast<double>(3 * i)));
  const std::vector<Box> in{constant({1, n}, x), constant({n, 3}, w)};
  const auto range = op->range(in);
  ASSERT_TRUE(range);
  for (Index j = 0; j < 3; ++j) {
    std::vector<double> column;
    for (Index i = 0; i < n; ++i) column.push_back(w[static_cast<std::size_t>(3 * i + j)]);
    const Interval exact = dot_enclosure(x, column);
    const auto k = static_cast<std::size_t>(j);
    const Interval got{range->front().lower.doubles()[k], range->front().upper.doubles()[k]};
    EXPECT_LE(got.lo, exact.hi);
    EXPECT_GE(got.hi, exact.lo);
    EXPECT_LE(got.hi - got.lo, static_cast<double>(n) * static_cast<double>(n) * 2.3e-16);
  }
}

TEST(MatMulRange, KeepsSignsAndHandlesUnboundedEntries) {
  const auto op = make_linear("MatMul", {real({1, 2}), real({2, 1})});
  const auto run = [&](Box a, Box b) {
    const auto range = op->range(std::vector<Box>{std::move(a), std::move(b)});
    return Interval{range->front().lower.at(0), range->front().upper.at(0)};
  };
  const Interval wide = run(box({1, 2}, {0, 1}, {2, 3}), box({2, 1}, {0, 1}, {2, 2}));
  EXPECT_LE(wide.lo, 1);
  EXPECT_GE(wide.lo, 1 - 1e-14);
  EXPECT_GE(wide.hi, 10);
  EXPECT_LE(wide.hi, 10 + 1e-14);
  // Zero times unbounded is zero; a half line keeps its finite end.
  EXPECT_EQ(run(box({1, 2}, {-kInf, 1}, {kInf, 1}), constant({2, 1}, {0, 0})), (Interval{0, 0}));
  const Interval half = run(box({1, 2}, {2, 1}, {kInf, 1}), constant({2, 1}, {3, 1}));
  EXPECT_NEAR(half.lo, 7, 1e-14);
  EXPECT_LE(half.lo, 7);
  EXPECT_EQ(half.hi, kInf);
  const Interval down = run(box({1, 2}, {2, 1}, {kInf, 1}), constant({2, 1}, {-3, 1}));
  EXPECT_EQ(down.lo, -kInf);
  EXPECT_NEAR(down.hi, -5, 1e-14);
  // No NaN at the ends of the number range.
  const Interval large = run(constant({1, 2}, {1e300, 1e300}), constant({2, 1}, {1e300, -1e300}));
  EXPECT_EQ(large, kEntire);
  const Interval tiny = run(constant({1, 2}, {1e-300, 0}), constant({2, 1}, {1e-300, 1}));
  EXPECT_TRUE(contains(tiny, 0) && tiny.hi > 0 && tiny.hi < 1e-320);
}

TEST(MatMulGain, IsTheNormOfTheOtherFactor) {
  const auto op = make_linear("MatMul", {real({3, 2}), real({2, 2})});
  // y = x W: the map of a row is W'.
  const std::vector<Box> in{ball({3, 2}, 0, 1), constant({2, 2}, {1, 3, 2, 4})};
  expect_tight(linear_gain(*op, in, "1"), 6);
  expect_tight(linear_gain(*op, in, "inf"), 7);
  expect_tight(linear_gain(*op, in, "2"), 5.464985704219043);
  expect_tight(linear_gain(*op, in, "inf:1"), 30);  // 10 for each of the rows
  const std::vector<Box> moving{ball({3, 2}, 0, 1), box({2, 2}, {1, 3, 2, 4}, {1, 3, 2, kInf})};
  EXPECT_EQ(linear_gain(*op, moving, "2"), kInf);
  // In W: blocks x, one for each column.
  const std::vector<Box> weights{constant({3, 2}, {1, 2, 3, 4, 0, 0}), ball({2, 2}, 0, 1)};
  expect_tight(linear_gain(*op, weights, "1", 1), 6);
  expect_tight(linear_gain(*op, weights, "2", 1), 5.464985704219043);
}

TEST(GemmGain, BiasIsCopied) {
  const auto op = make_linear("Gemm", {real({3, 2}), real({2, 2}), real({2})}, {{"beta", -2.0}});
  const std::vector<Box> in{ball({3, 2}, 0, 1), constant({2, 2}, {0, 0, 0, 0}), ball({2}, 0, 1)};
  EXPECT_EQ(linear_gain(*op, in, "2", 0), 0);
  expect_tight(linear_gain(*op, in, "1", 2), 6);
  expect_tight(linear_gain(*op, in, "2", 2), 2 * std::sqrt(3));
  expect_tight(linear_gain(*op, in, "inf", 2), 2);
}

TEST(EinsumGain, BlocksCopiesAndSums) {
  const auto sum = make_linear("Einsum", {real({2, 3})}, {{"equation", std::string("ij->i")}});
  const std::vector<Box> in{ball({2, 3}, 0, 1)};
  expect_tight(linear_gain(*sum, in, "1"), 1);
  expect_tight(linear_gain(*sum, in, "2"), std::sqrt(3));
  expect_tight(linear_gain(*sum, in, "inf"), 3);
  const auto times =
      make_linear("Einsum", {real({2}), real({2})}, {{"equation", std::string("i,i->i")}});
  const std::vector<Box> two{ball({2}, 0, 1), box({2}, {-3, 1}, {2, 4})};
  expect_tight(linear_gain(*times, two, "2"), 4);
  expect_tight(linear_gain(*times, two, "2:1"), 5);
}

TEST(ConvGain, TransposedSwapsTheNorms) {
  const auto conv = make_linear("Conv", {real({1, 1, 5}), real({2, 1, 2})});
  const auto transposed = make_linear("ConvTranspose", {real({1, 2, 4}), real({2, 1, 2})});
  const Box w = constant({2, 1, 2}, {1, 2, -3, 5});
  const std::vector<Box> in{ball({1, 1, 5}, 0, 1), w}, back{ball({1, 2, 4}, 0, 1), w};
  expect_tight(linear_gain(*conv, in, "1"), 11);
  expect_tight(linear_gain(*conv, in, "inf"), 8);
  expect_tight(linear_gain(*transposed, back, "1"), 8);
  expect_tight(linear_gain(*transposed, back, "inf"), 11);
  EXPECT_NEAR(linear_gain(*transposed, back, "2"), linear_gain(*conv, in, "2"), 1e-6);
}

TEST(ConvGain, InWeightsAndBias) {
  const auto conv = make_linear("Conv", {real({1, 1, 3}), real({2, 1, 2}), real({2})});
  // Patches (1, 2), (2, 4).
  const std::vector<Box> in{constant({1, 1, 3}, {1, 2, 4}), ball({2, 1, 2}, 0, 1), ball({2}, 0, 1)};
  expect_tight(linear_gain(*conv, in, "1", 1), 6);
  expect_tight(linear_gain(*conv, in, "inf", 1), 6);
  expect_tight(linear_gain(*conv, in, "2", 1), 5);
  expect_tight(linear_gain(*conv, in, "2", 2), std::sqrt(2));
}

TEST(ConvRange, PaddingAndBias) {
  const auto conv =
      make_linear("Conv", {real({1, 1, 2}), real({1, 1, 3}), real({1})}, {{"pads", Ints{1, 1}}});
  const std::vector<Box> in{box({1, 1, 2}, {0, -1}, {1, kInf}), constant({1, 1, 3}, {1, -2, 0}),
                            constant({1}, {10})};
  const auto range = conv->range(in);
  ASSERT_TRUE(range);
  const auto lower = range->front().lower.doubles(), upper = range->front().upper.doubles();
  EXPECT_NEAR(lower[0], 8, 1e-13);
  EXPECT_NEAR(upper[0], 10, 1e-13);
  EXPECT_EQ(lower[1], -kInf);
  EXPECT_NEAR(upper[1], 13, 1e-13);
}

TEST(ConcatGain, MovesItsOwnEntries) {
  const auto op = make_linear("Concat", {real({2}), real({3})}, {{"axis", Index{0}}});
  EXPECT_TRUE(op->inputs_move_disjoint_outputs());
  const std::vector<Box> in{ball({2}, 0, 1), ball({3}, 0, 1)};
  EXPECT_EQ(linear_gain(*op, in, "2", 1), 1);
  expect_tight(linear_gain(*op, in, "inf:1", 1), 3);
}

TEST(GatherGain, UnknownIndicesMayAllBeTheSame) {
  const ValueType ids{ElementType::kInt64, {4}};
  const auto op = make_linear("Gather", {real({3, 2}), Argument{ids}});
  const Box any{Tensor::integers({4}, {0, 0, 0, 0}), Tensor::integers({4}, {2, 2, 2, 2})};
  const Box known{Tensor::integers({4}, {0, 1, 1, -1}), Tensor::integers({4}, {0, 1, 1, -1})};
  const Box data = box({3, 2}, {0, 1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6});
  expect_tight(linear_gain(*op, {data, any}, "2"), 2);
  expect_tight(linear_gain(*op, {data, any}, "1"), 4);
  expect_tight(linear_gain(*op, {data, known}, "2"), std::sqrt(2));
  EXPECT_EQ(linear_gain(*op, {data, any}, "2", 1), kInf);
  EXPECT_EQ(linear_gain(*op, {data, known}, "2", 1), 0);
  const auto hull = op->range(std::vector<Box>{data, any});
  const auto exact = op->range(std::vector<Box>{data, known});
  ASSERT_TRUE(hull && exact);
  EXPECT_EQ(hull->front().lower, tensor({4, 2}, {0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(hull->front().upper, tensor({4, 2}, {5, 6, 5, 6, 5, 6, 5, 6}));
  EXPECT_EQ(exact->front().lower, tensor({4, 2}, {0, 1, 2, 3, 2, 3, 4, 5}));
}

TEST(BatchNormalizationGain, IsDiagonal) {
  const auto op = make_linear("BatchNormalization",
                              {real({1, 2, 2}), real({2}), real({2}), real({2}), real({2})},
                              {{"epsilon", 0.0}});
  const std::vector<Box> in{ball({1, 2, 2}, 0, 1), constant({2}, {3, -8}), ball({2}, 0, 1),
                            constant({2}, {1, 2}), constant({2}, {1, 4})};
  expect_tight(linear_gain(*op, in, "2"), 4);
  expect_tight(linear_gain(*op, in, "inf:1"), 2 * 3 + 2 * 4);
  expect_tight(linear_gain(*op, in, "1", 2), 2);
  std::vector<Box> unknown = in;
  unknown[4] = box({2}, {0, 1}, {1, 4});
  EXPECT_EQ(linear_gain(*op, unknown, "2"), kInf);
  const auto range = op->range(in);
  ASSERT_TRUE(range);
  EXPECT_NEAR(range->front().lower.at(0), -7, 1e-14);
  EXPECT_NEAR(range->front().upper.at(2), 13, 1e-14);
}

TEST(LpPoolGain, GlobalNormIsOneLipschitzInItsOwnNorm) {
  const auto op = make_linear("GlobalLpPool", {real({1, 1, 4})});
  const std::vector<Box> in{box({1, 1, 4}, {3, -4, 0, 0}, {3, 4, 0, 0})};
  EXPECT_EQ(linear_gain(*op, in, "2"), 1);
  expect_tight(linear_gain(*op, in, "inf"), 2);
  EXPECT_EQ(linear_gain(*op, in, "1"), 1);
  const auto range = op->range(in);
  ASSERT_TRUE(range);
  EXPECT_NEAR(range->front().lower.at(0), 3, 1e-14);
  EXPECT_NEAR(range->front().upper.at(0), 5, 1e-14);
}

}  // namespace
}  // namespace lipscope
