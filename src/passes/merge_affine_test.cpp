// SPDX-License-Identifier: Apache-2.0
#include "passes/merge_affine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "estimate/composition.h"
#include "lipscope/evaluate.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using Ints = std::vector<Index>;

class MergeAffine : public testing::Test {
 protected:
  ValueId random(Shape shape, double low = -1, double high = 1) {
    return m.weights(random_tensor(rng, std::move(shape), low, high));
  }

  // Merges, compares the two functions at random points and gives back what is left.
  Graph merge(ValueId end) {
    const Graph graph = m.finish(end);
    Graph merged = merge_affine(graph);
    for (int trial = 0; trial < 3; ++trial) {
      std::vector<Tensor> inputs;
      for (const ValueId id : graph.inputs())
        inputs.push_back(random_tensor(rng, graph.value(id).type.shape));
      const Tensor before = evaluate(graph, inputs)[0], after = evaluate(merged, inputs)[0];
      EXPECT_EQ(before.shape(), after.shape());
      for (Index i = 0; i < before.size(); ++i)
        EXPECT_NEAR(before.at(i), after.at(i), 1e-12 * (1 + std::abs(before.at(i))));
    }
    const NormPair norms = parse_norms("2");
    const double apart = compose(graph, norms, operator_gains(graph, {})).upper;
    const double together = compose(merged, norms, operator_gains(merged, {})).upper;
    EXPECT_LE(together, apart * (1 + 1e-9));
    return merged;
  }
  static std::string ops(const Graph& graph) {
    std::string text;
    for (const Node& node : graph.nodes()) text += std::string(node.op->name()) + " ";
    return text;
  }

  GraphMaker m;
  Rng rng{5};
};

TEST_F(MergeAffine, DenseChainsBecomeOneLayer) {
  ValueId x = m.input({1, 6});
  x = m.add("Div", {x, m.weights({6}, {1, 2, 3, 4, 5, 6})});
  x = m.add("MatMul", {x, random({6, 5})});
  x = m.add("Add", {random({5}), x});
  x = m.add("Gemm", {x, random({7, 5}), random({7})}, {{"transB", Index{1}}, {"alpha", 0.5}});
  x = m.add("BatchNormalization", {x, random({7}), random({7}), random({7}), random({7}, 0.1, 2)},
            {{"epsilon", 0.01}});
  x = m.add("Mul", {x, m.weights({}, {-3})});
  x = m.add("Sub", {m.weights({1, 7}, {1, 2, 3, 4, 5, 6, 7}), x});
  const Graph merged = merge(x);
  EXPECT_EQ(ops(merged), "Gemm ");
  // The weights were computed: they stand for every matrix within their rounding errors.
  EXPECT_EQ(merged.value(merged.nodes()[0].inputs[1]).constant->exact(), nullptr);
}

TEST_F(MergeAffine, NonlinearNodesStayBetween) {
  ValueId x = m.add("Gemm", {m.input({1, 3}), random({3, 4})});
  x = m.add("Relu", {m.add("Add", {x, random({4})})});
  x = m.add("Sub", {m.add("Gemm", {x, random({4, 2})}), random({2})});
  EXPECT_EQ(ops(merge(x)), "Gemm Relu Gemm ");
}

TEST_F(MergeAffine, NormalisationGoesIntoTheConvolution) {
  ValueId x = m.input({1, 2, 6, 5});
  x = m.add("Mul", {x, m.weights({1, 2, 1, 1}, {0.5, 4})});
  x = m.add("Conv", {x, random({4, 2, 3, 3}), random({4})},
            {{"pads", Ints{1, 0, 1, 2}}, {"strides", Ints{2, 1}}});
  x = m.add("BatchNormalization", {x, random({4}), random({4}), random({4}), random({4}, 0.1, 2)});
  x = m.add("Conv", {x, random({3, 4, 1, 1}), random({3})});
  x = m.add("Add", {x, m.weights({3, 1, 1}, {1, 2, 3})});
  EXPECT_EQ(ops(merge(x)), "Conv ");
}

TEST_F(MergeAffine, GroupsAndDilationsSurvive) {
  ValueId x = m.input({1, 4, 9});
  x = m.add("Conv", {x, random({6, 2, 3})}, {{"group", Index{2}}, {"dilations", Ints{2}}});
  x = m.add("BatchNormalization", {x, random({6}), random({6}), random({6}), random({6}, 0.1, 2)});
  EXPECT_EQ(ops(merge(x)), "Conv ");
}

