// SPDX-License-Identifier: Apache-2.0
// Bounds of the Jacobian on boxes and balls by name, and ranges narrowed by the semidefinite
// recursion.
#include "pieces/local_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/checkpoint.h"
#include "base/rounding.h"
#include "estimate/chain_for_test.h"
#include "pieces/gram_bound.h"
#include "pieces/interval_jacobian.h"
#include "pieces/pieces_for_test.h"
#include "search/bounded_search.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using testing_support::jacobian;
using testing_support::layered;
using testing_support::pick_of;
using testing_support::random_pieces;

constexpr const char* kNames[] = {"fast-lip", "recur-jac", "linear-jacobian", "gram-l2"};

Domain box_around_zero(Index inputs, double half) {
  const auto n = static_cast<std::size_t>(inputs);
  return {.box = Box{Tensor::vector(std::vector<double>(n, -half)),
                     Tensor::vector(std::vector<double>(n, half))}};
}

double local_up(std::string_view name, const Graph& graph, const Domain& domain,
                const std::string& norm) {
  const LayeredNet net = layered(graph);
  BoundedSearch region(net, domain);
  return find_local_bound(name)->upper(net, region.confirm({}, {}).slopes, parse_norms(norm), {});
}

// x -> relu(x) and relu(-2 x), then their weighted sum.
Graph two_units(double a, double b) {
  GraphMaker m;
  ValueId x = m.input({1, 1});
  x = m.add("Gemm", {x, m.weights({1, 2}, {1, -2})});
  x = m.add("Relu", {x});
  return m.finish(m.add("Gemm", {x, m.weights({2, 1}, {a, b})}));
}

TEST(LocalBounds, KnownValuesOfTwoUnits) {
  // The gradient is 1 for x > 0 and -2 for x < 0; intervals allow [-2, 1]. A sum that forgets the
  // absolute value of the lower end would say 1.
  const Domain domain = box_around_zero(1, 1);
  for (const char* name : kNames) {
    EXPECT_GE(local_up(name, two_units(1, 1), domain, "2"), 2) << name;
    EXPECT_NEAR(local_up(name, two_units(1, 1), domain, "2"), 2, 1e-6) << name;
  }
  // Both signs at once: 1 + 2 for intervals.
  EXPECT_NEAR(local_up("fast-lip", two_units(1, -1), domain, "2"), 3, 1e-9);
}

TEST(LocalBounds, ExactWhereNoUnitChangesItsSlope) {
  Rng rng(3);
  for (int trial = 0; trial < 200; ++trial) {
    const Graph graph = random_pieces(rng, 3, {5, 4}, 3);
    const LayeredNet net = layered(graph);
    Slopes single;
    for (std::size_t k = 0; k < net.hidden(); ++k) {
      single.emplace_back();
      for (std::size_t i = 0; i < static_cast<std::size_t>(net.layers[k].out); ++i)
        single[k].push_back(
            point(pick_of(rng, 2) == 0 ? net.layers[k].below[i] : net.layers[k].above[i]));
    }
    const std::vector<double> j = jacobian(net, single);
    for (const char* norm : {"inf", "1", "2:inf", "1:2", "2"}) {
      const NormPair norms = parse_norms(norm);
      const NormBracket exact = matrix_norm({3, 3, j.data()}, norms);
      for (const char* name : kNames) {
        const LocalBound* bound = find_local_bound(name);
        if (!bound->unsupported(norms, 3, 3).empty()) continue;
        const double up = bound->upper(net, single, norms, {});
        EXPECT_GE(up, exact.lower) << name << " " << norm;
        // Lengths of nearly nothing are found as square roots of rounding errors.
        EXPECT_LE(up, exact.upper * (1 + 1e-6) + 1e-6) << name << " " << norm;
      }
    }
  }
}

