// SPDX-License-Identifier: Apache-2.0
#include "bounds/derivative_boxes.h"

#include <gtest/gtest.h>

#include "attention/attention_graphs_for_test.h"
#include "lipscope/evaluate.h"
#include "ops/facets/box_product.h"

namespace lipscope {
namespace {

using namespace testing_support;

Box box_around(const Tensor& x, double radius) {
  Box box{x, x};
  for (double& e : box.lower.doubles()) e -= radius;
  for (double& e : box.upper.doubles()) e += radius;
  return box;
}

// Products at points of the box lie in the enclosures; at radius 0 those are thin.
void expect_enclosed(const Graph& graph, std::uint64_t seed) {
  Rng rng(seed);
  const Tensor x = random_tensor(rng, graph.value(graph.inputs()[0]).type.shape);
  const ValueId out = graph.outputs()[0];
  for (const double radius : {0.0, 1e-6, 0.05}) {
    const std::vector<Box> boxes{box_around(x, radius)};
    DerivativeBoxes derivative(graph, boxes);
    const Tensor direction = random_tensor(rng, x.shape());
    const Tensor weights = random_tensor(rng, graph.value(out).type.shape);
    const auto pushed = derivative.push(direction.doubles(), out);
    const auto pulled = derivative.pull(weights.doubles(), out);
    ASSERT_TRUE(pushed && pulled);
    for (int sample = 0; sample < 5; ++sample) {
      Tensor at = x;
      std::uniform_real_distribution<double> inside(-radius, radius);
      for (double& e : at.doubles()) e += radius > 0 ? inside(rng) : 0;
      const Trace trace(graph, std::vector{at});
      const Tensor forward = trace.jvp(std::vector{direction})[0];
      const Tensor backward = trace.vjp(std::vector{weights})[0];
      const auto check = [&](const Tensor& seen, const DerivativeBoxes::Row& row) {
        double size = 1;
        for (const double e : seen.doubles()) size = std::max(size, std::abs(e));
        ASSERT_EQ(static_cast<std::size_t>(seen.size()), row.size());
        for (std::size_t i = 0; i < row.size(); ++i) {
          const double e = seen.doubles()[i], slack = 1e-12 * size;
          ASSERT_TRUE(row[i].lo <= e + slack && e - slack <= row[i].hi) << i << " " << e;
          if (radius == 0) {
            ASSERT_LE(width_up(row[i]), 1e-10 * size);
          }
        }
      };
      check(forward, *pushed);
      check(backward, *pulled);
    }
  }
}

Graph single(const std::string& op, const Shape& shape, Attributes attributes,
             const std::vector<Tensor>& weights, int opset = 17) {
  GraphMaker maker;
  std::vector<ValueId> inputs{maker.input(shape)};
  for (const Tensor& w : weights) inputs.push_back(maker.weights(w));
  return maker.finish(maker.add(op, inputs, std::move(attributes), opset));
}

TEST(DerivativeBoxes, RowsAndNormalisations) {
  Rng rng(2);
  const Tensor scale = random_tensor(rng, {4}, 0.5, 2), bias = random_tensor(rng, {4});
  const Tensor channels = random_tensor(rng, {3}, 0.5, 2), shift = random_tensor(rng, {3});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    expect_enclosed(single("Softmax", {2, 4}, {{"axis", Index{1}}}, {}), seed);
    expect_enclosed(single("Softmax", {3, 2}, {{"axis", Index{0}}}, {}), seed);
    expect_enclosed(single("LogSoftmax", {2, 4}, {{"axis", Index{1}}}, {}), seed);
    expect_enclosed(single("LayerNormalization", {3, 4}, {}, {scale, bias}), seed);
    expect_enclosed(single("InstanceNormalization", {1, 3, 5}, {}, {channels, shift}), seed);
    expect_enclosed(single("Tanh", {2, 3}, {}, {}), seed);
    expect_enclosed(
        single("MaxPool", {1, 2, 7},
               {{"kernel_shape", std::vector<Index>{3}}, {"strides", std::vector<Index>{2}}}, {}),
        seed);
    expect_enclosed(single("GlobalMaxPool", {1, 2, 5}, {}, {}), seed);
  }
}

// Derivatives at two points never differ by more than the operator says.
TEST(DerivativeBoxes, ChangesOfDerivatives) {
  Rng rng(7);
  const Tensor scale = random_tensor(rng, {4}, 0.5, 2);
  const Graph graphs[] = {single("Softmax", {2, 4}, {{"axis", Index{1}}}, {}),
                          single("LogSoftmax", {2, 4}, {{"axis", Index{1}}}, {}),
                          single("LayerNormalization", {2, 4}, {{"epsilon", 0.01}}, {scale})};
  std::normal_distribution<double> normal;
  double closest = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Graph& graph = graphs[trial % 3];
    const Node& node = graph.nodes()[0];
    const Tensor x = random_tensor(rng, {2, 4}, -0.5, 0.5);
    Tensor y = x, step = x, direction = random_tensor(rng, {2, 4}, -1, 1);
    const double size = std::pow(10.0, std::uniform_real_distribution<double>(-3, 0)(rng));
    for (double& e : step.doubles()) e = size * normal(rng);
    if (trial % 2 == 0) direction = step;
    for (std::size_t i = 0; i < 8; ++i) y.doubles()[i] += step.doubles()[i];
    const Tensor a = Trace(graph, std::vector{x}).jvp(std::vector{direction})[0];
    const Tensor b = Trace(graph, std::vector{y}).jvp(std::vector{direction})[0];
    std::vector<double> change;
    for (std::size_t i = 0; i < 8; ++i) change.push_back(a.doubles()[i] - b.doubles()[i]);
    std::vector<Box> boxes{{x, x}};
    if (node.inputs.size() > 1) boxes.push_back({scale, scale});
    const double bound =
        node.op->box_product()->derivative_change_up(boxes, norm2_up(step.doubles()));
    const double seen = norm2_down(change) / norm2_up(direction.doubles());
    ASSERT_LE(seen, bound + 1e-13) << trial;
    closest = std::max(closest, seen / bound);
  }
  EXPECT_GT(closest, 0.2);
}

TEST(DerivativeBoxes, AttentionInManySpellings) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    expect_enclosed(attention_graph({}), seed);
    expect_enclosed(attention_graph({.scale_queries = true, .causal = true}), seed);
    expect_enclosed(attention_graph({.where = true, .keys_first = true}), seed);
    expect_enclosed(attention_graph({.rotary = true, .output = false}), seed);
  }
}

TEST(DerivativeBoxes, IntegersOnTheWay) {
  GraphMaker maker;
  const ValueId x = maker.input({4});
  const ValueId whole = maker.add("Cast", {x}, {{"to", Index{7}}});
  const ValueId back = maker.add("Cast", {whole}, {{"to", Index{1}}});
  const Graph graph = maker.finish(back);
  const Tensor zero = Tensor::zeros(ElementType::kFloat64, {4});
  DerivativeBoxes derivative(graph, std::vector<Box>{{zero, zero}});
  EXPECT_FALSE(derivative.unsupported(graph.outputs()[0]).empty());
  EXPECT_FALSE(derivative.push(std::vector<double>(4, 1), graph.outputs()[0]).has_value());
}

}  // namespace
}  // namespace lipscope
