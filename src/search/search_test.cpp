// SPDX-License-Identifier: Apache-2.0
// Exact constants: known ones, and those of an enumeration of all pieces.
#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "estimate/chain_for_test.h"
#include "estimate/counted_for_test.h"
#include "pieces/case_bound.h"
#include "pieces/pieces_for_test.h"
#include "search/bounded_search.h"
#include "search/cone_search.h"

namespace lipscope {
namespace {

using testing_support::Enumeration;
using testing_support::GraphMaker;
using testing_support::layered;
using testing_support::pick_of;
using testing_support::random_pieces;

Answer solve(const Graph& graph, const std::string& norm, const Domain& domain,
             double seconds = 20) {
  const Query query{&graph, parse_norms(norm), domain};
  const Budget budget{.time = std::chrono::duration<double>(seconds),
                      .target_ratio = 1 + 1e-6,
                      .methods = {"exact-global", "exact-local"}};
  return find_bracket(query, budget, counted());
}

double upper(const Answer& answer) { return answer.bracket.upper(Guarantee::kProved)->value; }
double lower(const Answer& answer) {
  const auto found = answer.bracket.lower(Guarantee::kProved);
  return found ? found->value : 0;
}

Domain box_of(const std::vector<double>& low, const std::vector<double>& high) {
  return {.box = Box{Tensor::vector(low), Tensor::vector(high)}};
}

int network_count(int usual) {
  const char* wanted = std::getenv("LIPSCOPE_NETWORKS");
  return wanted != nullptr ? std::atoi(wanted) : usual;
}

// |x| - |x - 1| has slope 2 in (0, 1) and 0 elsewhere.
TEST(ExactConstants, OfHatsAndRamps) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  const ValueId z = m.add("Gemm", {x, m.weights({1, 2}, {1, 1}), m.weights({2}, {0, -1})});
  const ValueId y = m.add("MatMul", {m.add("Abs", {z}), m.weights({2, 1}, {1, -1})});
  const Graph graph = m.finish(y);
  for (const char* norm : {"1", "2", "inf"}) {
    EXPECT_NEAR(upper(solve(graph, norm, {})), 2, 1e-6);
    EXPECT_NEAR(lower(solve(graph, norm, {})), 2, 1e-6);
    EXPECT_NEAR(upper(solve(graph, norm, box_of({-3}, {-1}))), 0, 1e-6);
    EXPECT_NEAR(upper(solve(graph, norm, box_of({-3}, {0.5}))), 2, 1e-6);
  }
}

// relu(x) + relu(-x) behind relu(x) is relu(x): patterns that no point has would give 2.
TEST(ExactConstants, LeaveOutPatternsThatDoNotOccur) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const ValueId h = m.add("Relu", {m.add("MatMul", {x, m.weights({2, 2}, {1, -1, 0, 0})})});
  const ValueId g = m.add("Relu", {m.add("MatMul", {h, m.weights({2, 2}, {1, -1, -1, 1})})});
  const Graph graph = m.finish(m.add("MatMul", {g, m.weights({2, 1}, {1, -1})}));
  for (const char* norm : {"1", "2", "inf"}) {
    const Answer answer = solve(graph, norm, {});
    EXPECT_NEAR(upper(answer), 1, 1e-6) << norm;
    EXPECT_NEAR(lower(answer), 1, 1e-6) << norm;
  }
}