Graph any_network(Rng& rng) {
  if (pick_of(rng, 4) == 0) return testing_support::random_chain(rng);
  std::vector<Index> widths;
  for (Index k = 1 + pick_of(rng, 3); k > 0; --k) widths.push_back(1 + pick_of(rng, 7));
  return random_pieces(rng, 1 + pick_of(rng, 5), widths, 1 + pick_of(rng, 4),
                       {"Relu", "LeakyRelu", "Abs", "Tanh", "Relu", "Sigmoid"});
}

// Slopes at a random point of the region, those of every piece but for rounding.
Slopes slopes_somewhere(const BoundedSearch& region, Index inputs, double half, Rng& rng) {
  std::uniform_real_distribution<double> uniform(-half, half);
  std::vector<double> x(static_cast<std::size_t>(inputs));
  for (double& e : x) e = uniform(rng);
  return region.slopes_at(x);
}

TEST(LayeredNet, OfTooManyWeightsNoneIsWritten) {
  Rng rng(3);
  testing_support::GraphMaker m;
  ValueId x = m.input({1, 30});
  for (int layer = 0; layer < 3; ++layer)
    x = m.add("Relu", {m.add("MatMul", {x, m.weights(random_tensor(rng, {30, 30}, -1, 1))})});
  const Graph graph = m.finish(x);
  const auto network = testing_support::network_with_biases(graph);
  ASSERT_TRUE(network) << network.reason();
  const double before = errand().work;
  EXPECT_FALSE(as_layered_net(*network, 3000));
  EXPECT_EQ(errand().work, before);
  EXPECT_TRUE(as_layered_net(*network, 5000));
  EXPECT_GT(errand().work, before);
}

TEST(LocalBounds, NothingIsBelowAJacobianAndTheOrderHolds) {
  Rng rng(11);
  static const char* kNorms[] = {"inf", "1", "2", "2:inf", "1:2", "inf:2", "3", "inf:1", "2:1"};
  int tighter = 0, recur = 0, compared = 0, larger = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Graph graph = any_network(rng);
    const auto net = testing_support::layered_net_of(graph);
    if (!net) continue;  // an affine network
    const double half = std::pow(10.0, -2.0 + 3.0 * static_cast<double>(pick_of(rng, 100)) / 100);
    BoundedSearch region(*net, box_around_zero(net->inputs(), half));
    if (!region.usable()) continue;
    const Slopes slopes = region.confirm({}, {}).slopes;
    const NormPair norms = parse_norms(kNorms[rng() % std::size(kNorms)]);
    std::vector<double> up;
    for (const char* name : kNames) {
      const LocalBound* bound = find_local_bound(name);
      const bool fits = bound->unsupported(norms, net->inputs(), net->outputs()).empty();
      up.push_back(fits ? bound->upper(*net, slopes, norms, {}) : kInf);
    }
    for (int at = 0; at < 3; ++at) {
      const Slopes here = slopes_somewhere(region, net->inputs(), half, rng);
      const std::vector<double> j = jacobian(*net, here);
      const double seen =
          matrix_norm({net->outputs(), net->inputs(), j.data()}, norms).lower * (1 - 1e-7);
      for (std::size_t b = 0; b < up.size(); ++b)
        EXPECT_LE(seen, up[b]) << kNames[b] << " " << norms.name() << " trial " << trial;
    }
    EXPECT_LE(up[1], up[0]) << trial;
    EXPECT_LE(up[2], up[0]) << trial;
    EXPECT_LE(up[2], up[1] * 1.1 + 1e-200) << norms.name() << " trial " << trial;
    larger += up[2] > up[1] * (1 + 1e-9) ? 1 : 0;
    ++compared;
    tighter += up[2] < up[1] * 0.999 ? 1 : 0;
    recur += up[1] < up[0] * 0.999 ? 1 : 0;
  }
  EXPECT_GT(compared, 2000);
  EXPECT_GT(tighter, compared / 10);
  EXPECT_LT(larger, compared / 100);
  EXPECT_GT(recur, compared / 20);
}

