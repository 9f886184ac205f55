// SPDX-License-Identifier: Apache-2.0
#include "passes/integers_as_reals.h"

#include <gtest/gtest.h>

#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/select.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using Names = std::vector<std::string>;

const Attributes kToFloat{{"to", Index{1}}};

Tensor bytes(Shape shape, std::vector<Index> entries) {
  return {ElementType::kUInt8, std::move(shape), std::move(entries)};
}

// The function of reals agrees with the file's on whole numbers, and has a value between them.
void expect_extends(const Graph& graph, const Tensor& at, const Names& names) {
  const Selected selected = select(graph, {});
  EXPECT_EQ(selected.conventions.integers_as_reals, names);
  const Tensor file = evaluate(graph, std::vector{at})[0];
  const Tensor real = evaluate(selected.graph, std::vector{at.cast(ElementType::kFloat64)})[0];
  ASSERT_EQ(file.size(), real.size());
  for (Index i = 0; i < file.size(); ++i) EXPECT_NEAR(file.at(i), real.at(i), 1e-12);
  EXPECT_TRUE(is_floating(selected.graph.value(selected.graph.inputs()[0]).type.type));
}

TEST(IntegersAsReals, AnImageOfBytes) {
  GraphMaker m;
  const ValueId x = m.input({1, 2}, ElementType::kUInt8);
  const ValueId real = m.add("Cast", {x}, kToFloat);
  expect_extends(m.finish(m.add("MatMul", {real, m.weights({2, 2}, {1, 2, 3, 4})})),
                 bytes({1, 2}, {3, 200}), {"x1"});
}

TEST(IntegersAsReals, PlacesMayChangeBefore) {
  GraphMaker m;
  const ValueId x = m.input({1, 2, 3}, ElementType::kUInt8);
  const ValueId turned = m.add("Transpose", {x}, {{"perm", std::vector<Index>{0, 2, 1}}});
  const ValueId wide = m.add("Cast", {turned}, {{"to", Index{6}}});
  const ValueId flat = m.add("Reshape", {wide, m.integers({1, 6})});
  const ValueId cut = m.add("Slice", {flat, m.integers({1}), m.integers({5}), m.integers({1})});
  expect_extends(m.finish(m.add("Relu", {m.add("Cast", {cut}, kToFloat)})),
                 bytes({1, 2, 3}, {1, 2, 3, 4, 5, 6}), {"x1"});
}

TEST(IntegersAsReals, QuantisedInputs) {
  for (const bool each : {false, true}) {
    GraphMaker m;
    const ValueId x = m.input({1, 2, 3}, ElementType::kUInt8);
    const ValueId scale = each ? m.weights({2}, {0.5, 0.25}) : m.weights({}, {0.5});
    const ValueId zero = m.weights(each ? bytes({2}, {7, 9}) : bytes({}, {7}));
    expect_extends(m.finish(m.add("Relu", {m.add("DequantizeLinear", {x, scale, zero})})),
                   bytes({1, 2, 3}, {1, 20, 3, 4, 50, 6}), {"x1"});
  }
}

TEST(IntegersAsReals, ArithmeticOnIntegersIsRefused) {
  const auto refused = [](const Graph& graph) {
    try {
      (void)select(graph, {});
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      EXPECT_NE(std::string(error.what()).find("not cast"), std::string::npos);
      return true;
    }
  };
  {
    GraphMaker m;
    const ValueId x = m.input({2}, ElementType::kInt32);
    EXPECT_TRUE(refused(m.finish(m.add("Cast", {m.add("Mul", {x, x})}, kToFloat))));
  }
  {  // 300 becomes 44
    GraphMaker m;
    const ValueId x = m.input({2}, ElementType::kInt32);
    const ValueId cut = m.add("Cast", {x}, {{"to", Index{2}}});
    EXPECT_TRUE(refused(m.finish(m.add("Cast", {cut}, kToFloat))));
  }
  {  // one of two uses
    GraphMaker m;
    const ValueId x = m.input({2}, ElementType::kInt32);
    const ValueId one = m.add("Cast", {x}, kToFloat);
    const ValueId two = m.add("Cast", {m.add("Add", {x, x})}, kToFloat);
    EXPECT_TRUE(refused(m.finish(m.add("Add", {one, two}))));
  }
  {  // beside a floating input
    GraphMaker m;
    const ValueId x = m.input({2}), k = m.input({2}, ElementType::kInt32);
    const ValueId sum = m.add("Cast", {m.add("Add", {k, k})}, kToFloat);
    EXPECT_TRUE(refused(m.finish(m.add("Add", {x, sum}))));
  }
  {  // a comparison
    GraphMaker m;
    const ValueId x = m.input({2}, ElementType::kInt32);
    const ValueId large =
        m.add("Greater", {x, m.weights(Tensor(ElementType::kInt32, {}, std::vector<Index>{3}))});
    EXPECT_TRUE(refused(m.finish(m.add("Cast", {large}, kToFloat))));
  }
}

TEST(IntegersAsReals, TokenIdsStartAtTheirEmbedding) {
  GraphMaker m;
  const ValueId ids = m.input({3}, ElementType::kInt64);
  const ValueId rows = m.add("Gather", {m.weights({5, 2}, std::vector<double>(10, 1.0)), ids});
  const Graph graph = m.finish(m.add("Relu", {rows}));
  const Selected selected = select(graph, {});
  EXPECT_FALSE(selected.from.empty());
  EXPECT_TRUE(selected.conventions.integers_as_reals.empty());
}

// A Gather with constant indices further on is no embedding.
TEST(IntegersAsReals, AGatherOfRealsIsNoEmbedding) {
  GraphMaker m;
  const ValueId x = m.input({4}, ElementType::kUInt8);
  const ValueId real = m.add("Cast", {x}, kToFloat);
  const ValueId some = m.add("Gather", {real, m.integers({0, 2})});
  const Selected selected = select(m.finish(m.add("Relu", {some})), {});
  EXPECT_EQ(selected.from, "");
  EXPECT_EQ(selected.conventions.integers_as_reals, Names{"x1"});
}

TEST(CastsAsIdentity, AreNamed) {
  GraphMaker m;
  const ValueId x = m.input({2});
  const ValueId half = m.add("Cast", {x}, {{"to", Index{10}}});
  const ValueId back = m.add("Cast", {half}, kToFloat);
  const Selected selected = select(m.finish(m.add("Relu", {back})), {});
  EXPECT_EQ(selected.conventions.casts_as_identity, Names{"Cast2"});
}

}  // namespace
}  // namespace lipscope