// A unit whose value is zero everywhere has no sign; nothing may be concluded from it.
TEST(ExactConstants, OfNetworksWithUnitsThatAreAlwaysZero) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const ValueId z =
      m.add("Gemm", {x, m.weights({2, 3}, {1, 0, 1, 1, 0, -1}), m.weights({3}, {0, 0, 0})});
  const ValueId h = m.add("Abs", {z});
  const ValueId g = m.add("Abs", {m.add("MatMul", {h, m.weights({3, 2}, {0, 1, 5, 2, 0, 1})})});
  const Graph graph = m.finish(m.add("MatMul", {g, m.weights({2, 1}, {3, 1})}));
  const LayeredNet net = layered(graph);
  ConeSearch region(net);
  for (const UnitId dead : {UnitId{0, 1}, UnitId{1, 0}}) {
    for (const bool above : {false, true}) {
      const Path path{{{0, 0}, 0, true}, {{0, 1}, 0, true}, {{0, 2}, 0, true}, {dead, 0, above}};
      const CaseTree::InfeasibilityProof alone{{dead}, {1}, false};
      EXPECT_FALSE(region.confirm(dead.layer == 0 ? Path{{dead, 0, above}} : path, alone).empty);
    }
  }
  EXPECT_NEAR(upper(solve(graph, "inf", {})), 2, 1e-6);
  EXPECT_NEAR(lower(solve(graph, "inf", {})), 2, 1e-6);
  EXPECT_NEAR(upper(solve(graph, "2", box_of({-1, -1}, {2, 1}))), 2, 1e-6);
}

TEST(ExactConstants, OnBoxesAreThoseOfAllPieces) {
  Rng rng(21);
  const int networks = network_count(300);
  std::uniform_real_distribution<double> uniform(-1, 1);
  int pieces = 0, closed = 0;
  for (int trial = 0; trial < networks; ++trial) {
    static const char* kNorms[] = {"2",     "inf",   "1",   "2:inf", "1:2",
                                   "1:inf", "inf:1", "2:1", "inf:2"};
    const char* norm = kNorms[trial % 9];
    const Index n = 1 + pick_of(rng, 3);
    std::vector<Index> widths;
    for (Index k = 1 + pick_of(rng, 2); k > 0; --k) widths.push_back(1 + pick_of(rng, 5));
    const Graph graph =
        random_pieces(rng, n, widths, 1 + pick_of(rng, 3), testing_support::kAllKinks);
    const LayeredNet net = layered(graph);
    EXPECT_TRUE(net.piecewise_linear());
    std::vector<double> low, high;
    for (Index i = 0; i < n; ++i) {
      low.push_back(uniform(rng));
      high.push_back(low.back() + 1 + uniform(rng));
    }
    Enumeration all(net, parse_norms(norm), low, high);
    const double exact = all.largest();
    pieces += all.pieces;
    const Answer answer = solve(graph, norm, box_of(low, high));
    // Pieces thinner than the enumeration can tell may count or not.
    EXPECT_GE(upper(answer), exact * (1 - 1e-12)) << trial;
    if (all.thinnest < 1e-6) continue;
    EXPECT_LE(lower(answer), exact * (1 + 1e-9) + 1e-12) << trial;
    EXPECT_LE(upper(answer), exact * (1 + 1e-6) + 3e-6) << trial << ' ' << norm;
    ++closed;
  }
  EXPECT_GT(pieces, 2 * networks);
  EXPECT_GT(closed, networks / 2);
}

// In the whole space: between what a large box has and what no point exceeds.
TEST(ExactConstants, InTheWholeSpaceAreThoseOfAllPieces) {
  Rng rng(22);
  int equal = 0;
  const int networks = network_count(200);
  for (int trial = 0; trial < networks; ++trial) {
    static const char* kNorms[] = {"2", "inf", "1", "inf:1", "2:1", "inf:2"};
    const char* norm = kNorms[trial % 6];
    const Index n = 1 + pick_of(rng, 3);
    std::vector<Index> widths;
    for (Index k = 1 + pick_of(rng, 2); k > 0; --k) widths.push_back(1 + pick_of(rng, 5));
    const Index outputs = 1 + pick_of(rng, 2);
    const Graph graph = trial % 2 == 0
                            ? random_pieces(rng, n, widths, outputs)
                            : random_pieces(rng, n, widths, outputs, testing_support::kAllKinks);
    const LayeredNet net = layered(graph);
    const std::vector<double> low(static_cast<std::size_t>(n), -1e4),
        high(static_cast<std::size_t>(n), 1e4);
    Enumeration all(net, parse_norms(norm), low, high);
    const double exact = all.largest();
    const Answer answer = solve(graph, norm, {});
    EXPECT_GE(upper(answer), exact * (1 - 1e-12)) << trial;
    EXPECT_LE(lower(answer), upper(answer));
    if (upper(answer) > exact * (1 + 1e-6) + 3e-6) continue;
    ++equal;
    EXPECT_GE(lower(answer) * (1 + 2e-6) + 3e-6, exact) << trial << ' ' << norm;
  }
  EXPECT_GT(equal, networks * 95 / 100);
}