// Balls of several norms, alone and cut by a box; ranges narrowed now and then.
TEST(LocalBounds, HoldOnBallsOfAllNorms) {
  Rng rng(12);
  std::uniform_real_distribution<double> uniform(-1, 1);
  int narrowed = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const Graph graph = any_network(rng);
    const auto net = testing_support::layered_net_of(graph);
    if (!net) continue;
    const auto n = static_cast<std::size_t>(net->inputs());
    const double p = std::vector<double>{1, 1.5, 2, 3, kInf}[rng() % 5];
    const double radius = std::pow(10.0, uniform(rng) - 0.5);
    std::vector<double> center(n), low(n), high(n);
    for (std::size_t i = 0; i < n; ++i) {
      center[i] = uniform(rng);
      low[i] = center[i] - 0.3 * radius;
      high[i] = center[i] + radius;
    }
    Domain domain{.ball = Ball{Tensor::vector(center), radius, Norm(p)}};
    if (trial % 3 == 0) domain.box = Box{Tensor::vector(low), Tensor::vector(high)};
    BoundedSearch region(*net, domain);
    if (!region.usable()) continue;
    if (trial % 2 == 0) {
      Multipliers any;
      for (std::size_t k = 0; k < net->hidden(); ++k)
        any.emplace_back(static_cast<std::size_t>(net->layers[k].out), 0.0);
      narrowed += region.narrow(any) ? 1 : 0;
    }
    const Slopes slopes = region.confirm({}, {}).slopes;
    const NormPair norms = parse_norms(trial % 2 == 0 ? "2" : "inf");
    for (int at = 0; at < 4; ++at) {
      std::vector<double> step(n), x = center;
      for (double& e : step) e = uniform(rng);
      const double size = pnorm_up(step, p);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] += 0.9999 * radius * (at == 0 ? 1 : std::fabs(uniform(rng))) * step[i] / size;
        if (domain.box) x[i] = std::clamp(x[i], low[i], high[i]);
      }
      const std::vector<double> j = jacobian(*net, region.slopes_at(x));
      const double seen =
          matrix_norm({net->outputs(), net->inputs(), j.data()}, norms).lower * (1 - 1e-7);
      for (const char* name : kNames) {
        const LocalBound* bound = find_local_bound(name);
        if (!bound->unsupported(norms, net->inputs(), net->outputs()).empty()) continue;
        EXPECT_LE(seen, bound->upper(*net, slopes, norms, {})) << name << " trial " << trial;
      }
    }
  }
  EXPECT_GT(narrowed, 500);
}

TEST(IntervalJacobian, HoldsEveryProductOfSlopesInTheIntervals) {
  Rng rng(5);
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 500; ++trial) {
    const LayeredNet net = layered(random_pieces(rng, 3, {4, 4}, 2));
    Slopes wide, some;
    for (std::size_t k = 0; k < net.hidden(); ++k) {
      wide.emplace_back();
      some.emplace_back();
      for (Index i = 0; i < net.layers[k].out; ++i) {
        const double a = uniform(rng) - 0.3, b = a + uniform(rng);
        wide[k].push_back({a, b});
        some[k].push_back(point(pick_of(rng, 2) == 0 ? a : b));
      }
    }
    const JacobianBox box = interval_jacobian(net, wide);
    const std::vector<double> j = jacobian(net, some);
    for (std::size_t e = 0; e < j.size(); ++e)
      EXPECT_LE(std::fabs(j[e] - box.middle[e]), box.radius[e] + 1e-12) << trial;
  }
}

// The largest d'Md over all signs, one by one.
double largest_form(const std::vector<double>& m, std::size_t n) {
  double largest = -HUGE_VAL;
  for (std::size_t signs = 0; signs < (std::size_t{1} << n); ++signs) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j)
        sum += ((signs >> i ^ signs >> j) & 1) == 0 ? m[i * n + j] : -m[i * n + j];
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

