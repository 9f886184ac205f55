// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "lipscope/evaluate.h"
#include "ops/elementwise/elementwise.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

using OpPtr = std::shared_ptr<const Op>;

OpPtr make_activation(std::string_view name, const Attributes& attributes = {}) {
  const NodeInput input{{ElementType::kFloat32, {}}};
  return find_op_kind(name)->import(OnnxNode(std::string(name), 20, attributes, {input})).op;
}
Interval slopes(const OpPtr& op, const Interval& x = kEntire) {
  return op->elementwise()->slopes(x).value();
}
Interval range(const OpPtr& op, const Interval& x) {
  const auto boxes = op->range(std::vector<Box>{{Tensor::scalar(x.lo), Tensor::scalar(x.hi)}});
  return {boxes.value()[0].lower.at(0), boxes.value()[0].upper.at(0)};
}
double slope_gain(const OpPtr& op, const Interval& x) {
  const std::vector<Box> box{{Tensor::scalar(x.lo), Tensor::scalar(x.hi)}};
  return op->gain({{Norm(2), Norm(2)}, box, 0}).value().value;
}

// The function at many points, with its derivative.
class Curve {
 public:
  explicit Curve(const OpPtr& op) {
    GraphBuilder builder;
    const ValueId x = builder.input("x", {ElementType::kFloat64, {}});
    graph_ = builder.finish(builder.add(op, {x}, "f"));
  }
  [[nodiscard]] std::vector<double> values(const std::vector<double>& x) const {
    const auto n = static_cast<Index>(x.size());
    const Tensor y = evaluate(graph_, std::vector<Tensor>{Tensor::vector(x)}, n)[0];
    return {y.doubles().begin(), y.doubles().end()};
  }
  [[nodiscard]] std::vector<double> derivatives(const std::vector<double>& x) const {
    const auto n = static_cast<Index>(x.size());
    const Tensor y =
        Trace(graph_, std::vector<Tensor>{Tensor::vector(x)}, n)
            .jvp(std::vector<Tensor>{Tensor::vector(std::vector<double>(x.size(), 1))})[0];
    return {y.doubles().begin(), y.doubles().end()};
  }

 private:
  Graph graph_;
};

struct Golden {
  std::string_view name;
  Attributes attributes;
  double low, high;  // to the 12th decimal
};

TEST(Activations, SlopeRangesAreThoseOfTheTable) {
  const std::vector<Golden> table{
      {"Relu", {}, 0, 1},
      {"Clip", {}, 1, 1},
      {"LeakyRelu", {{"alpha", 0.25}}, 0.25, 1},
      {"LeakyRelu", {{"alpha", -3.0}}, -3, 1},
      {"Sigmoid", {}, 0, 0.25},
      {"HardSigmoid", {{"alpha", 0.25}}, 0, 0.25},
      {"Tanh", {}, 0, 1},
      {"Softsign", {}, 0, 1},
      {"Atan", {}, 0, 1},
      {"Erf", {}, 0, 1.128379167096},
      {"Softplus", {}, 0, 1},
      {"Elu", {{"alpha", 2.0}}, 0, 2},
      {"Elu", {{"alpha", -2.0}}, -2, 1},
      {"Celu", {{"alpha", 3.0}}, 0, 1},
      {"Selu", {{"alpha", 1.6732632423543773}, {"gamma", 1.0507009873554805}}, 0, 1.758099340847},
      {"Silu", {}, -0.099839320129, 1.099839320129},
      {"Swish", {{"alpha", 1.702}}, -0.099839320129, 1.099839320129},
      {"Swish", {{"alpha", -0.3}}, -0.099839320129, 1.099839320129},
      {"HardSwish", {}, -0.5, 1.5},
      {"Mish", {}, -0.112526122389, 1.088498161252},
      {"Gelu", {}, -0.128904145185, 1.128904145185},
      {"Gelu", {{"approximate", std::string("tanh")}}, -0.128993068659, 1.128993068659},
      {"Abs", {}, -1, 1},
      {"Sin", {}, -1, 1},
      {"Cos", {}, -1, 1},
      {"Shrink", {{"bias", 0.5}, {"lambd", 0.5}}, 0, 1},
      {"Exp", {}, 0, kInf},
      {"Floor", {}, 0, kInf},
      {"ThresholdedRelu", {}, 0, kInf},
      {"ThresholdedRelu", {{"alpha", 0.0}}, 0, 1},
      {"Shrink", {}, 0, kInf},
  };
  for (const Golden& row : table) {
    SCOPED_TRACE(row.name);
    const Interval got = slopes(make_activation(row.name, row.attributes));
    EXPECT_LE(got.lo, row.low + 6e-13);
    EXPECT_GE(got.hi, row.high - 6e-13);
    EXPECT_GE(got.lo, row.low - 2e-12);
    EXPECT_LE(got.hi, row.high + 2e-12);
  }
}