TEST_F(MergeAffine, PaddingGoesIntoTheConvolution) {
  for (const std::string mode : {"constant", "reflect", "edge", "wrap"}) {
    m = {};
    ValueId x = m.input({1, 2, 6, 5});
    x = m.add("Pad", {x, m.integers({0, 0, 1, 2, 0, 0, 1, 0})}, {{"mode", mode}}, 19);
    x = m.add("Conv", {x, random({3, 2, 3, 3}), random({3})}, {{"strides", Ints{1, 2}}});
    x = m.add("BatchNormalization",
              {x, random({3}), random({3}), random({3}), random({3}, 0.1, 2)});
    EXPECT_EQ(ops(merge(x)), mode == "constant" ? "Conv " : "PaddedConv ") << mode;
  }
}

// The average of each cell and its neighbours on a ring moves the output by as much as the input;
// on its own the padding has the gain sqrt(2).
TEST_F(MergeAffine, CircularConvolutionsAreExact) {
  ValueId x = m.input({1, 1, 6});
  x = m.add("Pad", {x, m.integers({0, 0, 1, 0, 0, 1})}, {{"mode", std::string("wrap")}}, 19);
  x = m.add("Conv", {x, m.weights({1, 1, 3}, {0.25, 0.5, 0.25})});
  const Graph merged = merge(x);
  const double upper = compose(merged, parse_norms("2"), operator_gains(merged, {})).upper;
  EXPECT_GE(upper, 1);
  EXPECT_LE(upper, 1 + 1e-10);  // with the room that a claim needs
}

TEST_F(MergeAffine, LinearResidualsCancel) {
  // x - x: the product of gains would be 2.
  const ValueId x = m.input({1, 2});
  const ValueId minus = m.weights({2, 2}, {-1, 0, 0, -1});
  const Graph merged = merge(m.add("Add", {x, m.add("MatMul", {x, minus})}));
  EXPECT_EQ(ops(merged), "Gemm ");
  const double upper = compose(merged, parse_norms("2"), operator_gains(merged, {})).upper;
  EXPECT_EQ(upper, 0);
}

// Further than the history of a constant may go.
TEST_F(MergeAffine, LongChainsBecomeAFewLayers) {
  ValueId x = m.input({1, 2});
  const ValueId swap = m.weights({2, 2}, {0, 1, 1, 0});
  for (int i = 0; i < 2000; ++i) x = m.add("MatMul", {x, swap});
  const Graph merged = merge(x);
  EXPECT_LE(merged.nodes().size(), 8U);
  const double upper = compose(merged, parse_norms("2"), operator_gains(merged, {})).upper;
  EXPECT_GE(upper, 1);
  EXPECT_LE(upper, 1 + 1e-8);
}

TEST_F(MergeAffine, ValuesWithOtherUsersStay) {
  const ValueId x = m.add("Gemm", {m.input({1, 3}), random({3, 3})});
  const ValueId y = m.add("Relu", {x});
  EXPECT_EQ(ops(merge(m.add("Add", {m.add("MatMul", {x, random({3, 3})}), y}))),
            "Gemm Relu MatMul Add ");
}

TEST_F(MergeAffine, ConstantsThatDoNotFollowTheChannelsStay) {
  ValueId x = m.input({4, 3});
  x = m.add("Gemm", {x, random({3, 5})});
  EXPECT_EQ(ops(merge(m.add("Mul", {x, random({4, 1})}))), "Gemm Mul ");
}

TEST_F(MergeAffine, SequencesKeepTheirShape) {
  ValueId x = m.input({1, 4, 3});
  x = m.add("Add", {m.add("MatMul", {x, random({3, 5})}), random({5})});
  x = m.add("MatMul", {x, random({5, 2})});
  EXPECT_EQ(ops(merge(x)), "MatMul Add ");
}

double product_bound(const Graph& graph) {
  return compose(graph, parse_norms("2"), operator_gains(graph, {})).upper;
}

TEST_F(MergeAffine, ConvolutionsWithoutPaddingCompose) {
  ValueId x = m.input({1, 2, 13, 11});
  x = m.add("Conv", {x, random({3, 2, 3, 2}), random({3})},
            {{"pads", Ints{2, 1, 0, 1}}, {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}});
  x = m.add("BatchNormalization", {x, random({3}), random({3}), random({3}), random({3}, 0.1, 2)});
  x = m.add("Conv", {x, random({4, 3, 2, 3}), random({4})},
            {{"strides", Ints{1, 2}}, {"dilations", Ints{2, 1}}});
  const Graph merged = merge(x);
  EXPECT_EQ(ops(merged), "Conv ");
}