TEST(GramBound, SignMaximumIsAboveAllSignsAndNearThem) {
  Rng rng(7);
  double worst = 1;
  for (int trial = 0; trial < 500; ++trial) {
    const auto n = static_cast<std::size_t>(1 + pick_of(rng, 8));
    const auto rank = static_cast<std::size_t>(1 + pick_of(rng, 8));
    std::normal_distribution<double> normal;
    std::vector<double> b(n * rank), m(n * n);
    for (double& e : b) e = normal(rng);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t c = 0; c < rank; ++c) m[i * n + j] += b[i * rank + c] * b[j * rank + c];
      }
    }
    const double up = sign_maximum_up(m, static_cast<Index>(n)), exact = largest_form(m, n);
    EXPECT_GE(up, exact * (1 - 1e-12));
    worst = std::max(worst, up / exact);
    double sum = 0;
    for (const double e : m) sum += std::fabs(e);
    EXPECT_LE(up, sum * (1 + 1e-12));
  }
  // The relaxation is at most pi / 2 off for positive semidefinite matrices.
  EXPECT_LT(worst, 1.5708);
  EXPECT_GT(worst, 1.0001);
}

TEST(GramBound, ReadsNumbersOfAnySize) {
  for (const double scale : {1e-200, 1e-30, 1e30, 1e100}) {
    const double up = local_up("gram-l2", two_units(scale, scale), box_around_zero(1, 1), "2");
    EXPECT_GE(up, 2 * scale);
    EXPECT_LE(up, 2 * scale * (1 + 1e-6) + 1e-80);
  }
}

TEST(Narrowing, RangesHoldAndShrink) {
  Rng rng(13);
  int shrunk = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Graph graph = random_pieces(rng, 8, {8, 8, 8, 8}, 2, {"Relu", "Tanh", "LeakyRelu"});
    const LayeredNet net = layered(graph);
    const Tensor center = random_tensor(rng, {8}, -1, 1);
    Domain domain{.ball = Ball{center, 0.1, Norm(2)}};
    BoundedSearch region(net, domain);
    const std::size_t before = region.unstable_units();
    Multipliers multipliers;
    for (std::size_t k = 0; k < net.hidden(); ++k)
      multipliers.emplace_back(static_cast<std::size_t>(net.layers[k].out), 0.0);
    const Slopes wide = region.confirm({}, {}).slopes;
    ASSERT_TRUE(region.narrow(multipliers));
    const Slopes narrow = region.confirm({}, {}).slopes;
    shrunk += region.unstable_units() < before ? 1 : 0;
    for (int at = 0; at < 10; ++at) {
      std::vector<double> x(center.doubles().begin(), center.doubles().end());
      const Tensor way = random_tensor(rng, {8}, -1, 1);
      const double size = norm2_up(way.doubles());
      for (std::size_t i = 0; i < 8; ++i) x[i] += 0.0999 * way.doubles()[i] / size;
      const Slopes here = region.slopes_at(x);
      for (std::size_t k = 0; k < here.size(); ++k) {
        for (std::size_t i = 0; i < here[k].size(); ++i) {
          EXPECT_GE(here[k][i].lo, narrow[k][i].lo - 1e-7);
          EXPECT_LE(here[k][i].hi, narrow[k][i].hi + 1e-7);
          EXPECT_GE(narrow[k][i].lo, wide[k][i].lo);
          EXPECT_LE(narrow[k][i].hi, wide[k][i].hi);
        }
      }
    }
    multipliers.pop_back();
    EXPECT_FALSE(region.narrow(multipliers));
  }
  EXPECT_GT(shrunk, 0);
}

TEST(Narrowing, NeedsAPointOfTheDomain) {
  Rng rng(17);
  const Graph graph = random_pieces(rng, 2, {3}, 1);
  const LayeredNet net = layered(graph);
  Domain domain = box_around_zero(2, 1);
  domain.ball = Ball{Tensor::vector(std::vector<double>{1.5, 0}), 1, Norm(2)};
  EXPECT_FALSE(BoundedSearch(net, domain).narrow({{0, 0, 0}}));
  domain.ball = Ball{Tensor::vector(std::vector<double>{0.5, 0}), 1, Norm(2)};
  EXPECT_TRUE(BoundedSearch(net, domain).narrow({{0, 0, 0}}));
}

}  // namespace
}  // namespace lipscope