// Curved functions: nothing a point has is above the bound, and splits make it smaller.
TEST(ExactConstants, OfCurvedFunctionsHoldAndShrink) {
  Rng rng(23);
  double shrunk = 0;
  constexpr int kNetworks = 30;
  for (int trial = 0; trial < kNetworks; ++trial) {
    const Graph graph =
        random_pieces(rng, 2, {4, 3}, 1, {"Tanh", "Sigmoid", "Softplus", "Gelu", "Relu"});
    const Domain domain = box_of({-0.5, -0.5}, {0.5, 0.5});
    const char* norm = trial % 2 == 0 ? "2" : "inf";
    const Query query{&graph, parse_norms(norm), domain};
    const LayeredNet net = layered(graph);
    BoundedSearch region(net, domain);
    const NormDecomposition parts = *decomposition_of(query.norms, net.inputs(), net.outputs());
    PieceSearch search(
        net, parts, region, [](const std::vector<double>&) { return 0.0; }, 0);
    search.run(1, [] { return true; });
    const double root = search.upper();
    search.run(1, [&] { return search.splits() >= 200; });
    EXPECT_LE(testing_support::largest_quotient(query, rng), search.upper());
    EXPECT_LE(search.upper(), root * (1 + 1e-9));
    EXPECT_EQ(confirmed_bound(net, parts, region, search.tree()), search.upper());
    shrunk += root > 0 ? search.upper() / root / kNetworks : 1.0 / kNetworks;
  }
  EXPECT_LT(shrunk, 0.9);
}

TEST(CaseTrees, AreConfirmedAndOthersAreNot) {
  Rng rng(24);
  const LayeredNet net = layered(random_pieces(rng, 3, {6, 5}, 1, {"Relu"}));
  const NormDecomposition parts{.norm = 2, .count = 1};
  ConeSearch region(net);
  PieceSearch search(
      net, parts, region, [](const std::vector<double>&) { return 0.0; }, 0);
  EXPECT_FALSE(search.run(1 + 1e-7, [] { return false; }));
  CaseTree tree = search.tree();
  ASSERT_GT(tree.nodes.size(), 5U);
  EXPECT_EQ(confirmed_bound(net, parts, region, tree), search.upper());
  CaseTree other = tree;
  other.nodes[0].children[1] = other.nodes[0].children[0];  // a side is left out
  EXPECT_EQ(confirmed_bound(net, parts, region, other), HUGE_VAL);
  other = tree;
  other.nodes[0].split = UnitId{7, 0};
  EXPECT_EQ(confirmed_bound(net, parts, region, other), HUGE_VAL);
  other = tree;
  other.nodes[0].children[0] = 1'000'000;
  EXPECT_EQ(confirmed_bound(net, parts, region, other), HUGE_VAL);
  EXPECT_EQ(confirmed_bound(net, parts, region, {}), HUGE_VAL);
  // Pretending that a part is empty does not make it so.
  other = tree;
  for (auto& node : other.nodes) {
    if (!node.split && node.empty.units.empty()) node.empty = {{{0, 0}, {0, 1}}, {1, 1}, false};
  }
  EXPECT_EQ(confirmed_bound(net, parts, region, other), search.upper());
}

}  // namespace
}  // namespace lipscope
