// SPDX-License-Identifier: Apache-2.0
// Which part of a graph a query is about.
#include "lipscope/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "lipscope/bound.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "tests/support/graph_maker.h"
#include "tests/support/model_writer.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

Graph squashed(Rng& rng, const Shape& logits, const std::string& squash, Index axis) {
  GraphMaker m;
  const ValueId x = m.input({logits[0], 3});
  const ValueId y = m.add("Gemm", {x, m.weights(random_tensor(rng, {3, logits[1]}))});
  return m.finish(m.add(squash, {m.add("Tanh", {y})}, {{"axis", axis}}));
}

bool has_op(const Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.nodes(),
                             [&](const Node& node) { return node.op->name() == name; });
}

void expect_same_margin(const Graph& graph, const Graph& selected, Index i, Index j, Rng& rng) {
  const Tensor x = random_tensor(rng, graph.value(graph.inputs()[0]).type.shape);
  const Tensor all = evaluate(graph, std::vector{x})[0];
  const double margin = evaluate(selected, std::vector{x})[0].at(0);
  EXPECT_NEAR(margin, all.at(i) - all.at(j), 1e-6);
}

// log p_i - log p_j is the difference of the logits.
TEST(Select, AMarginDoesNotSeeALogSoftmax) {
  Rng rng(1);
  const Graph graph = squashed(rng, {1, 4}, "LogSoftmax", 1);
  const Graph margin = select(graph, {.margin = std::pair<Index, Index>{2, 0}}).graph;
  EXPECT_FALSE(has_op(margin, "LogSoftmax"));
  expect_same_margin(graph, margin, 2, 0, rng);
  EXPECT_TRUE(has_op(select(graph, {.output = 2}).graph, "LogSoftmax"));
  EXPECT_TRUE(has_op(select(graph, {}).graph, "LogSoftmax"));
}

TEST(Select, AMarginSeesOtherSquashes) {
  Rng rng(2);
  for (const char* squash : {"Softmax", "Hardmax"}) {
    const Graph graph = squashed(rng, {1, 4}, squash, 1);
    const Graph margin = select(graph, {.margin = std::pair<Index, Index>{1, 3}}).graph;
    EXPECT_TRUE(has_op(margin, squash));
    expect_same_margin(graph, margin, 1, 3, rng);
  }
}

// Entries of two rows, or rows of one entry each: the sums in the logarithms differ.
TEST(Select, AMarginSeesALogSoftmaxOfSeveralRows) {
  Rng rng(3);
  for (const Index axis : {0, 1}) {
    const Graph graph = squashed(rng, {2, 3}, "LogSoftmax", axis);
    const Graph margin = select(graph, {.margin = std::pair<Index, Index>{0, 4}}).graph;
    EXPECT_TRUE(has_op(margin, "LogSoftmax"));
    expect_same_margin(graph, margin, 0, 4, rng);
  }
  const Graph constant = squashed(rng, {1, 4}, "LogSoftmax", 0);
  const Graph margin = select(constant, {.margin = std::pair<Index, Index>{1, 3}}).graph;
  expect_same_margin(constant, margin, 1, 3, rng);
}

TEST(Select, LogitsLeaveOutTheSquash) {
  Rng rng(4);
  for (const char* squash : {"Softmax", "LogSoftmax"}) {
    const Graph graph = squashed(rng, {1, 4}, squash, 1);
    EXPECT_FALSE(has_op(select(graph, {.logits = true}).graph, squash));
  }
}

// Rows of a table by ids, which `ids` makes of an input of the given type.
Graph lookup(ElementType type, const std::function<ValueId(GraphMaker&, ValueId)>& ids) {
  GraphMaker m;
  const ValueId x = m.input({1, 3}, type);
  const ValueId table = m.weights({3, 2}, {0, 1, 5, 2, 3, 3});
  return m.finish(m.add("Gather", {table, ids(m, x)}, {{"axis", Index{0}}}));
}

TEST(Select, IdsThatAreInputsStartBehindTheirEmbedding) {
  const Attributes integers{{"to", Index{7}}};
  const Graph whole = lookup(ElementType::kInt64, [](GraphMaker&, ValueId x) { return x; });
  EXPECT_FALSE(select(whole, {}).from.empty());
  const Graph cast = lookup(ElementType::kFloat32, [&](GraphMaker& m, ValueId x) {
    return m.add("Cast", {m.add("Transpose", {x})}, integers);
  });
  EXPECT_FALSE(select(cast, {}).from.empty());
}

