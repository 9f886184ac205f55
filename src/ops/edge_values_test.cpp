// SPDX-License-Identifier: Apache-2.0
// NaN, ties, overflow and empty tensors, which the operator kit's random entries never meet.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rounding.h"
#include "lipscope/evaluate.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

struct Given {
  std::string op;
  std::vector<Tensor> variables;
  std::vector<Tensor> constants = {};  // inputs after the variables
  Attributes attributes = {};
  int opset = 13;
};

Graph graph_of(const Given& given) {
  GraphBuilder builder;
  std::vector<ValueId> ids;
  std::vector<std::optional<NodeInput>> infos;
  const auto add = [&](const Tensor& tensor, bool constant) {
    const ValueType type{tensor.type(), tensor.shape()};
    const std::string name = "x" + std::to_string(ids.size());
    ids.push_back(constant ? builder.constant(name, tensor) : builder.input(name, type));
    infos.push_back(NodeInput::like(tensor, constant));
  };
  for (const Tensor& tensor : given.variables) add(tensor, false);
  for (const Tensor& tensor : given.constants) add(tensor, true);
  const OnnxNode node(given.op, given.opset, given.attributes, infos);
  const Imported imported = find_op_kind(given.op)->import(node);
  std::vector<ValueId> uses;
  for (const Index k : imported.uses) uses.push_back(ids[static_cast<std::size_t>(k)]);
  return builder.finish(builder.add(imported.op, uses, "node"));
}

Tensor run_given(const Given& given, Precision precision = Precision::kFloat64) {
  return evaluate(graph_of(given), given.variables, 1, precision).front();
}

void expect_reals(const Given& given, const std::vector<double>& expected) {
  for (const Precision precision : {Precision::kFloat64, Precision::kFloat32}) {
    const Tensor got = run_given(given, precision);
    ASSERT_EQ(got.size(), static_cast<Index>(expected.size())) << given.op;
    for (Index i = 0; i < got.size(); ++i) {
      const double want = expected[static_cast<std::size_t>(i)];
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got.at(i))) << given.op << " entry " << i;
      } else {
        EXPECT_EQ(got.at(i), want) << given.op << " entry " << i;
      }
    }
  }
}

void expect_integers(const Given& given, const std::vector<Index>& expected) {
  const Tensor got = run_given(given);
  EXPECT_EQ(std::vector<Index>(got.ints().begin(), got.ints().end()), expected) << given.op;
}

Tensor reals(std::vector<double> entries) { return Tensor::vector(std::move(entries)); }
Tensor integers(ElementType type, std::vector<Index> entries) {
  const auto n = static_cast<Index>(entries.size());
  return {type, {n}, std::move(entries)};
}

