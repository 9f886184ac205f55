// SPDX-License-Identifier: Apache-2.0
// Kinks, pieces and lines of functions of single entries.
#include "net/unit_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "ops/elementwise/elementwise.h"
#include "pieces/pieces_for_test.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using testing_support::layered;

struct Unit {
  Graph graph;
  UnitForm form;
};

Unit unit_of(const std::string& op, const Attributes& attributes) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId z = m.add("MatMul", {x, m.weights({1, 1}, {1})});
  const ValueId y = m.add(op, {z}, attributes, op == "Clip" ? 6 : 13);
  Graph graph = m.finish(m.add("MatMul", {y, m.weights({1, 1}, {1})}));
  UnitForm form = layered(graph).layers[0].form(0);
  return {std::move(graph), std::move(form)};
}

double value_of(const UnitForm& form, double z) {
  const Tensor at = Tensor::vector(std::vector<double>{z});
  const Box box{at, at};
  return (*form.phi->range(std::span(&box, 1)))[0].lower.at(0);
}

std::vector<Unit> all_with_kinks_elsewhere() {
  std::vector<Unit> units;
  units.push_back(unit_of("Clip", {{"min", 0.0}, {"max", 6.0}}));
  units.push_back(unit_of("Clip", {{"min", -1.0}, {"max", 1.0}}));
  units.push_back(unit_of("Clip", {{"min", 0.3}}));
  units.push_back(unit_of("Clip", {{"max", -0.7}}));
  units.push_back(unit_of("HardSigmoid", {}));
  units.push_back(unit_of("HardSigmoid", {{"alpha", -0.7}, {"beta", 0.1}}));
  return units;
}

TEST(UnitForm, KnowsKinksAndPieces) {
  const Unit relu6 = unit_of("Clip", {{"min", 0.0}, {"max", 6.0}});
  ASSERT_TRUE(relu6.form.linear);
  EXPECT_EQ(relu6.form.pieces(), 3U);
  EXPECT_EQ(relu6.form.kink(0), point(0));
  EXPECT_EQ(relu6.form.kink(1), point(6));
  EXPECT_EQ(relu6.form.piece(2).offset, point(6));
  EXPECT_TRUE(relu6.form.is_unstable({-1, 1}));
  EXPECT_FALSE(relu6.form.is_unstable({0, 6}));
  EXPECT_FALSE(relu6.form.is_unstable({6, 7}));
  EXPECT_TRUE(relu6.form.is_unstable({-1, 7}));
  EXPECT_EQ(relu6.form.on({-1, 7}), (PieceSpan{0, 2}));
  EXPECT_EQ(relu6.form.on({6, 6}), (PieceSpan{2, 2}));

  // -0.5 / 0.2 is no floating-point number with these attributes.
  const UnitForm sigmoid = unit_of("HardSigmoid", {}).form;
  ASSERT_EQ(sigmoid.pieces(), 3U);
  EXPECT_TRUE(contains(sigmoid.kink(0), -0.5 / static_cast<double>(0.2F)) ||
              contains(sigmoid.kink(0), -2.5));
  EXPECT_LT(sigmoid.kink(0).hi - sigmoid.kink(0).lo, 1e-14);
  EXPECT_FALSE(sigmoid.is_unstable({sigmoid.kink(0).hi, sigmoid.kink(1).lo}));

  EXPECT_FALSE(unit_of("Relu", {}).form.linear);
  EXPECT_EQ(unit_of("Relu", {}).form.pieces(), 2U);
  // Its other bound is the largest float32, as the schema says.
  EXPECT_EQ(unit_of("Clip", {{"min", 0.0}}).form.pieces(), 3U);
  EXPECT_TRUE(unit_of("Tanh", {}).form.curved());
  EXPECT_TRUE(unit_of("HardSwish", {}).form.curved());
  EXPECT_EQ(unit_of("Tanh", {}).form.pieces(), 1U);
}

// Linear below and above 0 with a jump there: the slopes do not say the values.
TEST(UnitForm, WithAJumpIsNotTwoLines) {
  const std::pair<const char*, Attributes> jumps[] = {{"Sign", {}},
                                                      {"Shrink", {{"lambd", 0.0}, {"bias", -2.0}}}};
  for (const auto& [op, attributes] : jumps) {
    GraphMaker m;
    // The step is out of reach, so that there are finite slopes.
    const ValueId x = m.add("Clip", {m.input({1, 1})}, {{"min", 0.125}, {"max", 1.0}}, 6);
    const Graph graph = m.finish(m.add("Add", {x, m.add(op, {x}, attributes)}));
    const UnitForm form = layered(graph).layers[1].form(0);
    EXPECT_TRUE(form.curved()) << op;
    const UnitLines lines = lines_of(form, {0.125, 1});
    EXPECT_LE(lines.down.slope * 0.5 + lines.down.offset, value_of(form, 0.5)) << op;
    EXPECT_GE(lines.up.slope * 0.5 + lines.up.offset, value_of(form, 0.5)) << op;
  }
}

