// SPDX-License-Identifier: Apache-2.0
#include "estimate/lipsdp_dual.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/checkpoint.h"
#include "base/parallel.h"

namespace lipscope {
namespace {

UnitNode::Edge random_edge(std::size_t from, Index rows, Index cols, std::mt19937_64& rng) {
  std::normal_distribution<double> normal;
  RowMatrix map;
  map.rows = rows;
  map.cols = cols;
  for (Index i = 0; i < rows * cols; ++i)
    map.weights.push_back(normal(rng) / std::sqrt(static_cast<double>(cols)));
  return {from, std::move(map)};
}

// Enough units for single precision at first and for several pieces of rows.
UnitNetwork wide_network() {
  constexpr Index kInputs = 6, kUnits = 4200, kOutputs = 3;
  std::mt19937_64 rng(5);
  UnitNetwork net;
  net.nodes.resize(3);
  net.nodes[0].size = kInputs;
  net.nodes[1].size = kUnits;
  net.nodes[1].slopes.assign(kUnits, Interval{0, 1});
  net.nodes[1].edges.push_back(random_edge(0, kUnits, kInputs, rng));
  net.nodes[1].depth = 1;
  net.nodes[2].size = kOutputs;
  net.nodes[2].edges.push_back(random_edge(1, kOutputs, kUnits, rng));
  net.nodes[2].depth = 2;
  return net;
}

struct DualRun {
  std::vector<double> values;
  std::vector<std::vector<double>> multipliers;
  double work = 0;
  bool operator==(const DualRun&) const = default;
};

DualRun run_dual(const UnitNetwork& net) {
  const double before = errand().work;
  DualRun run;
  LipsdpDual dual(net, 20);
  EXPECT_FALSE(dual.precise());
  for (int i = 0; i < 6; ++i) run.values.push_back(dual.step());
  dual.be_precise();
  for (int i = 0; i < 3; ++i) run.values.push_back(dual.step());
  run.multipliers = dual.multipliers();
  run.work = errand().work - before;
  return run;
}

TEST(LipsdpDual, ThreadsChangeNoBitAndNoWork) {
  const UnitNetwork net = wide_network();
  const int before = threads();
  const Errand outside = errand();
  set_threads(1);
  errand() = {};
  const DualRun alone = run_dual(net);
  EXPECT_GT(alone.values.back(), alone.values.front());
  EXPECT_GT(alone.work, 1e6);
  for (const int count : {2, 3}) {
    set_threads(count);
    errand() = {};
    EXPECT_EQ(run_dual(net), alone) << count;
  }
  errand() = outside;
  set_threads(before);
}

}  // namespace
}  // namespace lipscope
