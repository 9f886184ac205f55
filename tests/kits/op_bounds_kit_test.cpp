// SPDX-License-Identifier: Apache-2.0
// Ranges and gains against samples, for every operator that offers them.
//
// What is zero tolerance and what is not. The exact output at a point lies in the range of the
// point and in the range of every box around it, so the two must meet: no slack. Computed values
// carry the rounding of eval, which the kit of the operators holds below kSlack relative to the
// largest entry; the same slack is allowed where they are compared with ranges and gains. A facet
// that is wrong by more than the rounding of a double is seen, one that forgets the rounding itself
// is seen by the first rule and by the tests of rounding.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lipscope/evaluate.h"
#include "tests/kits/op_cases.h"

namespace lipscope {
namespace {

constexpr std::uint64_t kBoundsSeed = 20250301;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSlack = 1e-10;
constexpr Index kBoundsSamples = 200;

using kits::around;
using kits::Built;
using kits::uniform;

// A point of the box: every entry at random, or mostly at the corners.
Tensor sample(Rng& rng, const Box& box) {
  Tensor point = box.lower;
  if (!is_floating(point.type())) return point;
  const bool corner = uniform(rng) < 0.5;
  for (std::size_t i = 0; i < static_cast<std::size_t>(point.size()); ++i) {
    const double low = box.lower.doubles()[i], high = box.upper.doubles()[i];
    const double t = corner && uniform(rng) < 0.8 ? std::round(uniform(rng)) : uniform(rng);
    point.doubles()[i] = std::clamp(low + t * (high - low), low, high);
  }
  return point;
}

// Boxes and points of the inputs of the only node.
class OneNode {
 public:
  explicit OneNode(const Built& built) : built_(&built) {}
  [[nodiscard]] const Node& node() const { return built_->graph.nodes()[0]; }
  [[nodiscard]] const Op& op() const { return *node().op; }

  // The graph input that feeds input k of the node; -1 for a constant.
  [[nodiscard]] Index source(std::size_t k) const {
    const auto inputs = built_->graph.inputs();
    const auto found = std::find(inputs.begin(), inputs.end(), node().inputs[k]);
    return found == inputs.end() ? -1 : found - inputs.begin();
  }
  // One box per input of the node from one per graph input.
  [[nodiscard]] std::vector<Box> boxes(const std::vector<Box>& of_graph) const {
    std::vector<Box> result;
    for (std::size_t k = 0; k < node().inputs.size(); ++k) {
      const Index from = source(k);
      const Value& value = built_->graph.value(node().inputs[k]);
      result.push_back(from < 0 ? value.constant->box() : of_graph[static_cast<std::size_t>(from)]);
    }
    return result;
  }

