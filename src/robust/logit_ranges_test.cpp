// SPDX-License-Identifier: Apache-2.0
#include "robust/logit_ranges.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/interval.h"
#include "net/nets_for_test.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

// A run whose time is up does not wait for a thousand samples.
TEST(LogitRanges, EndSoonAndSayHowManyAreKnown) {
  constexpr std::size_t kSamples = 1000, kAsked = 3;
  Rng rng(8);
  testing_support::GraphMaker m;
  const ValueId hidden = m.add(
      "Relu", {m.add("MatMul", {m.input({1, 6}), m.weights(random_tensor(rng, {6, 5}, -1, 1))})});
  const Graph graph =
      m.finish(m.add("MatMul", {hidden, m.weights(random_tensor(rng, {5, 3}, -1, 1))}));
  const auto net = testing_support::layered_net_of(graph);
  ASSERT_TRUE(net) << net.reason();
  const Tensor points = random_tensor(rng, {kSamples, 6}, -1, 1);
  const LogitRanges chain(graph, &*net), any(graph, nullptr);
  for (const LogitRanges* ranges : {&chain, &any}) {
    const auto all = ranges->of_each(points.doubles());
    EXPECT_EQ(all.samples, kSamples);
    std::atomic<std::size_t> asked = 0;
    const auto some = ranges->of_each(points.doubles(), [&] { return ++asked > kAsked; });
    EXPECT_EQ(some.samples, kAsked * (ranges == &chain ? 64 : 1));
    for (std::size_t e = 0; e < all.logits.size(); ++e) {
      const Interval expected = e < 3 * some.samples ? all.logits[e] : kEntire;
      EXPECT_EQ(some.logits[e].lo, expected.lo);
      EXPECT_EQ(some.logits[e].hi, expected.hi);
    }
    EXPECT_EQ(ranges->of_each(points.doubles(), [] { return true; }).samples, 0U);
  }
}

}  // namespace
}  // namespace lipscope
