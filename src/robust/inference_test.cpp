// SPDX-License-Identifier: Apache-2.0
// Bounds of the error of another arithmetic against that arithmetic, operation by operation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/robustness.h"
#include "robust/sum_rounding.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using Type = ElementType;
using Reals = std::vector<double>;

enum class Order { kForward, kBackward, kLargestFirst, kPairs, kFused };
constexpr Order kOrders[] = {Order::kForward, Order::kBackward, Order::kLargestFirst, Order::kPairs,
                             Order::kFused};

double round_in(Type format, double x) { return round_to(format, x); }

double sum_in_pairs(Type format, std::span<const double> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0];
  const std::size_t half = terms.size() / 2;
  return round_in(
      format, sum_in_pairs(format, terms.first(half)) + sum_in_pairs(format, terms.subspan(half)));
}

// sum of w_j x_j, each product and partial sum rounded.
double dot_in(Type format, const Reals& w, const Reals& x, Order order) {
  if (order == Order::kFused) {
    double sum = 0;
    for (std::size_t j = 0; j < w.size(); ++j) sum = round_in(format, sum + w[j] * x[j]);
    return sum;
  }
  Reals terms;
  for (std::size_t j = 0; j < w.size(); ++j) terms.push_back(round_in(format, w[j] * x[j]));
  if (order == Order::kPairs) return sum_in_pairs(format, terms);
  if (order == Order::kBackward) std::ranges::reverse(terms);
  if (order == Order::kLargestFirst)
    std::ranges::sort(terms, std::greater{}, [](double t) { return std::fabs(t); });
  double sum = 0;
  for (const double t : terms) sum = round_in(format, sum + t);
  return sum;
}

struct TestLayer {
  std::vector<Reals> rows;
  Reals bias;
};

// Dense layers with ReLU between them, in the format.
Reals layers_in(const std::vector<TestLayer>& layers, Reals x, const InferenceFormat& format,
                Order order) {
  for (double& e : x) e = round_in(format.values, e);
  for (std::size_t k = 0; k < layers.size(); ++k) {
    Reals next;
    for (std::size_t i = 0; i < layers[k].rows.size(); ++i) {
      Reals w = layers[k].rows[i];
      for (double& e : w) e = round_in(format.values, e);
      const double sum = round_in(format.values, dot_in(format.sums, w, x, order));
      const double y = round_in(format.values, sum + round_in(format.values, layers[k].bias[i]));
      next.push_back(k + 1 < layers.size() ? std::max(0.0, y) : y);
    }
    x = next;
  }
  return x;
}

double float32_between(Rng& rng, double low, double high) {
  return static_cast<float>(std::uniform_real_distribution<double>(low, high)(rng));
}

std::vector<TestLayer> random_layers(Rng& rng, const std::vector<Index>& sizes) {
  std::vector<TestLayer> layers;
  for (std::size_t k = 0; k + 1 < sizes.size(); ++k) {
    TestLayer layer;
    for (Index i = 0; i < sizes[k + 1]; ++i) {
      Reals row(static_cast<std::size_t>(sizes[k]));
      for (double& e : row) e = float32_between(rng, -1, 1);
      layer.rows.push_back(row);
      layer.bias.push_back(float32_between(rng, -1, 1));
    }
    layers.push_back(layer);
  }
  return layers;
}

Graph graph_of(const std::vector<TestLayer>& layers) {
  GraphMaker m;
  ValueId x = m.input({1, std::ssize(layers[0].rows[0])});
  for (std::size_t k = 0; k < layers.size(); ++k) {
    Reals all;
    for (const Reals& row : layers[k].rows) all.insert(all.end(), row.begin(), row.end());
    const Index out = std::ssize(layers[k].rows);
    x = m.add("Gemm",
              {x, m.weights({out, std::ssize(all) / out}, all), m.weights({out}, layers[k].bias)},
              {{"transB", Index{1}}});
    if (k + 1 < layers.size()) x = m.add("Relu", {x});
  }
  return m.finish(x);
}

Reals values_at(const Graph& graph, const Reals& x) {
  const Tensor f = evaluate(graph, split_inputs(graph, x))[0];
  return {f.doubles().begin(), f.doubles().end()};
}

const InferenceFormat kFormats[] = {{Type::kFloat16, Type::kFloat16},
                                    {Type::kBFloat16, Type::kBFloat16},
                                    {Type::kFloat32, Type::kFloat32},
                                    {Type::kFloat16, Type::kFloat32},
                                    {Type::kBFloat16, Type::kFloat32}};