// GELU 1/2 (1 + erf 1) + 1 / (e sqrt(pi)); SiLU 1/2 + z/4 with z tanh(z/2) = 2. The doubles nearest
// to the exact constants, from 40 digits: the enclosures hold them and are a few ulp wide.
TEST(Activations, ConstantsAreEnclosedTightly) {
  const struct {
    OpPtr op;
    double exact;
  } table[] = {
      {make_activation("Gelu"), 0x1.20ffdcafe39a7p+0},
      {make_activation("Silu"), 0x1.198f11d6cef09p+0},
      {make_activation("Mish"), 0x1.16a7d0c455120p+0},
      {make_activation("Gelu", {{"approximate", std::string("tanh")}}), 0x1.2105b0934cd3dp+0}};
  for (const auto& row : table) {
    const Interval got = slopes(row.op);
    EXPECT_GE(got.hi, next_down(row.exact));
    EXPECT_LE(got.hi, row.exact + 1e-13);
  }
}

TEST(Activations, KinksCountWhereTheyAre) {
  // The slope just right of -3 is -1/2; the ends of the interval only show -0.467.
  EXPECT_LE(slopes(make_activation("HardSwish"), {-4, -2.9}).lo, -0.5);
  EXPECT_EQ(slopes(make_activation("HardSwish"), {-5, -4}), point(0));
  EXPECT_EQ(slopes(make_activation("HardSwish"), {4, 5}), point(1));
  EXPECT_EQ(slopes(make_activation("Relu"), {-2, -1}), point(0));
  EXPECT_EQ(slopes(make_activation("Relu"), {-2, 0}), (Interval{0, 1}));
  EXPECT_EQ(slopes(make_activation("Relu"), {1, 2}), point(1));
}

TEST(Activations, GeluIsSteeperThanElevenTenths) {
  const OpPtr gelu = make_activation("Gelu");
  const std::vector<double> y =
      Curve(gelu).values({std::numbers::sqrt2 - 1e-4, std::numbers::sqrt2 + 1e-4});
  EXPECT_GT((y[1] - y[0]) / 2e-4, 1.1289);
  EXPECT_GE(slope_gain(gelu, kEntire), (y[1] - y[0]) / 2e-4);
  EXPECT_GT(slopes(make_activation("Gelu", {{"approximate", std::string("tanh")}})).hi,
            slopes(gelu).hi);
}

TEST(Activations, JumpsCountOnlyInside) {
  EXPECT_EQ(slope_gain(make_activation("Floor"), {0.2, 0.9}), 0);
  EXPECT_EQ(slope_gain(make_activation("Floor"), {1, 1.5}), 0);
  EXPECT_EQ(slope_gain(make_activation("Floor"), {0.5, 1}), kInf);
  EXPECT_EQ(slope_gain(make_activation("Ceil"), {0.5, 1}), 0);
  EXPECT_EQ(slope_gain(make_activation("Round"), {0.6, 1.4}), 0);
  EXPECT_EQ(slope_gain(make_activation("Sign"), {-1, 1}), kInf);
  EXPECT_EQ(slope_gain(make_activation("Sign"), {1, 2}), 0);
  EXPECT_EQ(slope_gain(make_activation("Shrink"), {0.6, 1}), 1);
  EXPECT_EQ(slope_gain(make_activation("Shrink"), {0.4, 1}), kInf);
  EXPECT_EQ(slope_gain(make_activation("ThresholdedRelu"), {1.5, 2}), 1);
  EXPECT_EQ(slope_gain(make_activation("ThresholdedRelu"), {0.5, 2}), kInf);
  EXPECT_EQ(slope_gain(make_activation("Reciprocal"), {-1, 1}), kInf);
  EXPECT_EQ(slope_gain(make_activation("Tan"), {1, 2}), kInf);
  EXPECT_EQ(slope_gain(make_activation("Exp"), {0, kInf}), kInf);
  EXPECT_EQ(slope_gain(make_activation("Sign"), {0, 0}), 0) << "a point does not move";
}

