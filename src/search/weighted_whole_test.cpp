// SPDX-License-Identifier: Apache-2.0
// Norms from l-infinity and to l1 by weighted l2 norms.
#include "search/weighted_whole.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "estimate/chain_for_test.h"
#include "pieces/case_bound.h"
#include "pieces/pieces_for_test.h"
#include "search/bounded_search.h"
#include "search/search.h"

namespace lipscope {
namespace {

using testing_support::layered;
using testing_support::pick_of;
using testing_support::random_pieces;

struct Pair {
  const char* name;
  double from, to;
};
constexpr Pair kPairs[] = {{"inf:2", HUGE_VAL, 2}, {"2:1", 2, 1}, {"inf:1", HUGE_VAL, 1}};

// All signs, in plain arithmetic.
double norm_by_signs(const LayeredNet& net, const Slopes& slopes, const Pair& pair) {
  const NormDecomposition parts =
      *decomposition_of(parse_norms(pair.name), net.inputs(), net.outputs());
  const ComponentNet component_net(net, parts);
  return plain_norm(component_net.get(), parts, component_net.slopes(slopes));
}

TEST(WeightedWhole, IsAboveEveryJacobianAndNotMuch) {
  Rng rng(51);
  double worst = 1;
  for (int trial = 0; trial < 150; ++trial) {
    const Pair& pair = kPairs[trial % 3];
    const LayeredNet net = layered(random_pieces(rng, 2 + pick_of(rng, 4), {5, 4},
                                                 2 + pick_of(rng, 4), testing_support::kAllKinks));
    const Slopes open = slopes_of(net, open_spans(net));
    Spans spans = open_spans(net);
    for (auto& layer : spans) {
      for (PieceSpan& span : layer) span.first = span.last = rng() % (span.last + 1);
    }
    const Slopes single = slopes_of(net, spans);
    const double norm = norm_by_signs(net, single, pair);
    const std::vector<double> rows = plain_jacobian(net, single);
    EXPECT_LE(ascended_norm(rows, net.outputs(), pair.from, pair.to), norm * (1 + 1e-9));
    std::vector<float> state;
    WeightedWhole whole(net, pair.from != 2, pair.to == 1);
    const double above = whole.upper_bound(open, 0, 0, state);
    EXPECT_GE(above * (1 + 1e-12), norm);
    std::vector<float> other;
    const auto again = make_case_bound(net, {.weighted = true, .from = pair.from, .to = pair.to});
    EXPECT_EQ(again->upper_bound(open, 0, whole.multipliers(), other), HUGE_VAL);
    EXPECT_TRUE(again->use_input_weights(0, whole.input_weights(0)));
    EXPECT_EQ(again->upper_bound(open, 0, whole.multipliers(), other), above);
    // For one Jacobian weights are best for it: no more than Grothendieck's constant, up to floors.
    WeightedWhole fresh(net, pair.from != 2, pair.to == 1);
    std::vector<float> none;
    const double one = fresh.upper_bound(single, 0, 0, none);
    EXPECT_GE(one * (1 + 1e-12), norm);
    if (norm > 1e-3) worst = std::max(worst, one / norm);
  }
  EXPECT_LT(worst, 1.8);
}

TEST(WeightedWhole, RefusesWeightsThatProveNothing) {
  Rng rng(52);
  const LayeredNet net = layered(random_pieces(rng, 3, {4}, 2));
  WeightedWhole whole(net, true, true);
  EXPECT_TRUE(whole.use_input_weights(0, {1, 2, 3, 1, 1}));
  for (const double bad : {0.0, -1.0, double(NAN), HUGE_VAL, 1e-300})
    EXPECT_FALSE(whole.use_input_weights(0, {1, 2, 3, 1, bad}));
  EXPECT_FALSE(whole.use_input_weights(0, {1, 2, 3}));
  EXPECT_FALSE(whole.use_input_weights(0, {}));
}

// With more inputs and outputs than signs are tried for: a bracket, and the tree proves it.
TEST(WeightedWhole, GivesBracketsOfLargeNorms) {
  Rng rng(53);
  for (int trial = 0; trial < 6; ++trial) {
    const Pair& pair = kPairs[trial % 3];
    const Graph graph = random_pieces(rng, 12, {6, 5}, 11);
    const Domain domain{.box = Box{Tensor::vector(std::vector<double>(12, -0.2)),
                                   Tensor::vector(std::vector<double>(12, 0.1))}};
    const Query query{&graph, parse_norms(pair.name), domain};
    EXPECT_FALSE(decomposition_of(query.norms, 12, 11));
    const Answer answer = find_bracket(
        query,
        {.time = std::chrono::duration<double>(1), .methods = {"exact-local", "jacobian-ascent"}},
        {});
    const double upper = answer.bracket.upper(Guarantee::kProved)->value;
    EXPECT_LE(testing_support::largest_quotient(query, rng), upper);
    EXPECT_LT(*answer.bracket.ratio(), 3);
    const LayeredNet net = layered(graph);
    const NormDecomposition parts = *search_decomposition_of(query.norms, 12, 11);
    BoundedSearch region(net, domain);
    PieceSearch search(
        net, parts, region, [](const auto&) { return 0.0; }, 0);
    search.run(1, [&] { return search.splits() > 50; });
    EXPECT_EQ(confirmed_bound(net, parts, region, search.tree()), search.upper());
    CaseTree other = search.tree();
    other.input_weights[0].pop_back();
    EXPECT_EQ(confirmed_bound(net, parts, region, other), HUGE_VAL);
    other.input_weights.clear();
    EXPECT_EQ(confirmed_bound(net, parts, region, other), HUGE_VAL);
  }
}

}  // namespace
}  // namespace lipscope