// Ten thousand inputs in every format; half of the entries zero in the middle of every other ball.
TEST(InferenceError, HoldsForRealArithmeticInTheFormat) {
  Rng rng(17);
  for (const InferenceFormat& format : kFormats) {
    const auto layers = random_layers(rng, {12, 8, 8, 3});
    const Graph graph = graph_of(layers);
    const auto error = inference_error(graph, graph.outputs()[0], format, Norm::infinity());
    double largest = 0;
    for (int ball = 0; ball < 10; ++ball) {
      Reals center(12);
      for (std::size_t j = 0; j < center.size(); ++j)
        center[j] = ball % 2 == 0 && j % 2 == 0 ? 0 : float32_between(rng, -3, 3 + 9 * (ball % 3));
      const double radius = ball < 3 ? 0 : 0.001 * ball;
      const Reals bound = error(center, radius);
      for (int t = 0; t < 1000; ++t) {
        Reals x = center;
        for (double& e : x) e += std::uniform_real_distribution<double>(-radius, radius)(rng);
        const Reals exact = values_at(graph, x);
        const Reals seen = layers_in(layers, x, format, kOrders[t % 5]);
        for (std::size_t i = 0; i < exact.size(); ++i) {
          ASSERT_LE(std::fabs(exact[i] - seen[i]), bound[i]);
          largest = std::max(largest, std::fabs(exact[i] - seen[i]) / bound[i]);
        }
      }
    }
    EXPECT_GT(largest, 0.02);  // not a bound that anything would meet
  }
}

// Sums as bad as they get: a large term first, then many that are lost or rounded away from zero.
TEST(SumRounding, HoldsForAnyOrder) {
  Rng rng(5);
  for (const Type format : {Type::kFloat16, Type::kBFloat16}) {
    const double unit = format == Type::kFloat16 ? 0x1p-11 : 0x1p-8;
    double closest = 0;
    for (int t = 0; t < 3000; ++t) {
      const int count = 2 + t % 300;
      Reals terms;
      SumTerms known;
      double exact = 0;
      for (int j = 0; j < count; ++j) {
        double term = float32_between(rng, -1, 1) * std::ldexp(1, -static_cast<int>(rng() % 14));
        if (t % 3 == 0) term = j == 0 ? 1 : unit * (t % 2 == 0 ? 0.99 : 1.01);
        term = round_in(format, term);
        terms.push_back(term);
        exact += term;
        known.sizes.push_back(std::fabs(term));
        (term > 0 ? known.plus : known.minus) += std::fabs(term);
      }
      const double bound = sum_rounding(known, unit);
      for (const Order order : kOrders) {
        const double seen = dot_in(format, Reals(terms.size(), 1), terms, order);
        ASSERT_LE(std::fabs(seen - exact), bound);
        if (count > 20) closest = std::max(closest, std::fabs(seen - exact) / bound);
      }
    }
    EXPECT_GT(closest, 0.3);
  }
  EXPECT_EQ(sum_rounding({.sizes = {5}, .plus = 5, .minus = 0}, 0x1p-8), 0);
}

struct TestChannel {
  double scale, bias, mean, variance;
};

// The ways in which libraries compute it.
double batch_norm_in(Type format, const TestChannel& c, double epsilon, double x, int way) {
  const auto fl = [&](double v) { return round_in(format, v); };
  const double deviation = fl(std::sqrt(fl(fl(c.variance) + fl(epsilon))));
  const double scale = fl(c.scale), bias = fl(c.bias), mean = fl(c.mean);
  switch (way) {
    case 0: {  // x s + t
      const double s = fl(scale / deviation);
      return fl(fl(x * s) + fl(bias - fl(mean * s)));
    }
    case 1: {  // the same with factors prepared in double precision
      const double s = c.scale / std::sqrt(c.variance + epsilon);
      return fl(fl(x * fl(s)) + fl(c.bias - c.mean * s));
    }
    case 2: return fl(fl(fl(fl(x - mean) / deviation) * scale) + bias);
    case 3: return fl(fl(fl(fl(x - mean) * scale) / deviation) + bias);
    case 4: return fl(fl(fl(x - mean) * fl(scale * fl(1 / deviation))) + bias);
    default: {  // fused
      const double s = fl(scale * fl(1 / deviation));
      return fl(x * s + fl(bias - mean * s));
    }
  }
}

