// SPDX-License-Identifier: Apache-2.0
// Radii of classifiers run in a format, where formats end: ranges, underflow, saturation.
#include "robust/inference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rounding.h"
#include "lipscope/error.h"
#include "lipscope/select.h"
#include "robust/squash_margins.h"
#include "tests/support/emulator.h"

namespace lipscope {
namespace {

using namespace testing_support;
using Type = ElementType;

constexpr InferenceFormat kHalf{Type::kFloat16, Type::kFloat16};
constexpr InferenceFormat kBrain{Type::kBFloat16, Type::kBFloat16};
constexpr InferenceFormat kSingle{Type::kFloat32, Type::kFloat32};

// In the maximum norm, by global constants; 0 where nothing is proved.
double radius_of(const EmulatedGraph& net, const Reals& x, Index label,
                 const InferenceFormat& format) {
  const Node* squash = final_squash(net.graph);
  Selection selection;
  selection.logits = squash != nullptr;
  const Selected logits = select(net.graph, selection);
  Certifier certifier(logits.graph, {.norm = Norm::infinity(),
                                     .margins_needed = inference_margins(net.graph, squash, format,
                                                                         Norm::infinity())});
  certifier.find_constants(std::chrono::duration<double>(0.01), {});
  return certifier.decide(x, std::vector<Index>{label})[0].radius;
}

// What every runtime that was thought of gives has no single largest entry.
void expect_tie_or_worse(const EmulatedGraph& net, const Reals& x, std::size_t label,
                         const InferenceFormat& format) {
  bool worse = false;
  for (const Habits& habits : all_habits(format)) {
    const Reals seen = emulate(net, x, habits);
    worse = worse || !(seen[label] > seen[1 - label]);
  }
  EXPECT_TRUE(worse);
}

EmulatedGraph diagonal(double w) {
  EmulatedMaker m;
  return m.done(m.node("MatMul", {m.input({1, 2}), m.weights({2, 2}, {w, 0, 0, w})}));
}

TEST(InferenceRange, InputsBeyondTheFormat) {
  const EmulatedGraph net = diagonal(static_cast<float>(1e-3));
  expect_tie_or_worse(net, {1e5, 2e5}, 1, kHalf);
  EXPECT_EQ(radius_of(net, {1e5, 2e5}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(net, {-1e5, 2}, 1, kHalf), 0);  // -inf is not 1e-3 times -1e5
  EXPECT_GT(radius_of(net, {1e5, 2e5}, 1, kBrain), 0);
  // The last number of the format, and what is no longer rounded to it.
  EXPECT_LT(inference_error(net.graph, net.graph.outputs()[0], kHalf, Norm(2))({{65504, 0}}, 0)[0],
            kInf);
  EXPECT_EQ(inference_error(net.graph, net.graph.outputs()[0], kHalf, Norm(2))({{65520, 0}}, 0)[0],
            kInf);
  // A ball whose edge is beyond it.
  EXPECT_EQ(inference_error(net.graph, net.graph.outputs()[0], kHalf, Norm(2))({{65500, 0}}, 9)[0],
            kInf);
}

TEST(InferenceRange, DivisorsAndOtherConstants) {
  const auto divided = [](double c) {
    EmulatedMaker m;
    const ValueId y = m.node("Div", {m.input({1, 2}), m.weights({}, {c})});
    const double back = static_cast<float>(0.6 * c);
    return m.done(m.node("MatMul", {y, m.weights({2, 2}, {back, 0, 0, back})}));
  };
  const EmulatedGraph large = divided(1e5);
  expect_tie_or_worse(large, {1, 3}, 1, kHalf);
  EXPECT_EQ(radius_of(large, {1, 3}, 1, kHalf), 0);
  EXPECT_GT(radius_of(large, {1, 3}, 1, kSingle), 0.9);
  EXPECT_EQ(radius_of(divided(0x1p-26), {0, 0x1p-26}, 1, kHalf), 0);  // becomes 0 itself
  EXPECT_EQ(radius_of(divided(0x1p-18), {0, 0x1p-18}, 1, {Type::kFloat16, Type::kFloat16, true}),
            0);
  // Numbers that no row needs are multiplied by zeros: infinity times 0 is NaN.
  EmulatedMaker m;
  const EmulatedGraph infinite =
      m.done(m.node("Conv", {m.input({1, 1, 1, 2}), m.weights({1, 1, 1, 3}, {1e5, 1, 0})},
                    {{"pads", std::vector<Index>{0, 1, 0, 1}}}));
  EXPECT_EQ(radius_of(infinite, {3, 0}, 0, kHalf), 0);
  // Bounds of Clip: one that no number reaches does nothing, one on the wrong side is no number.
  const auto clipped = [](double low, double high) {
    EmulatedMaker n;
    return n.done(n.node("Clip", {n.input({1, 2})}, {{"min", low}, {"max", high}}, 6));
  };
  EXPECT_GT(radius_of(clipped(0, 0x1.fffffep127), {1, 3}, 1, kHalf), 0.9);
  EXPECT_EQ(inference_error(clipped(7e4, 8e4).graph, {1}, kHalf, Norm(2))({{1, 3}}, 0)[0], kInf);
  // A constant that the graph computes overflows on its way.
  EmulatedMaker k;
  const ValueId one = k.node("Sub", {k.weights({}, {70001}), k.weights({}, {70000})});
  const EmulatedGraph lost = k.done(k.node("Mul", {k.input({1, 2}), one}));
  expect_tie_or_worse(lost, {1, 3}, 1, kHalf);
  EXPECT_EQ(radius_of(lost, {1, 3}, 1, kHalf), 0);
  expect_tie_or_worse(lost, {1, 3}, 1, kBrain);  // 70001 and 70000 become one number
  EXPECT_EQ(radius_of(lost, {1, 3}, 1, kBrain), 0);
  EXPECT_GT(radius_of(lost, {1, 3}, 1, kSingle), 0.9);
}

TEST(InferenceRange, FactorsAndSlopes) {
  const auto gemm = [](double alpha, double w) {
    EmulatedMaker m;
    return m.done(m.node("Gemm", {m.input({1, 2}), m.weights({2, 2}, {w, 0, 0, w})},
                         {{"alpha", static_cast<double>(static_cast<float>(alpha))}}));
  };
  expect_tie_or_worse(gemm(1e5, 1e-4), {.5, 1}, 1, kHalf);
  EXPECT_EQ(radius_of(gemm(1e5, 1e-4), {.5, 1}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(gemm(-1e5, -1e-4), {.5, 1}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(gemm(1e-9, 60000), {100, 200}, 1, kHalf), 0);  // the factor becomes 0
  EXPECT_EQ(radius_of(gemm(1e-3, 30000), {2, 4}, 1, kHalf), 0);      // the sum overflows first
  EXPECT_EQ(radius_of(gemm(3e38, 1e-38), {500, 1000}, 1, kSingle), 0);
  EXPECT_GT(radius_of(gemm(1.5, 1), {.5, 1}, 1, kHalf), 0.2);
  // Products underflow before the factor makes them large: computed is 0.
  const Graph tiny = gemm(1024, 0x1p-13).graph;
  EXPECT_GE(inference_error(tiny, tiny.outputs()[0], kHalf, Norm(2))({{0x1p-13, 0}}, 0)[0],
            0x1p-16);
  const auto with = [](const char* op, Attributes attributes) {
    EmulatedMaker m;
    return m.done(m.node(op, {m.input({1, 2})}, attributes));
  };
  EXPECT_EQ(radius_of(with("LeakyRelu", {{"alpha", 1e5}}), {-.2, .1}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(with("LeakyRelu", {{"alpha", 0x1p-26}}), {-60000, -30000}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(with("HardSigmoid", {{"alpha", 1e5}}), {0, 1e-6}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(with("HardSigmoid", {{"alpha", 0x1p-27}}), {0, 60000}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(with("HardSigmoid", {{"beta", -1e5}}), {0, 1}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(with("Elu", {{"alpha", 1e5}}), {-.2, -.1}, 1, kHalf), 0);
  EXPECT_GT(radius_of(with("Elu", {{"alpha", 1.0}}), {-.5, 1}, 1, kHalf), 0.1);
  EXPECT_GT(radius_of(with("HardSigmoid", {{"alpha", 0.5}}), {-.5, .5}, 1, kHalf), 0.1);
}

TEST(InferenceRange, SumsHaveTheirOwn) {
  EmulatedMaker m;
  const EmulatedGraph net =
      m.done(m.node("MatMul", {m.input({1, 2}), m.weights({2, 2}, {300, 512, 512, 300})}));
  const InferenceFormat narrow{Type::kBFloat16, Type::kFloat16};
  expect_tie_or_worse(net, {512, 0}, 1, narrow);
  EXPECT_EQ(radius_of(net, {512, 0}, 1, narrow), 0);
  EXPECT_GT(radius_of(net, {512, 0}, 1, kBrain), 100);
  EXPECT_EQ(radius_of(net, {512, 0}, 1, {Type::kFloat32, Type::kFloat16}), 0);
  // Operands that only the format of values holds.
  EXPECT_EQ(radius_of(diagonal(0x1p-30), {0, 0x1p20}, 1, narrow), 0);
  EXPECT_GT(radius_of(diagonal(0x1p-30), {0, 0x1p20}, 1, kBrain), 0);
  // A sum beyond the format of values that a wider one holds until it is rounded.
  EmulatedMaker n;
  const EmulatedGraph large =
      n.done(n.node("MatMul", {n.input({1, 3}), n.weights({3, 2}, {300, 0, 300, 0, -590, 0})}));
  EXPECT_GT(radius_of(large, {200, 200, 200}, 0, {Type::kFloat16, Type::kFloat32}), 0);
  EXPECT_EQ(radius_of(large, {200, 200, 200}, 0, kHalf), 0);
}

TEST(InferenceRange, AFinalSquashIsPartOfTheDecision) {
  const auto squashed = [](const char* last) {
    EmulatedMaker m;
    const ValueId z = m.node("MatMul", {m.input({1, 2}), m.weights({2, 2}, {1, 0, 0, 1})});
    return m.done(m.node(last, {z}));
  };
  expect_tie_or_worse(squashed("Sigmoid"), {10, 20}, 1, kHalf);
  EXPECT_EQ(radius_of(squashed("Sigmoid"), {10, 20}, 1, kHalf), 0);
  EXPECT_EQ(radius_of(squashed("Sigmoid"), {20, 40}, 1, kSingle), 0);
  EXPECT_EQ(radius_of(squashed("Sigmoid"), {-40, -20}, 1, kHalf), 0);
  EXPECT_GT(radius_of(squashed("Sigmoid"), {-1, 1}, 1, kHalf), 0.9);
  EXPECT_GT(radius_of(squashed("Sigmoid"), {4, 9}, 1, kSingle), 2);
  // The largest of a softmax never drowns, but small differences do.
  EXPECT_GT(radius_of(squashed("Softmax"), {10, 20}, 1, kHalf), 4.9);
  EXPECT_EQ(radius_of(squashed("Softmax"), {1, 1.001}, 1, kHalf), 0);
  EXPECT_GT(radius_of(squashed("LogSoftmax"), {10, 20}, 1, kHalf), 4.9);
  EXPECT_EQ(radius_of(squashed("LogSoftmax"), {1, 1.001}, 1, kHalf), 0);
}

TEST(InferenceRange, OperatorsThatDoNotTellAreRefused) {
  EmulatedMaker m;
  const ValueId x = m.input({1, 3});
  const EmulatedGraph inner = m.done(m.node("Relu", {m.node("Softmax", {x})}));
  try {
    (void)inference_error(inner.graph, inner.graph.outputs()[0], kHalf, Norm(2));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("Softmax"), std::string::npos) << error.what();
  }
  EmulatedMaker n;
  const ValueId constant = n.node("Erf", {n.weights({2}, {0.5, 2})});
  const EmulatedGraph folded = n.done(n.node("Mul", {n.input({1, 2}), constant}));
  EXPECT_THROW((void)inference_error(folded.graph, folded.graph.outputs()[0], kHalf, Norm(2)),
               Error);
  EXPECT_THROW((void)inference_error(folded.graph, folded.graph.outputs()[0],
                                     {Type::kFloat64, Type::kFloat64}, Norm(2)),
               Error);
}

// 0.9999 becomes 1 in float16, and with it the whole number.
TEST(InferenceRange, WholeNumbersMadeOfRoundedOnesAreRefused) {
  const auto cast = [](double number) {
    EmulatedMaker m;
    const ValueId whole = m.node("Cast", {m.weights({}, {number})}, {{"to", Index{7}}});
    const ValueId back = m.node("Cast", {whole}, {{"to", Index{1}}});
    return m.done(m.node("Mul", {m.input({1, 2}), back}));
  };
  const auto error_of = [](const EmulatedGraph& net) {
    return inference_error(net.graph, net.graph.outputs()[0], kHalf, Norm(2))({{1, 2}}, 0)[0];
  };
  EXPECT_THROW((void)error_of(cast(static_cast<float>(0.9999))), Error);
  EXPECT_EQ(error_of(cast(3)), 0);
}

// Operators that read their bounds when they are made do not know how these are computed.
TEST(InferenceRange, ComputedParametersAreNotTaken) {
  const auto clipped = [](bool computed) {
    EmulatedMaker m;
    const ValueId one = computed ? m.node("Sub", {m.weights({}, {70001}), m.weights({}, {70000})})
                                 : m.weights({}, {1});
    return m.done(m.node("Clip", {m.input({1, 2}), m.weights({}, {-1}), one}));
  };
  EXPECT_EQ(radius_of(clipped(true), {-1, 0.5}, 1, kHalf), 0);
  EXPECT_GT(radius_of(clipped(false), {-1, 0.5}, 1, kHalf), 0);
}

TEST(InferenceRange, FlushToZeroIsAskedFor) {
  // Both products are subnormal numbers of float16.
  const EmulatedGraph net = diagonal(0x1p-12);
  EXPECT_GT(radius_of(net, {0x1p-10, 0x1p-4}, 1, kHalf), 0);
  const InferenceFormat flushing{Type::kFloat16, Type::kFloat16, true};
  expect_tie_or_worse(net, {0x1p-10, 0x1p-4}, 1, flushing);
  EXPECT_EQ(radius_of(net, {0x1p-10, 0x1p-4}, 1, flushing), 0);
  EXPECT_GT(radius_of(net, {0, 2}, 1, flushing), 0);
}

}  // namespace
}  // namespace lipscope