std::vector<OpPtr> curves() {
  std::vector<OpPtr> ops;
  for (const std::string_view name :
       {"Relu", "Sigmoid", "Tanh", "Softsign", "Softplus", "HardSwish", "HardSigmoid", "Mish",
        "Gelu", "Silu",    "Selu", "Elu",      "Celu",     "Erf",       "Sin",         "Cos",
        "Atan", "Sinh",    "Cosh", "Asinh",    "Exp",      "Abs",       "Neg",         "Clip"}) {
    ops.push_back(make_activation(name));
  }
  for (const double alpha : {-2.0, -0.5, 0.0, 0.3}) {
    ops.push_back(make_activation("LeakyRelu", {{"alpha", alpha}}));
    ops.push_back(make_activation("Elu", {{"alpha", alpha}}));
    ops.push_back(make_activation("Swish", {{"alpha", alpha}}));
    ops.push_back(make_activation("HardSigmoid", {{"alpha", alpha}, {"beta", 0.3}}));
    ops.push_back(make_activation("Selu", {{"alpha", alpha}, {"gamma", -1.5}}));
  }
  ops.push_back(make_activation("Shrink", {{"bias", 0.75}, {"lambd", 0.75}}));
  ops.push_back(make_activation("Gelu", {{"approximate", std::string("tanh")}}));
  for (const double k : {-0.7, 0.0, 0.79788, 1e-3, 40.0}) {
    ops.push_back(make_gelu(GeluErf{0.5, k, 1}));
    ops.push_back(make_gelu(GeluErf{-0.3, 1, k == 0 ? 1 : k}));
    ops.push_back(make_gelu(GeluTanh{0.5, k, 0}));
    ops.push_back(make_gelu(GeluTanh{0.5, k, 0.0447150007}));
    ops.push_back(make_gelu(GeluTanh{-2, k, 3}));
    ops.push_back(make_hard_swish({k, 3, 0.5}));
    ops.push_back(make_hard_swish({k, 1, -0.25}));
    ops.push_back(make_hard_swish({k, -2, 1.5}));
    ops.push_back(make_hard_swish({k, 2, 2.5}));
  }
  return ops;
}

// Random intervals: every sampled value and slope is inside, and the bounds are reached.
TEST(Activations, LocalRangesAreExact) {
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> place(-6, 6), size(-3, 1);
  const std::vector<OpPtr> ops = curves();
  for (std::size_t which = 0; which < ops.size(); ++which) {
    SCOPED_TRACE(std::string(ops[which]->name()) + " " + std::to_string(which));
    const Curve curve(ops[which]);
    for (int trial = 0; trial < 60; ++trial) {
      const double low = place(rng), high = low + std::pow(10, size(rng));
      std::vector<double> grid;
      for (int i = 0; i <= 2000; ++i) grid.push_back(std::min(high, low + (high - low) * i / 2000));
      grid.back() = high;
      const auto y = curve.values(grid), d = curve.derivatives(grid);
      for (const auto& [seen, bound] :
           {std::pair{y, range(ops[which], {low, high})}, {d, slopes(ops[which], {low, high})}}) {
        const auto [least, most] = std::minmax_element(seen.begin(), seen.end());
        const double scale = std::max({1.0, std::abs(*least), std::abs(*most)});
        ASSERT_GE(*least, bound.lo - 1e-13 * scale) << low << " " << high;
        ASSERT_LE(*most, bound.hi + 1e-13 * scale) << low << " " << high;
        double step = 1e-12 * scale;  // largest change between neighbours of the grid
        for (std::size_t i = 1; i < seen.size(); ++i)
          step = std::max(step, std::abs(seen[i] - seen[i - 1]));
        ASSERT_LE(bound.hi, *most + 2 * step) << low << " " << high;
        ASSERT_GE(bound.lo, *least - 2 * step) << low << " " << high;
      }
    }
  }
}

