// SPDX-License-Identifier: Apache-2.0
// Random graphs of every loadable operator: no proved bound contradicted by an exact quotient, no
// value outside what exact arithmetic says. LIPSCOPE_GRAPHS=n changes how many, LIPSCOPE_SEED=n
// which; with one graph LIPSCOPE_DUMP=FILE writes its model and LIPSCOPE_SHRINK=1 looks for a
// smaller one that fails alike.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "lipscope/bound.h"
#include "lipscope/select.h"
#include "ops/kind.h"
#include "tests/oracle/graph_check.h"
#include "tests/oracle/node.h"
#include "tests/oracle/shrink.h"
#include "tests/support/model_writer.h"

namespace oracle {
namespace {

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

void print(const Tally& t) {
  fmt::print(
      "{} graphs, {} refused; {} queries, {} finite; {} quotients, tightest {:.17g}; {} values, {} "
      "witnesses, {} certificates; {} undecided, {} undefined\n",
      t.graphs, t.refused, t.queries, t.finite, t.quotients, t.tightest, t.evaluations, t.witnesses,
      t.certificates, t.undecided, t.undefined);
  for (const auto& [reason, n] : t.reasons) fmt::print("  {:5} {}\n", n, reason);
}

void write(const RandomGraph& graph, const char* file) {
  std::ofstream(file, std::ios::binary) << graph.model.SerializeAsString();
}

// Prints a smaller graph with the same kind of failure, and writes that instead.
void shrink(const RandomGraph& graph, const std::string& failure) {
  std::string last;
  const RandomGraph small = shrunk(graph, [&](const RandomGraph& candidate) {
    constexpr std::uint64_t kTries = 25;
    for (std::uint64_t seed = 1; seed <= kTries; ++seed) {
      const Tally tally = check_graph(candidate, seed);
      if (tally.failures.empty() || kind_of(tally.failures[0]) != kind_of(failure)) continue;
      last = tally.failures[0];
      return true;
    }
    return false;
  });
  fmt::print("shrunk: {}\n", last);
  if (const char* file = std::getenv("LIPSCOPE_DUMP")) write(small, file);
}

TEST(Oracle, KnowsEveryLoadableOperator) {
  for (const lipscope::OpKind& kind : lipscope::op_kinds()) {
    EXPECT_TRUE(operators().contains(std::string(kind.name))) << kind.name;
  }
}

// The place of a maximum jumps: no method may call it constant, anywhere.
void expect_no_constant(lipscope::testing_support::ModelWriter& writer) {
  lipscope::testing_support::set_attribute(writer.node("Cast", {"places"}, {"y"}), "to", Index{1});
  writer.output("y");
  const lipscope::Graph graph = lipscope::select(writer.read().graph(), {}).graph;
  const auto corner = [](double e) {
    return lipscope::Tensor(lipscope::ElementType::kFloat64, {2}, std::vector<double>{e, e});
  };
  for (const lipscope::MethodInfo& method : lipscope::method_list()) {
    for (const bool local : {false, true}) {
      lipscope::Query query{.graph = &graph};
      if (local) query.domain.box = lipscope::Box{corner(-1), corner(1)};
      lipscope::Budget budget;
      budget.methods = {std::string(method.id)};
      const auto upper =
          find_bracket(query, budget, {}).bracket.upper(lipscope::Guarantee::kProved);
      EXPECT_TRUE(!upper || std::isinf(upper->value)) << method.id << (local ? " on a box" : "");
    }
  }
}
TEST(Holes, IndicesOfMaxPoolHaveNoConstant) {
  lipscope::testing_support::ModelWriter writer(13);
  writer.input("x", {1, 1, 1, 2});
  lipscope::testing_support::set_attribute(writer.node("MaxPool", {"x"}, {"largest", "places"}),
                                           "kernel_shape", Dims{1, 2});
  expect_no_constant(writer);
}
TEST(Holes, IndicesOfTopKHaveNoConstant) {
  lipscope::testing_support::ModelWriter writer(13);
  writer.input("x", {1, 2});
  writer.integers("k", {1}, {1});
  writer.node("TopK", {"x", "k"}, {"largest", "places"});
  expect_no_constant(writer);
}

TEST(RandomGraphs, AgreeWithExactArithmetic) {
  const std::uint64_t first = setting("LIPSCOPE_SEED", 1), graphs = setting("LIPSCOPE_GRAPHS", 40);
  Tally tally;
  for (std::uint64_t seed = first; seed < first + graphs; ++seed) {
    const RandomGraph graph = random_graph(seed);
    if (const char* file = std::getenv("LIPSCOPE_DUMP")) write(graph, file);
    const Tally one = check_graph(graph, seed);
    for (const std::string& failure : one.failures) {
      if (std::getenv("LIPSCOPE_SHRINK") != nullptr) shrink(graph, failure);
      ADD_FAILURE() << failure << "repeat: LIPSCOPE_GRAPHS=1 LIPSCOPE_SEED=" << seed
                    << " LIPSCOPE_DUMP=model.onnx oracle_tests --gtest_filter=RandomGraphs.*";
    }
    tally.add(one);
  }
  print(tally);
  if (graphs < 500) return;
  // Otherwise the test shows little.
  EXPECT_GT(tally.finite, tally.queries / 4);
  EXPECT_GT(tally.quotients, tally.graphs);
  EXPECT_GT(tally.tightest, 0.999999);
}

}  // namespace
}  // namespace oracle
