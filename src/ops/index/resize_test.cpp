// SPDX-License-Identifier: Apache-2.0
// Resizing reads the scale as the file has it: what is compared here are products of doubles with
// few digits, which are exact.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/interval.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "ops/index/resize_axis.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

Tensor few_reals(std::vector<double> entries) {
  const auto n = static_cast<Index>(entries.size());
  return {ElementType::kFloat32, {n}, std::move(entries)};
}

// A Resize of one axis of `length` entries by its scale.
Imported resized(Index length, double scale, Attributes attributes, int opset = 19) {
  const Tensor x(ElementType::kFloat32, {length},
                 std::vector<double>(static_cast<std::size_t>(length)));
  return find_op_kind("Resize")->import(
      OnnxNode("Resize", opset, std::move(attributes),
               {NodeInput::like(x, false), NodeInput::like(few_reals({}), true),
                NodeInput::like(few_reals({scale}), true)}));
}
double resize_gain(const Imported& op, Index length, std::string_view norms) {
  const auto n = static_cast<std::size_t>(length);
  const std::vector<Box> in{
      {Tensor::vector(std::vector<double>(n, -1.0)), Tensor::vector(std::vector<double>(n, 1.0))}};
  return op.op->gain({parse_norms(norms), in, 0})->value;
}
const Attributes kFloor{{"coordinate_transformation_mode", std::string("asymmetric")},
                        {"nearest_mode", std::string("floor")}};

// floor(2 / 2.000001907) is 0: the first entry is copied three times.
TEST(ResizeScale, IsNotMovedToTheNextSimpleNumber) {
  const auto scale = static_cast<double>(2.000001907F);
  EXPECT_EQ(resize_gain(resized(4, scale, kFloor), 4, "1"), 3);
  EXPECT_EQ(resize_gain(resized(4, 2, kFloor), 4, "1"), 2);
  const Imported below = resized(4, std::nextafter(2.0F, 0.0F), kFloor);
  EXPECT_EQ(below.op->infer({})[0].shape, Shape{7});
}

std::vector<double> random_scales() {
  std::mt19937_64 rng(5);
  std::uniform_real_distribution<float> any(0.3F, 4);
  std::vector<double> scales{1, 2, 3, 0.5, 1.5};
  for (const float near : {1.0F, 2.0F, 3.0F, 0.5F, 1.0F / 3, 2.0F / 3}) {
    scales.push_back(double{std::nextafter(near, 0.0F)});
    scales.push_back(double{std::nextafter(near, 9.0F)});
    scales.push_back(double{near});
  }
  for (int i = 0; i < 20; ++i) scales.push_back(double{any(rng)});
  return scales;
}

TEST(ResizeNearest, TakesTheEntryTheScaleSays) {
  for (const double s : random_scales()) {
    const Index in = 9, out = axis_position(Rational(s * 9).floor());
    for (const char* nearest : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}) {
      ResizeRule rule;
      rule.nearest = nearest;
      for (const char* coordinates : {"asymmetric", "half_pixel"}) {
        rule.coordinates = coordinates;
        const AxisRows rows = resize_axis(rule, in, out, Rational(s), 0, 1);
        ASSERT_TRUE(rows.is_selection());
        const std::vector<Index> sources = rows.selection();
        for (Index i = 0; i < out; ++i) {
          // The coordinate times 2 s: 2 i, or 2 i + 1 - s.
          const bool centred = rule.coordinates == "half_pixel";
          const auto x = static_cast<double>(2 * i + (centred ? 1 : 0)) - (centred ? s : 0);
          const auto j = static_cast<double>(sources[static_cast<std::size_t>(i)]);
          const double shift = std::string(nearest).starts_with("round") ? 1 : 0;
          if (j > 0) {  // not pushed up to the edge
            const double least = rule.nearest == "ceil" ? 2 * j - 2 : 2 * j - shift;
            const bool open = rule.nearest == "ceil" || rule.nearest == "round_prefer_floor";
            EXPECT_TRUE(open ? x > least * s : x >= least * s) << s << " " << nearest << " " << i;
          }
          if (j < static_cast<double>(in - 1)) {
            const double most = rule.nearest == "ceil" ? 2 * j : 2 * j + 2 - shift;
            const bool open = rule.nearest == "floor" || rule.nearest == "round_prefer_ceil";
            EXPECT_TRUE(open ? x < most * s : x <= most * s) << s << " " << nearest << " " << i;
          }
        }
      }
    }
  }
}

TEST(ResizeLinear, WeightsHoldTheExactOnes) {
  for (const double s : random_scales()) {
    const Index in = 9, out = axis_position(Rational(s * 9).floor());
    ResizeRule rule;
    rule.kernel = ResizeKernel::kLinear;
    rule.coordinates = "asymmetric";
    const AxisRows rows = resize_axis(rule, in, out, Rational(s), 0, 1);
    for (Index i = 0; i < out; ++i) {
      const auto begin = static_cast<std::size_t>(rows.begin[static_cast<std::size_t>(i)]);
      const auto end = static_cast<std::size_t>(rows.begin[static_cast<std::size_t>(i) + 1]);
      ASSERT_GE(end, begin + 1);
      if (end == begin + 1) continue;
      ASSERT_EQ(end, begin + 2);
      // The second weight times s is i - j s.
      const double part = static_cast<double>(i) - static_cast<double>(rows.sources[begin]) * s;
      const Interval weight = rows.weights[begin + 1];
      EXPECT_LE(mul_down(weight.lo, s), part);
      EXPECT_GE(mul_up(weight.hi, s), part);
      EXPECT_LE(weight.hi, next_up(weight.lo));
    }
  }
}

TEST(ResizeBounds, HoldWhateverTheKernel) {
  std::mt19937_64 rng(6);
  std::uniform_real_distribution<double> entry(-1, 1);
  for (const double s : random_scales()) {
    for (const char* mode : {"linear", "cubic"}) {
      for (const Index flag : {0, 1, 2}) {
        Attributes attributes{{"mode", std::string(mode)}};
        if (flag == 1) attributes["exclude_outside"] = Index{1};
        if (flag == 2) attributes["antialias"] = Index{1};
        const Imported made = resized(7, s, attributes);
        GraphBuilder builder;
        const ValueId x = builder.input("x", {ElementType::kFloat32, {7}});
        const Graph graph = builder.finish(builder.add(made.op, {x}, "resize"));
        std::vector<double> a(7), b(7);
        for (std::size_t i = 0; i < 7; ++i) a[i] = entry(rng), b[i] = entry(rng);
        const auto value = [&](const std::vector<double>& at) {
          return evaluate(graph, std::vector{Tensor(ElementType::kFloat32, {7}, at)})[0];
        };
        const Tensor fa = value(a), fb = value(b);
        double moved = 0, by = 0;
        for (Index i = 0; i < fa.size(); ++i) moved += std::abs(fa.at(i) - fb.at(i));
        for (std::size_t i = 0; i < 7; ++i) by += std::abs(a[i] - b[i]);
        EXPECT_LE(moved, resize_gain(made, 7, "1") * by * (1 + 1e-12));
        const Box point{Tensor::vector(a), Tensor::vector(a)};
        const Box range = (*made.op->range(std::vector{point}))[0];
        for (Index i = 0; i < fa.size(); ++i) {
          EXPECT_LE(range.lower.at(i), fa.at(i) + 1e-15);
          EXPECT_GE(range.upper.at(i), fa.at(i) - 1e-15);
          EXPECT_LE(range.upper.at(i) - range.lower.at(i), 1e-13);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lipscope