 private:
  const Built* built_;
};

// Boxes hold finite numbers only.
bool all_finite(const Tensor& values) {
  for (Index k = 0; k < values.size(); ++k) {
    if (!std::isfinite(values.at(k))) return false;
  }
  return true;
}

class OpBoundsKit : public testing::TestWithParam<const OpKind*> {
 protected:
  template <class Check>
  void for_each_case(Check&& check) {
    Rng rng(kBoundsSeed);
    const OpKind& kind = *GetParam();
    const std::vector<OpCase> cases = kind.cases(rng);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(std::string(kind.name) + " case " + std::to_string(i));
      const Built built = kits::build(kind, cases[i]);
      const bool finite = std::all_of(built.inputs.begin(), built.inputs.end(), all_finite);
      if (!built.graph.nodes().empty() && finite) check(built, rng);
      if (HasFailure()) return;
    }
  }
};

std::vector<Box> boxes_around(const Built& built, double width) {
  std::vector<Box> boxes;
  for (const Tensor& input : built.inputs) boxes.push_back(around(input, width));
  return boxes;
}

std::vector<Tensor> samples(Rng& rng, const std::vector<Box>& boxes) {
  std::vector<Tensor> points;
  for (const Box& box : boxes) points.push_back(sample(rng, box));
  return points;
}

double largest(const Tensor& values) {
  double result = 1;
  for (Index k = 0; k < values.size(); ++k) {
    if (std::isfinite(values.at(k))) result = std::max(result, std::abs(values.at(k)));
  }
  return result;
}

void expect_well_formed(const std::vector<Box>& range, const Graph& graph) {
  ASSERT_EQ(range.size(), graph.outputs().size());
  for (std::size_t i = 0; i < range.size(); ++i) {
    const Value& output = graph.value(graph.outputs()[i]);
    ASSERT_EQ(range[i].lower.shape(), output.type.shape);
    ASSERT_EQ(range[i].upper.shape(), output.type.shape);
    for (Index k = 0; k < range[i].lower.size(); ++k) {
      ASSERT_LE(range[i].lower.at(k), range[i].upper.at(k)) << "output " << i << " entry " << k;
    }
  }
}

// `whole` is the range of a box with the point in it, `there` that of the point.
void expect_holds(const Tensor& value, const Box& whole, const Box& there) {
  const double slack = kSlack * largest(value);
  for (Index k = 0; k < value.size(); ++k) {
    const double y = value.at(k);
    if (!std::isfinite(y)) continue;  // no value here, or one that eval cannot represent
    SCOPED_TRACE("entry " + std::to_string(k));
    EXPECT_LE(there.lower.at(k), whole.upper.at(k));
    EXPECT_GE(there.upper.at(k), whole.lower.at(k));
    EXPECT_GE(y, there.lower.at(k) - slack);
    EXPECT_LE(y, there.upper.at(k) + slack);
    EXPECT_GE(y, whole.lower.at(k) - slack);
    EXPECT_LE(y, whole.upper.at(k) + slack);
    if (!is_floating(value.type())) continue;  // an integer that may wrap around
    EXPECT_LE(there.upper.at(k) - there.lower.at(k), slack) << "wide at a point";
  }
}

TEST_P(OpBoundsKit, RangeHoldsEverySample) {
  for_each_case([](const Built& built, Rng& rng) {
    const OneNode node(built);
    for (const double width : {0.0, 1e-3, 0.3, 3.0}) {
      SCOPED_TRACE("width " + std::to_string(width));
      const std::vector<Box> boxes = boxes_around(built, width);
      const auto whole = node.op().range(node.boxes(boxes));
      if (!whole) return;
      expect_well_formed(*whole, built.graph);
      if (testing::Test::HasFatalFailure()) return;
      for (Index s = 0; s < (width > 0 ? kBoundsSamples : 1) && !testing::Test::HasFailure(); ++s) {
        const std::vector<Tensor> x = samples(rng, boxes);
        std::vector<Box> thin;
        for (const Tensor& point : x) thin.push_back({point, point});
        const auto there = node.op().range(node.boxes(thin));
        ASSERT_TRUE(there.has_value());
        const std::vector<Tensor> y = evaluate(built.graph, x);
        for (std::size_t i = 0; i < y.size(); ++i) {
          SCOPED_TRACE("output " + std::to_string(i));
          expect_holds(y[i], (*whole)[i], (*there)[i]);
        }
      }
    }
  });
}

TEST_P(OpBoundsKit, UnboundedRangesHoldEverySample) {
  for_each_case([](const Built& built, Rng& rng) {
    const OneNode node(built);
    std::vector<Box> boxes = boxes_around(built, 6);
    const std::vector<Box> finite = boxes;
    for (Box& box : boxes) {
      if (!is_floating(box.lower.type())) continue;
      for (double& entry : box.lower.doubles()) entry = uniform(rng) < 0.5 ? -kInfinity : entry;
      for (double& entry : box.upper.doubles()) entry = uniform(rng) < 0.5 ? kInfinity : entry;
    }
    const auto whole = node.op().range(node.boxes(boxes));
    if (!whole) return;
    expect_well_formed(*whole, built.graph);
    for (Index s = 0; s < kBoundsSamples && !testing::Test::HasFailure(); ++s) {
      const std::vector<Tensor> y = evaluate(built.graph, samples(rng, finite));
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double slack = kSlack * largest(y[i]);
        for (Index k = 0; k < y[i].size(); ++k) {
          if (!std::isfinite(y[i].at(k))) continue;
          EXPECT_GE(y[i].at(k), (*whole)[i].lower.at(k) - slack);
          EXPECT_LE(y[i].at(k), (*whole)[i].upper.at(k) + slack);
        }
      }
    }
  });
}

double norm_of(const std::vector<double>& x, double p) {
  double largest_entry = 0, sum = 0;
  for (const double v : x) largest_entry = std::max(largest_entry, std::abs(v));
  if (largest_entry == 0 || std::isinf(p)) return largest_entry;
  for (const double v : x) sum += std::pow(std::abs(v) / largest_entry, p);
  return largest_entry * std::pow(sum, 1 / p);
}

const std::vector<double> kExponents{1, 1.5, 2, 3, kInfinity};

// How far output 0 moves when one input moves; `error` bounds the rounding in `by`.
struct Move {
  std::vector<double> from, by;
  double error = 0;
};

std::vector<double> difference(const Tensor& a, const Tensor& b) {
  std::vector<double> d(static_cast<std::size_t>(a.size()));
  for (std::size_t i = 0; i < d.size(); ++i) {
    d[i] = a.at(static_cast<Index>(i)) - b.at(static_cast<Index>(i));
  }
  return d;
}
bool finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
}