TEST(Select, ACodebookStartsAtTheInput) {
  const Attributes integers{{"to", Index{7}}};
  const Graph nearest = lookup(ElementType::kFloat32, [](GraphMaker& m, ValueId x) {
    return m.add("ArgMax", {x}, {{"axis", Index{1}}});
  });
  const Graph cells = lookup(ElementType::kFloat32, [&](GraphMaker& m, ValueId x) {
    return m.add("Cast", {m.add("Floor", {x})}, integers);
  });
  const Graph scaled = lookup(ElementType::kFloat32, [&](GraphMaker& m, ValueId x) {
    return m.add("Cast", {m.add("Add", {x, x})}, integers);
  });
  for (const Graph* graph : {&nearest, &cells, &scaled}) {  // indices beyond the table, too
    EXPECT_EQ(select(*graph, {}).from, "");
    const auto bracket =
        find_bracket({.graph = graph, .norms = parse_norms("2"), .domain = {}}, {}, {}).bracket;
    EXPECT_EQ(bracket.upper(Guarantee::kProved)->value, std::numeric_limits<double>::infinity());
  }
}

// An initializer of an input's name is a value that callers may replace: nothing is known of how
// far that moves the output.
TEST(Select, AModelWithoutInputsHasNoConstant) {
  testing_support::ModelWriter w;
  w.input("x", {1, 1});
  w.weight("x", {1, 1}, {2});
  w.weight("c", {1, 1}, {7});
  w.node("Mul", {"x", "c"}, {"y"});
  w.output("y");
  try {
    (void)select(w.read().graph(), {});
    ADD_FAILURE() << "selected";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("nothing moves"), std::string::npos) << error.what();
  }
}

TEST(Select, NamesWhatDoesNotExist) {
  Rng rng(5);
  const Graph graph = squashed(rng, {1, 4}, "Softmax", 1);
  EXPECT_THROW((void)select(graph, {.to = "nowhere"}), Error);
  EXPECT_THROW((void)select(graph, {.wrt = "nothing"}), Error);
  EXPECT_THROW((void)select(graph, {.output = 4}), Error);
  EXPECT_THROW((void)select(graph, {.margin = std::pair<Index, Index>{0, -1}}), Error);
}

// Three maps of gains 3, 5 and 7 in a row.
Graph three_maps(const std::array<std::string, 3>& names,
                 const std::array<std::string, 2>& between) {
  testing_support::ModelWriter w;
  w.input("x", {1, 1});
  w.weight("a", {1, 1}, {3});
  w.weight("b", {1, 1}, {5});
  w.weight("c", {1, 1}, {7});
  w.node("MatMul", {"x", "a"}, {between[0]}, names[0]);
  w.node("MatMul", {between[0], "b"}, {between[1]}, names[1]);
  w.node("MatMul", {between[1], "c"}, {"y"}, names[2]);
  w.output("y");
  return w.read().graph();
}

// What an answer says it starts from is found again as the same node.
TEST(Select, NodesAreFoundByTheNameThatIsShown) {
  const auto gain_from = [](const Graph& graph, const std::string& from) {
    const Graph part = select(graph, {.from = from}).graph;
    return evaluate(part, std::vector{Tensor(ElementType::kFloat32, {1, 1}, std::vector{1.0})})[0]
        .at(0);
  };
  const Graph alike = three_maps({"n", "n", "n"}, {"g", "h"});
  EXPECT_THROW((void)select(alike, {.from = "n"}), Error);
  // A value of the name of an earlier and of a later node.
  const Graph crossed = three_maps({"h", "second", "third"}, {"g", "h"});
  EXPECT_EQ(gain_from(crossed, "h"), 35);
  const Graph early = three_maps({"first", "g", "third"}, {"g", "h"});
  EXPECT_EQ(gain_from(early, "g"), 7);
  for (const Graph* graph : {&alike, &crossed, &early}) {
    for (const char* value : {"g", "h"}) {
      const std::string name = select(*graph, {.from = value}).from;
      EXPECT_EQ(gain_from(*graph, name), gain_from(*graph, value)) << name;
    }
  }
}

}  // namespace
}  // namespace lipscope
