// SPDX-License-Identifier: Apache-2.0
#include "lipscope/graph.h"

#include <gtest/gtest.h>

#include "graph/copier.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

std::shared_ptr<const Op> make(const std::string& op, std::vector<ValueType> inputs) {
  std::vector<std::optional<NodeInput>> infos;
  for (const ValueType& type : inputs) infos.push_back(NodeInput{type});
  return find_op_kind(op)->import(OnnxNode(op, 13, {}, infos)).op;
}

const ValueType kPair{ElementType::kFloat32, {2}};

TEST(GraphBuilder, FoldsConstantsAndDropsDeadNodes) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", kPair);
  const ValueId c =
      builder.constant("c", Tensor(ElementType::kFloat32, {2}, std::vector<double>{-1, 2}));
  const ValueId folded = builder.add(make("Relu", {kPair}), {c}, "fold")[0];
  ASSERT_TRUE(builder.value(folded).constant);
  ASSERT_TRUE(builder.value(folded).constant->exact());
  EXPECT_EQ(builder.value(folded).constant->exact()->at(0), 0);
  const ValueId y = builder.add(make("Add", {kPair, kPair}), {x, folded}, "add")[0];
  (void)builder.add(make("Relu", {kPair}), {y}, "dead");
  const Graph graph = builder.finish({y});
  ASSERT_EQ(graph.nodes().size(), 1U);
  EXPECT_EQ(graph.nodes()[0].name, "add");
  EXPECT_EQ(graph.values().size(), 3U);
}

// y = relu(x) + relu(x), so that gradients meet.
Graph doubled() {
  GraphBuilder builder;
  const ValueId x = builder.input("x", kPair);
  const ValueId r = builder.add(make("Relu", {kPair}), {x}, "r")[0];
  const ValueId y = builder.add(make("Add", {kPair, kPair}), {r, r}, "y")[0];
  return builder.finish({y, x});
}

TEST(Evaluate, GivesOutputsThatAreInputsToo) {
  const Graph graph = doubled();
  const std::vector<Tensor> x{Tensor::vector({3, -1})};
  const auto out = evaluate(graph, x);
  EXPECT_EQ(out[0].at(0), 6);
  EXPECT_EQ(out[1].at(1), -1);
}

// Long batches run in pieces; here of six samples, the last one shorter.
TEST(Evaluate, ALongBatchGivesWhatItsSamplesGive) {
  const ValueType wide{ElementType::kFloat32, {1, 40000}};
  GraphBuilder builder;
  const ValueId x = builder.input("x", wide);
  const Graph graph = builder.finish({builder.add(make("Relu", {wide}), {x}, "relu")[0]});
  constexpr Index kCount = 20;
  Rng rng(5);
  const std::vector<Tensor> batch{random_tensor(rng, {kCount, 40000})};
  for (const Precision precision : {Precision::kFloat64, Precision::kFloat32}) {
    const Tensor y = evaluate(graph, batch, kCount, precision)[0];
    ASSERT_EQ(y.shape(), (Shape{kCount, 40000}));
    for (Index i = 0; i < y.size(); ++i) {
      const double expected = std::max(0.0, batch[0].at(i));
      ASSERT_EQ(y.at(i),
                precision == Precision::kFloat64 ? expected : double{static_cast<float>(expected)});
    }
  }
}

TEST(Evaluate, RefusesTheWrongNumberOfEntriesOrInputs) {
  const Graph graph = doubled();
  EXPECT_THROW((void)evaluate(graph, std::vector<Tensor>{Tensor::vector({1})}), Error);
  EXPECT_THROW((void)evaluate(graph, std::vector<Tensor>{}), Error);
  EXPECT_THROW((void)evaluate(graph, std::vector<Tensor>{Tensor::integers({2}, {1, 2})}), Error);
}

TEST(Trace, GradientsAddUpWherePathsMeet) {
  const Graph graph = doubled();
  const Trace trace(graph, std::vector<Tensor>{Tensor::vector({3, -1})});
  const auto gradient =
      trace.vjp(std::vector<Tensor>{Tensor::vector({1, 1}), Tensor::vector({0, 5})});
  EXPECT_EQ(gradient[0].at(0), 2);
  EXPECT_EQ(gradient[0].at(1), 5);
  const auto tangent = trace.jvp(std::vector<Tensor>{Tensor::vector({1, 1})});
  EXPECT_EQ(tangent[0].at(0), 2);
  EXPECT_EQ(tangent[0].at(1), 0);
}

TEST(GraphPart, IsTheFunctionBetweenValues) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", kPair);
  const ValueId c =
      builder.constant("c", Tensor(ElementType::kFloat32, {2}, std::vector<double>{-1, 2}));
  const ValueId moved = builder.add(make("Add", {kPair, kPair}), {x, c}, "add", {"moved"})[0];
  const ValueId kept = builder.add(make("Relu", {kPair}), {moved}, "relu", {"kept"})[0];
  const ValueId both = builder.add(make("Mul", {kPair, kPair}), {moved, kept}, "both")[0];
  const Graph graph = builder.finish({both});
  const auto value = [&](const std::string& node) {
    for (const Node& n : graph.nodes()) {
      if (n.name == node) return n.outputs[0];
    }
    return ValueId{};
  };
  const ValueId from[] = {value("add")}, to[] = {value("both")};
  const Graph part = graph_part(graph, from, to);
  ASSERT_EQ(part.nodes().size(), 2U);
  EXPECT_EQ(part.value(part.inputs()[0]).name, "moved");
  const Tensor at(ElementType::kFloat32, {2}, std::vector<double>{3, -2});
  const Tensor y = evaluate(part, std::vector<Tensor>{at})[0];
  EXPECT_EQ(y.at(0), 9);
  EXPECT_EQ(y.at(1), 0);
  // The other operand of the product comes from the input, around the value.
  const ValueId half[] = {value("relu")};
  EXPECT_THROW((void)graph_part(graph, half, to), Error);
}

}  // namespace
}  // namespace lipscope