// A random step from x to another point of the box in input k, whole, short or along one entry.
Tensor stepped(Rng& rng, const Box& box, const Tensor& from) {
  Tensor to = sample(rng, box);
  const double kind = uniform(rng);
  if (kind < 0.3) return to;
  const double length = kind < 0.6 ? 1 : std::pow(10, -3 * uniform(rng));
  const auto n = static_cast<std::size_t>(to.size());
  const std::size_t only = n == 0 || uniform(rng) < 0.5 ? n : rng() % n;
  for (std::size_t i = 0; i < n; ++i) {
    const double start = from.doubles()[i];
    const double end = only == n || only == i ? start + length * (to.doubles()[i] - start) : start;
    to.doubles()[i] = std::clamp(end, box.lower.doubles()[i], box.upper.doubles()[i]);
  }
  return to;
}

std::vector<Move> moves(Rng& rng, const Built& built, const std::vector<Box>& boxes,
                        std::size_t k) {
  std::vector<Move> result;
  const bool differentiable = built.graph.nodes()[0].op->differentiable();
  for (Index s = 0; s < kBoundsSamples; ++s) {
    const std::vector<Tensor> x = samples(rng, boxes);
    std::vector<Tensor> y = x;
    y[k] = stepped(rng, boxes[k], x[k]);
    const Tensor fx = evaluate(built.graph, x)[0], fy = evaluate(built.graph, y)[0];
    Move move{difference(x[k], y[k]), difference(fx, fy),
              1e-13 * std::max(largest(fx), largest(fy)) * static_cast<double>(fx.size() + 1)};
    if (finite(move.by)) result.push_back(std::move(move));
    if (!differentiable || !is_floating(fx.type()) || s % 4 != 0) continue;
    std::vector<Tensor> tangents(x.size());
    tangents[k] = random_tensor(rng, x[k].shape(), -1, 1);
    const Tensor pushed = Trace(built.graph, x).jvp(tangents)[0];
    Move tangent{difference(tangents[k], Tensor::zeros(ElementType::kFloat64, x[k].shape())),
                 difference(pushed, Tensor::zeros(ElementType::kFloat64, pushed.shape())), 0};
    if (finite(tangent.by)) result.push_back(std::move(tangent));
  }
  return result;
}

void expect_dominates(const Op& op, const std::vector<Box>& of_node, std::size_t wrt,
                      const std::vector<Move>& seen) {
  for (const double p : kExponents) {
    for (const double q : kExponents) {
      const GainQuery query{{Norm(p), Norm(q)}, of_node, static_cast<Index>(wrt)};
      const auto gain = op.gain(query);
      if (!gain) return;
      SCOPED_TRACE("norms " + query.norms.name());
      ASSERT_GE(gain->value, 0);  // not NaN
      EXPECT_FALSE(gain->theorem.empty());
      if (std::isinf(gain->value)) continue;
      for (const Move& move : seen) {
        ASSERT_LE(norm_of(move.by, q),
                  gain->value * norm_of(move.from, p) * (1 + kSlack) + move.error);
      }
    }
  }
}

TEST_P(OpBoundsKit, GainDominatesEveryQuotient) {
  for_each_case([](const Built& built, Rng& rng) {
    const OneNode node(built);
    for (std::size_t wrt = 0; wrt < node.node().inputs.size(); ++wrt) {
      const Index source = node.source(wrt);
      if (source < 0 || !is_floating(built.inputs[static_cast<std::size_t>(source)].type()))
        continue;
      // A value that feeds several inputs of the node cannot be moved in one of them alone.
      const auto& ids = node.node().inputs;
      if (std::count(ids.begin(), ids.end(), ids[wrt]) > 1) continue;
      const auto k = static_cast<std::size_t>(source);
      const bool large = built.inputs[k].size() > 1000;
      for (const double width : {0.0, 1e-3, 0.3, 3.0, kInfinity}) {
        if (large && width != 0.3) continue;  // the same mathematics, at far higher cost
        SCOPED_TRACE("input " + std::to_string(wrt) + " width " + std::to_string(width));
        std::vector<Box> boxes = boxes_around(built, std::isinf(width) ? 8 : width);
        const std::vector<Box> inside = boxes;
        if (std::isinf(width)) {
          for (double& entry : boxes[k].lower.doubles()) entry = -kInfinity;
          for (double& entry : boxes[k].upper.doubles()) entry = kInfinity;
        }
        const std::vector<Box> of_node = node.boxes(boxes);
        if (!node.op().gain({{Norm(2), Norm(2)}, of_node, static_cast<Index>(wrt)})) break;
        expect_dominates(node.op(), of_node, wrt,
                         width == 0 ? std::vector<Move>{} : moves(rng, built, inside, k));
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(AllOperators, OpBoundsKit, testing::ValuesIn(kits::all_kinds()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace lipscope
