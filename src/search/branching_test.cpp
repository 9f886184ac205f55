// SPDX-License-Identifier: Apache-2.0
// Which units a search splits.
#include "search/branching.h"

#include <gtest/gtest.h>

#include "pieces/case_bound.h"
#include "pieces/pieces_for_test.h"
#include "search/bounded_search.h"
#include "search/search.h"

namespace lipscope {
namespace {

using Places = std::vector<std::size_t>;

LayeredNet some_net() {
  Rng rng(41);
  return testing_support::layered(testing_support::random_pieces(rng, 3, {9, 9}, 1, {"Relu"}));
}

TEST(Branching, KeepsTheHeaviestSplits) {
  std::vector<Split> splits;
  for (std::size_t i = 0; i < 9; ++i) splits.push_back({{0, i}, 0, 1.0 + static_cast<double>(i)});
  splits.push_back({{1, 0}, 0, 100});
  Branching::keep_best(splits);
  ASSERT_EQ(splits.size(), 1U);  // all others are much lighter
  EXPECT_EQ(splits[0].unit, (UnitId{1, 0}));
  splits.clear();
  for (std::size_t i = 0; i < 9; ++i) splits.push_back({{0, i}, 0, 1.0 + static_cast<double>(i)});
  Branching::keep_best(splits);
  ASSERT_EQ(splits.size(), 6U);
  EXPECT_EQ(splits.front().weight, 9);
  EXPECT_EQ(splits.back().weight, 4);
  splits.assign(20, {{0, 0}, 0, 0});
  Branching::keep_best(splits);
  EXPECT_EQ(splits.size(), 8U);
  splits.clear();
  Branching::keep_best(splits);
  EXPECT_TRUE(splits.empty());
}

TEST(Branching, LearnsWhatSplitsGive) {
  const LayeredNet net = some_net();
  Branching branching(net);
  const std::vector<Split> splits{{{0, 0}, 0, 3}, {{0, 1}, 0, 2.5}, {{1, 2}, 0, 2}};
  EXPECT_EQ(branching.advise(splits), Places{0});       // nothing is known
  branching.learn({0, 0}, 0.5, 0);                      // one side only
  EXPECT_EQ(branching.advise(splits), (Places{1, 0}));  // a try of what is not known
  branching.learn({0, 1}, 0.1, 0.1);
  EXPECT_EQ(branching.advise(splits), Places{1});  // tries are rare
  branching.learn({1, 2}, 0.2, 0.2);
  EXPECT_EQ(branching.advise(splits), Places{2});
  for (int i = 0; i < 9; ++i) branching.learn({1, 2}, 0, 0);
  EXPECT_EQ(branching.advise(splits), Places{1});  // means count
}

// Tries do not take more than about a tenth.
TEST(Branching, TriesRarely) {
  const LayeredNet net = some_net();
  Branching branching(net);
  branching.learn({0, 0}, 0.1, 0.1);
  std::size_t tried = 0;
  for (int i = 0; i < 1000; ++i)
    tried += branching.advise({{{0, 0}, 0, 3}, {{0, 1}, 0, 2.5}}).size() - 1;
  EXPECT_GT(tried, 90U);
  EXPECT_LT(tried, 110U);
}

// Whatever is split, the constant is the same and the tree proves it.
TEST(Branching, LeavesTheConstantAsItIs) {
  Rng rng(42);
  for (int trial = 0; trial < 20; ++trial) {
    const Graph graph =
        testing_support::random_pieces(rng, 2, {6, 5}, 1, testing_support::kAllKinks);
    const LayeredNet net = testing_support::layered(graph);
    const std::vector<double> low{-1, -1}, high{1, 0.5};
    const Domain domain{.box = Box{Tensor::vector(low), Tensor::vector(high)}};
    BoundedSearch region(net, domain);
    const NormDecomposition parts = *decomposition_of(parse_norms("inf"), 2, 1);
    PieceSearch search(
        net, parts, region, [](const auto&) { return 0.0; }, 0);
    EXPECT_FALSE(search.run(1, [] { return false; }));
    testing_support::Enumeration all(net, parse_norms("inf"), low, high);
    const double exact = all.largest();
    EXPECT_GE(search.upper(), exact * (1 - 1e-12));
    if (all.thinnest > 1e-6) {
      EXPECT_LE(search.upper(), exact * (1 + 1e-6) + 3e-6);
    }
    EXPECT_EQ(confirmed_bound(net, parts, region, search.tree()), search.upper());
  }
}

}  // namespace
}  // namespace lipscope