TEST(InferenceError, HoldsForBatchNormalizationInAnyForm) {
  Rng rng(23);
  for (const InferenceFormat& format : kFormats) {
    double largest = 0;
    for (int net = 0; net < 20; ++net) {
      // A variance that is lost in float16, for some.
      const double epsilon = net % 3 == 0 ? 1e-3 : 1e-5;
      std::vector<TestChannel> channels;
      Reals all[4];
      for (int c = 0; c < 3; ++c) {
        const double low = net % 4 == 0 ? 1e-7 : 0.1;
        channels.push_back({float32_between(rng, -2, 2), float32_between(rng, -1, 1),
                            float32_between(rng, -2, 2), float32_between(rng, low, 4 * low)});
        const TestChannel& made = channels.back();
        all[0].push_back(made.scale), all[1].push_back(made.bias);
        all[2].push_back(made.mean), all[3].push_back(made.variance);
      }
      GraphMaker m;
      std::vector<ValueId> inputs{m.input({1, 3, 2})};
      for (const Reals& list : all) inputs.push_back(m.weights({3}, list));
      const Graph graph = m.finish(m.add("BatchNormalization", inputs, {{"epsilon", epsilon}}, 15));
      const auto error = inference_error(graph, graph.outputs()[0], format, Norm::infinity());
      Reals center(6);
      for (double& e : center) e = float32_between(rng, -2, 2);
      const Reals bound = error(center, 0.01);
      for (int t = 0; t < 600; ++t) {
        Reals x = center;
        for (double& e : x) e += std::uniform_real_distribution<double>(-0.01, 0.01)(rng);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const TestChannel& c = channels[i / 2];
          const double exact = (x[i] - c.mean) * c.scale / std::sqrt(c.variance + epsilon) + c.bias;
          const double seen = batch_norm_in(format.values, c, static_cast<float>(epsilon),
                                            round_in(format.values, x[i]), t % 6);
          // The graph's epsilon is the double nearest to the attribute.
          ASSERT_LE(std::fabs(exact - seen), bound[i] + 1e-9 * std::fabs(exact)) << t % 6;
          largest = std::max(largest, std::fabs(exact - seen) / bound[i]);
        }
      }
    }
    EXPECT_GT(largest, 0.1);
  }
}

TEST(InferenceError, FactorsOfGemmCount) {
  // Products underflow in float16 before the factor makes them large.
  GraphMaker m;
  const Graph graph =
      m.finish(m.add("Gemm", {m.input({1, 1}), m.weights({1, 1}, {0x1p-13})}, {{"alpha", 1024.0}}));
  const auto error = inference_error(graph, graph.outputs()[0], kFormats[0], Norm(2));
  EXPECT_GE(error({{0x1p-13}}, 0)[0], 0x1p-16);  // computed: 0
  // Sums overflow before it makes them small.
  GraphMaker n;
  const Graph small =
      n.finish(n.add("Gemm", {n.input({1, 1}), n.weights({1, 1}, {30000})}, {{"alpha", 0.001}}));
  EXPECT_EQ(inference_error(small, small.outputs()[0], kFormats[0], Norm(2))({{4.0}}, 0)[0], kInf);
}

TEST(InferenceError, OverflowAndUnknownOperatorsAreSeen) {
  const auto one_weight = [](double w) {
    GraphMaker m;
    return m.finish(m.add("MatMul", {m.input({1, 1}), m.weights({1, 1}, {w})}));
  };
  const auto error_at = [](const Graph& graph, double x) {
    return inference_error(graph, graph.outputs()[0], kFormats[0], Norm(2))({{x}}, 0.1)[0];
  };
  EXPECT_LT(error_at(one_weight(1), 1), 0.01);
  EXPECT_EQ(error_at(one_weight(1), 40000), kInf);
  // An infinite weight times zero is no number.
  const Graph large = one_weight(70000);
  EXPECT_EQ(inference_error(large, large.outputs()[0], kFormats[0], Norm(2))({{0.0}}, 0)[0], kInf);
  GraphMaker m;
  const Graph soft = m.finish(m.add("Softmax", {m.input({1, 3})}));
  EXPECT_THROW((void)inference_error(soft, soft.outputs()[0], {}, Norm(2)), Error);
  // Constants that cancel are rounded one by one.
  GraphMaker n;
  const Graph sum =
      n.finish(n.add("Sum", {n.input({1}), n.weights({1}, {1000.3}), n.weights({1}, {-1000.3})}));
  EXPECT_THROW((void)inference_error(sum, sum.outputs()[0], {}, Norm(2)), Error);
}

}  // namespace
}  // namespace lipscope
