// SPDX-License-Identifier: Apache-2.0
#include "estimate/segments.h"

#include <gtest/gtest.h>

#include "bounds/boxes.h"
#include "estimate/chain_for_test.h"
#include "sdp/lmi.h"

namespace lipscope {
namespace {

using namespace testing_support;

std::vector<SdpSegment> segments_of(Problem& problem, const SegmentLimits& limits) {
  std::string reason;
  return sdp_segments(problem, limits, reason);
}

const SegmentLimits kNoLimits{1e18, 1e18, [] { return false; }};

Graph four_layers() {
  const auto layer = matrix(3, 3, {1, 2, -1, 0.5, 1, 1, -2, 1, 0});
  return relu_chain({layer, layer, layer, layer});
}

TEST(CutValues, OfAChainAreAllItsValues) {
  const Graph graph = four_layers();
  const std::vector<ValueId> cuts = cut_values(graph);
  ASSERT_EQ(cuts.size(), graph.nodes().size() + 1);
  EXPECT_EQ(cuts.front(), graph.inputs()[0]);
  EXPECT_EQ(cuts.back(), graph.outputs()[0]);
}

// Whatever is cut at: nothing but constants leads around it.
TEST(CutValues, HaveNoWayAround) {
  std::mt19937_64 rng(11);
  for (int trial = 0; trial < 200; ++trial) {
    const Graph graph = random_residual(rng);
    const std::vector<ValueId> cuts = cut_values(graph);
    ASSERT_GE(cuts.size(), 2U);
    for (const ValueId cut : cuts) {
      std::vector<bool> reached(graph.values().size());
      for (const ValueId id : graph.inputs()) reached[id.index] = id != cut;
      for (const Node& node : graph.nodes()) {
        const bool from =
            std::ranges::any_of(node.inputs, [&](ValueId id) { return reached[id.index]; });
        for (const ValueId id : node.outputs) reached[id.index] = from && id != cut;
      }
      EXPECT_FALSE(reached[graph.outputs()[0].index]) << trial;
    }
  }
}

TEST(Segments, AreOneWhereTheWholeFits) {
  const Graph graph = four_layers();
  Problem problem({.graph = &graph});
  const auto segments = segments_of(problem, kNoLimits);
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].from, graph.inputs()[0]);
  EXPECT_EQ(segments[0].to, graph.outputs()[0]);
}

TEST(Segments, StayWithinTheirLimitsAndFollowOneAnother) {
  const Graph graph = four_layers();
  for (const double operations : {60.0, 80.0, 100.0}) {
    SegmentLimits limits = kNoLimits;
    limits.operations = operations;
    Problem problem({.graph = &graph});
    std::string reason;
    const auto segments = sdp_segments(problem, limits, reason);
    std::uint32_t last = graph.inputs()[0].index;
    for (const SdpSegment& segment : segments) {
      EXPECT_LE(proof_cost(*segment.network).operations, operations);
      EXPECT_GE(segment.from.index, last);
      EXPECT_GT(segment.to.index, segment.from.index);
      last = segment.to.index;
    }
    EXPECT_NE(reason.find("too large"), std::string::npos);
  }
}

TEST(Segments, AreNoneWhenStopped) {
  SegmentLimits limits = kNoLimits;
  limits.stop = [] { return true; };
  const Graph graph = four_layers();
  Problem problem({.graph = &graph});
  EXPECT_TRUE(segments_of(problem, limits).empty());
}

}  // namespace
}  // namespace lipscope