// PReLU has a slope per entry.
TEST(UnitForm, OfEntriesOfOneNode) {
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  const ValueId z = m.add("MatMul", {x, m.weights({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1})});
  const ValueId y = m.add("PRelu", {z, m.weights({3}, {-0.5, 0.25, 2})});
  const Graph graph = m.finish(m.add("MatMul", {y, m.weights({3, 1}, {1, 1, 1})}));
  const LayeredNet net = layered(graph);
  const double below[] = {-0.5, 0.25, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    const UnitForm form = net.layers[0].form(i);
    EXPECT_EQ(form.piece(0).slope, below[i]);
    EXPECT_EQ(form.piece(1).slope, 1);
    EXPECT_EQ(form.slopes, hull(point(below[i]), point(1)));
  }
  EXPECT_TRUE(net.kinks_at_zero());
}

// The larger of a value and a constant is one unit: nothing passes by.
TEST(UnitForm, OfMaximaWithConstants) {
  for (const char* op : {"Max", "Min"}) {
    for (const bool first : {false, true}) {
      GraphMaker m;
      const ValueId x = m.input({1, 2});
      const ValueId z = m.add("MatMul", {x, m.weights({2, 2}, {1, 2, 3, 4})});
      const ValueId c = m.weights({1, 2}, {0.5, -0.5});
      const ValueId y = first ? m.add(op, {c, z}) : m.add(op, {z, c});
      const Graph graph = m.finish(m.add("MatMul", {y, m.weights({2, 1}, {1, 1})}));
      const LayeredNet net = layered(graph);
      EXPECT_EQ(net.layers[0].out, 2);
      EXPECT_NEAR(net.layers[0].bias[0].lo, op[1] == 'a' ? -0.5 : 0.5, 1e-15);
    }
  }
}

TEST(UnitForm, HasTheValuesOfTheFunction) {
  Rng rng(31);
  std::uniform_real_distribution<double> uniform(-9, 9);
  for (const Unit& unit : all_with_kinks_elsewhere()) {
    for (int trial = 0; trial < 500; ++trial) {
      const double z = trial % 2 == 0 ? uniform(rng) : 0.2 * uniform(rng);
      EXPECT_NEAR(plain_value(unit.form, z), value_of(unit.form, z), 1e-14);
      const Interval values = values_of(unit.form, point(z));
      EXPECT_LE(values.lo, value_of(unit.form, z) + 1e-15);
      EXPECT_GE(values.hi, value_of(unit.form, z) - 1e-15);
    }
  }
}

// Lines hold on their ranges, touch the graph, and are nearly it on single pieces.
TEST(UnitForm, LiesBetweenItsLines) {
  Rng rng(32);
  std::uniform_real_distribution<double> uniform(-3, 3), share(0, 1);
  int open = 0;
  for (const Unit& unit : all_with_kinks_elsewhere()) {
    for (int trial = 0; trial < 300; ++trial) {
      const bool wide = trial % 4 == 0;
      const double a = (wide ? 4 : 1) * uniform(rng), b = wide ? uniform(rng) : a + share(rng);
      Interval range{std::min(a, b), std::max(a, b)};
      if (trial % 5 == 0) range.lo = std::min(range.hi, unit.form.kink(0).lo);
      const UnitLines lines = lines_of(unit.form, range);
      const bool is_unstable = unit.form.is_unstable(range);
      open += is_unstable ? 1 : 0;
      double above = HUGE_VAL, below = HUGE_VAL;
      std::vector<double> tried{range.lo, range.hi};
      for (int i = 0; i < 30; ++i) tried.push_back(range.lo + share(rng) * (range.hi - range.lo));
      for (std::size_t i = 0; i + 1 < unit.form.pieces(); ++i)
        tried.push_back(std::clamp(midpoint(unit.form.kink(i)), range.lo, range.hi));
      for (const double z : tried) {
        const double value = value_of(unit.form, z);
        above = std::min(above, lines.up.slope * z + lines.up.offset - value);
        below = std::min(below, value - lines.down.slope * z - lines.down.offset);
        EXPECT_LE(std::fabs(value), lines.size * (1 + 1e-15));
        if (!is_unstable) {
          EXPECT_NEAR(lines.up.slope * z + lines.up.offset, value, 1e-14);
        }
      }
      EXPECT_GE(above, -1e-14);
      EXPECT_GE(below, -1e-14);
      EXPECT_LT(above, 1e-12);
      EXPECT_LT(below, 1e-12);
    }
  }
  EXPECT_GT(open, 300);
}

// What is left of a kink whose place is not known exactly is as small.
TEST(UnitForm, IsNearlyOnePieceNextToAKink) {
  const UnitForm form = unit_of("HardSigmoid", {}).form;
  const Interval kink = form.kink(0);
  const UnitLines lines = lines_of(form, {kink.lo, -1});
  EXPECT_NEAR(lines.up.slope, form.piece(1).slope, 1e-14);
  EXPECT_NEAR(lines.down.slope, form.piece(1).slope, 1e-14);
  EXPECT_NEAR(lines.up.offset, lines.down.offset, 1e-14);
  const UnitLines tiny = lines_of(form, kink);
  EXPECT_NEAR(tiny.up.offset + tiny.up.slope * kink.lo, 0, 1e-14);
  EXPECT_TRUE(std::isfinite(lines_of(form, {-HUGE_VAL, HUGE_VAL}).up.offset));
}

}  // namespace
}  // namespace lipscope