// A falling cubic has bounds, if wide ones.
TEST(Activations, FallingCubicIsStillEnclosed) {
  const OpPtr op = make_gelu(GeluTanh{0.5, 0.8, -0.05});
  const Curve curve(op);
  for (double x = -5; x <= 5; x += 0.01) {
    const Interval near{x - 0.01, x + 0.01};
    EXPECT_TRUE(contains(range(op, near), curve.values({x})[0]));
    EXPECT_TRUE(contains(slopes(op, near), curve.derivatives({x})[0]));
  }
}

TEST(Activations, ExtremeIntervalsGiveBounds) {
  std::vector<OpPtr> ops = curves();
  for (const std::string_view name : {"Sqrt", "Log", "Reciprocal", "Asin", "Acos", "Acosh", "Atanh",
                                      "Tan", "Floor", "Sign", "Round", "Shrink"}) {
    ops.push_back(make_activation(name));
  }
  const std::vector<double> ends{-kInf,  -1e308, -1e200, -800,  -1e-300, 0,
                                 1e-310, 1e-5,   800,    1e200, 1e308,   kInf};
  for (const OpPtr& op : ops) {
    SCOPED_TRACE(op->name());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      for (std::size_t j = i; j < ends.size(); ++j) {
        if (i == j && std::isinf(ends[i])) continue;
        const Interval x{ends[i], ends[j]}, y = range(op, x);
        EXPECT_LE(y.lo, y.hi) << x.lo << " " << x.hi;
        EXPECT_GE(slope_gain(op, x), 0) << x.lo << " " << x.hi;
      }
    }
  }
  // Far out the slopes stay what they are on the whole line.
  for (const std::string_view name : {"Gelu", "Silu", "Mish", "Tanh", "Sigmoid"}) {
    EXPECT_LE(slope_gain(make_activation(name), {-1e300, 1e300}),
              slope_gain(make_activation(name), kEntire))
        << name;
  }
  const OpPtr tanh_gelu = make_activation("Gelu", {{"approximate", std::string("tanh")}});
  EXPECT_LE(slope_gain(tanh_gelu, {-1e300, 1e300}), slope_gain(tanh_gelu, kEntire));
}

TEST(Activations, DiagonalGainsFollowTheNorms) {
  const std::vector<Box> boxes{{Tensor::vector({-1, 1, 2}), Tensor::vector({-0.5, 2, 3})}};
  const OpPtr relu = make_activation("Relu");
  EXPECT_EQ(relu->gain({{Norm(2), Norm(2)}, boxes, 0})->value, 1);
  EXPECT_EQ(relu->gain({{Norm(1), Norm::infinity()}, boxes, 0})->value, 1);
  EXPECT_EQ(relu->gain({{Norm::infinity(), Norm(1)}, boxes, 0})->value, 2);
}

TEST(Activations, TheTableNamesWhereTheSlopeIsLargest) {
  const auto table = slope_table();
  const auto find = [&](std::string_view name, std::string_view attributes) {
    for (const SlopeRow& row : table) {
      if (row.name == name && row.attributes == attributes) return row;
    }
    throw std::runtime_error("no row " + std::string(name));
  };
  EXPECT_NEAR(find("Gelu", "").where, std::numbers::sqrt2, 1e-6);
  EXPECT_NEAR(find("Gelu", "approximate=tanh").where, 1.418504008791, 1e-6);
  EXPECT_NEAR(find("Silu", "").where, 2.399357280515, 1e-6);
  EXPECT_NEAR(find("Mish", "").where, 1.490571179485, 1e-6);
  EXPECT_EQ(find("Tanh", "").where, 0);
  EXPECT_EQ(find("Relu", "").where, 0);
  EXPECT_EQ(find("Softplus", "").where, kInf);
  EXPECT_EQ(find("Exp", "").where, kInf);
  EXPECT_EQ(find("HardSwish", "").lipschitz, 1.5);
  EXPECT_NEAR(find("HardSwish", "").where, 3, 1e-12);
}

}  // namespace
}  // namespace lipscope