TEST(EdgeValues, NaNStaysWhereNumpyKeepsIt) {
  const Tensor a = reals({kNaN, 1, 2}), b = reals({0, kNaN, 3});
  expect_reals({"Max", {a, b}}, {kNaN, kNaN, 3});
  expect_reals({"Min", {a, b}}, {kNaN, kNaN, 2});
  expect_reals({"Relu", {a}}, {kNaN, 1, 2});
  expect_reals({"Clip", {a}, {Tensor::scalar(0), Tensor::scalar(1.5)}}, {kNaN, 1, 1.5});
  expect_reals({"Sign", {a}}, {kNaN, 1, 1});
  for (const char* op : {"LeakyRelu", "Elu", "ThresholdedRelu", "Shrink", "HardSigmoid",
                         "HardSwish", "Softplus", "Mish", "Gelu", "Silu", "Sigmoid"}) {
    EXPECT_TRUE(std::isnan(run_given({op, {a}}).at(0))) << op;
  }
  for (const char* op : {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceLogSumExp"}) {
    EXPECT_TRUE(std::isnan(run_given({op, {a}}).at(0))) << op;
    EXPECT_TRUE(std::isnan(run_given({op, {b}}).at(0))) << op;
  }
  expect_integers({"ArgMax", {reals({1, kNaN, 3})}}, {1});
}

TEST(EdgeValues, RoundTakesTiesToEven) {
  expect_reals({"Round", {reals({-2.5, -0.5, 0.5, 1.5, 2.5})}}, {-2, 0, 0, 2, 2});
}

TEST(EdgeValues, ActivationsDoNotOverflow) {
  const Tensor far = reals({-1000, 1000});
  expect_reals({"Sigmoid", {far}}, {0, 1});
  expect_reals({"Softplus", {far}}, {0, 1000});
  expect_reals({"Mish", {far}}, {0, 1000});
  expect_reals({"Silu", {far}}, {0, 1000});
  expect_reals({"Gelu", {far}}, {0, 1000});
  expect_reals({"Elu", {far}}, {-1, 1000});
}

TEST(EdgeValues, LogSumExpOfInfinities) {
  expect_reals({"ReduceLogSumExp", {reals({-kInf, -kInf})}}, {-kInf});
  expect_reals({"ReduceLogSumExp", {reals({kInf, 0})}}, {kInf});
  expect_reals({"ReduceLogSumExp", {reals({1000, -1000})}}, {1000});
}

TEST(EdgeValues, ReductionsOfNothing) {
  const Tensor none = Tensor::zeros(ElementType::kFloat32, {2, 0});
  const Attributes over = {{"axes", std::vector<Index>{1}}};
  expect_reals({.op = "ReduceMax", .variables = {none}, .attributes = over}, {-kInf, -kInf});
  expect_reals({.op = "ReduceProd", .variables = {none}, .attributes = over}, {1, 1});
  expect_reals({.op = "ReduceL2", .variables = {none}, .attributes = over}, {0, 0});
  expect_reals({.op = "ReduceLogSumExp", .variables = {none}, .attributes = over}, {-kInf, -kInf});
}

TEST(EdgeValues, IntegersWrapAndDivideAsTheirType) {
  constexpr Index kSmallest = std::numeric_limits<Index>::min();
  using enum ElementType;
  expect_integers({"Add", {integers(kInt8, {127}), integers(kInt8, {1})}}, {-128});
  expect_integers({"Mul", {integers(kInt64, {kSmallest}), integers(kInt64, {-1})}}, {kSmallest});
  expect_integers({"Neg", {integers(kInt8, {-128})}}, {-128});
  expect_integers(
      {"Div", {integers(kInt64, {kSmallest, -7, 7, 5}), integers(kInt64, {-1, 2, -2, 0})}},
      {kSmallest, -3, -3, 0});
  expect_integers({"Div", {integers(kUInt64, {-1}), integers(kUInt64, {2})}}, {kSmallest ^ -1});
  expect_integers({"Mod", {integers(kInt64, {-7, 7, kSmallest}), integers(kInt64, {3, -3, -1})}},
                  {2, -2, 0});
  expect_integers({.op = "Mod",
                   .variables = {integers(kInt64, {-7, 7}), integers(kInt64, {3, -3})},
                   .attributes = {{"fmod", Index{1}}}},
                  {-1, 1});
  expect_integers({"Max", {integers(kUInt64, {-1}), integers(kUInt64, {3})}}, {-1});
  expect_integers({"Less", {integers(kUInt64, {-1}), integers(kUInt64, {3})}}, {0});
  expect_integers({"Pow", {integers(kInt32, {-2, 1, 3, 2}), integers(kInt32, {3, -1, -1, 31})}},
                  {-8, 1, 0, std::numeric_limits<std::int32_t>::min()});
}

TEST(EdgeValues, ProductsWithZerosHaveTheirDerivative) {
  const Given given{"ReduceProd", {reals({2, 0, 5})}};
  const Graph graph = graph_of(given);
  const Trace trace(graph, given.variables);
  const auto gradient = trace.vjp(std::vector<Tensor>{reals({1})});
  EXPECT_EQ(gradient[0], reals({0, 10, 0}));
}

TEST(EdgeValues, PowersHaveDerivativesAtZero) {
  const Given given{"Pow", {reals({0, 0, 0})}, {reals({0, 1, 2})}};
  const Graph graph = graph_of(given);
  const Trace trace(graph, given.variables);
  const auto gradient = trace.vjp(std::vector<Tensor>{reals({1, 1, 1})});
  EXPECT_EQ(gradient[0], reals({0, 1, 0}));
}

TEST(EdgeValues, QuantizationSaturatesAndTakesTiesToEven) {
  const Given given{"QuantizeLinear",
                    {reals({0.5, 1.5, -1000, 1000, kNaN})},
                    {Tensor::scalar(1), Tensor(ElementType::kInt8, {}, std::vector<Index>{1})}};
  expect_integers(given, {1, 3, -128, 127, -128});
}

}  // namespace
}  // namespace lipscope