TEST_F(MergeAffine, ConvolutionsBehindAnyPaddingCompose) {
  for (const std::string mode : {"constant", "reflect", "edge", "wrap"}) {
    m = {};
    ValueId x = m.input({1, 2, 7, 6});
    x = m.add("Pad", {x, m.integers({0, 0, 1, 2, 0, 0, 1, 0})}, {{"mode", mode}}, 19);
    x = m.add("Conv", {x, random({3, 2, 3, 3}), random({3})}, {{"strides", Ints{1, 2}}});
    x = m.add("Conv", {x, random({2, 3, 2, 2}), random({2})});
    EXPECT_EQ(ops(merge(x)), mode == "constant" ? "Conv " : "PaddedConv ") << mode;
  }
}

// At the edges the second convolution reads zeros where the first one would have gone on.
TEST_F(MergeAffine, PaddedConvolutionsComposeAsMatrices) {
  ValueId x = m.input({1, 2, 5, 4});
  x = m.add("Conv", {x, random({3, 2, 3, 3}), random({3})}, {{"pads", Ints{1, 1, 1, 1}}});
  x = m.add("BatchNormalization", {x, random({3}), random({3}), random({3}), random({3}, 0.1, 2)});
  x = m.add("Conv", {x, random({2, 3, 3, 3}), random({2})}, {{"pads", Ints{1, 1, 1, 1}}});
  x = m.add("BatchNormalization", {x, random({2}), random({2}), random({2}), random({2}, 0.1, 2)});
  x = m.add("Mul", {x, random({2, 1, 4})});
  const ValueId y = m.add("Relu", {x});
  EXPECT_EQ(ops(merge(y)), "Reshape Gemm Reshape Relu ");
}

TEST_F(MergeAffine, ConvolutionsMergeWithTheDenseLayerBehindThem) {
  ValueId x = m.input({1, 1, 6, 6});
  x = m.add("Conv", {x, random({3, 1, 3, 3}), random({3})});
  x = m.add("Flatten", {x});
  x = m.add("Gemm", {x, random({48, 5}), random({5})});
  EXPECT_EQ(ops(merge(x)), "Reshape Gemm ");
}

TEST_F(MergeAffine, ConvolutionalResidualsCancel) {
  // x - x again, and a shift by one pixel less the image: 2 sin of half the largest angle.
  for (const int groups : {1, 2}) {
    m = {};
    const ValueId x = m.input({1, 2, 4, 4});
    Tensor minus = Tensor::zeros(ElementType::kFloat32, {2, 2 / groups, 3, 3});
    for (int c = 0; c < 2; ++c)
      minus
          .doubles()[static_cast<std::size_t>((c * (2 / groups) + (groups == 1 ? c : 0)) * 9 + 4)] =
          -1;
    const ValueId y = m.add("Conv", {x, m.weights(minus)},
                            {{"pads", Ints{1, 1, 1, 1}}, {"group", Index{groups}}});
    const Graph merged = merge(m.add("Add", {x, y}));
    EXPECT_EQ(ops(merged), "Conv ");
    EXPECT_EQ(product_bound(merged), 0);
  }
}

TEST_F(MergeAffine, ProjectionsJoinTheBlockBesideThem) {
  const ValueId x = m.input({1, 2, 8, 8});
  const ValueId deep = m.add("Conv", {x, random({4, 2, 3, 3}), random({4})},
                             {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  const ValueId projected = m.add("Conv", {x, random({4, 2, 1, 1})}, {{"strides", Ints{2, 2}}});
  EXPECT_EQ(ops(merge(m.add("Add", {projected, deep}))), "Conv ");

  m = {};
  const ValueId z = m.input({1, 5});
  const ValueId sum = m.add("Add", {m.add("Gemm", {z, random({5, 3}), random({3})}),
                                    m.add("Gemm", {z, random({5, 3}), random({3})})});
  EXPECT_EQ(ops(merge(sum)), "Gemm ");
}

TEST_F(MergeAffine, ResidualOfTwoPaddedConvolutionsIsOneMatrix) {
  const ValueId x = m.input({1, 2, 4, 4});
  const Attributes same = {{"pads", Ints{1, 1, 1, 1}}};
  ValueId y = m.add("Conv", {x, random({3, 2, 3, 3}), random({3})}, same);
  y = m.add("Conv", {y, random({2, 3, 3, 3}), random({2})}, same);
  EXPECT_EQ(ops(merge(m.add("Add", {y, x}))), "Reshape Gemm Reshape ");
}

}  // namespace
}  // namespace lipscope
