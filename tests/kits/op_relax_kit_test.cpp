// SPDX-License-Identifier: Apache-2.0
// Affine bounds against samples, for every operator that offers them. Zero tolerance: the exact
// output at a point lies in the range of the point, so a lower form must not be above that range,
// nor an upper form below it; forms are evaluated to the last bit, outward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/interval.h"
#include "tests/kits/op_cases.h"

namespace lipscope {
namespace {

using kits::around;
using kits::Built;
using kits::uniform;

constexpr std::uint64_t kRelaxSeed = 20250307;
// Of each box of each worked example: fewer where there are many weights.
constexpr int kRelaxSamples = 200, kLeastSamples = 10;
int samples_for(const Relaxation& forms) {
  const auto weights = static_cast<double>(forms.lower.weights.size() + forms.upper.weights.size());
  return std::clamp(static_cast<int>(2e5 / (weights + 1)), kLeastSamples, kRelaxSamples);
}

// A point of the box: at random, mostly at corners, or mostly in the middle.
Tensor sample_point(Rng& rng, const Box& box) {
  Tensor point = box.lower;
  if (!is_floating(point.type())) return point;
  const double kind = uniform(rng);
  for (std::size_t i = 0; i < static_cast<std::size_t>(point.size()); ++i) {
    const double low = box.lower.doubles()[i], high = box.upper.doubles()[i];
    double t = uniform(rng);
    if (kind < 0.4 && uniform(rng) < 0.8) t = std::round(t);
    if (kind > 0.8 && uniform(rng) < 0.8) t = 0.5;
    point.doubles()[i] = std::clamp(low + t * (high - low), low, high);
  }
  return point;
}

// One box for each input of the only node from one for each input of the graph.
std::vector<Box> boxes_of_node(const Built& built, const std::vector<Box>& of_graph) {
  const auto inputs = built.graph.inputs();
  std::vector<Box> result;
  for (const ValueId id : built.graph.nodes()[0].inputs) {
    const auto found = std::find(inputs.begin(), inputs.end(), id);
    const Value& value = built.graph.value(id);
    result.push_back(found == inputs.end()
                         ? value.constant->box()
                         : of_graph[static_cast<std::size_t>(found - inputs.begin())]);
  }
  return result;
}

// Encloses form i at x.
Interval value_of(const AffineRows& forms, Index i, const Tensor& x) {
  const auto row = static_cast<std::size_t>(i);
  std::vector<double> down{forms.offsets[row]}, up = down;
  for (auto j = static_cast<std::size_t>(forms.begin[row]);
       j < static_cast<std::size_t>(forms.begin[row + 1]); ++j) {
    const double entry = x.at(forms.columns[j]);
    down.push_back(mul_down(forms.weights[j], entry));
    up.push_back(mul_up(forms.weights[j], entry));
  }
  return {sum_down(down), sum_up(up)};
}

void expect_well_formed_forms(const AffineRows& forms, Index outputs, Index inputs) {
  ASSERT_EQ(std::ssize(forms.offsets), outputs);
  ASSERT_EQ(std::ssize(forms.begin), outputs + 1);
  ASSERT_EQ(forms.columns.size(), forms.weights.size());
  ASSERT_EQ(forms.begin.front(), 0);
  ASSERT_EQ(forms.begin.back(), std::ssize(forms.columns));
  ASSERT_TRUE(std::is_sorted(forms.begin.begin(), forms.begin.end()));
  for (const Index column : forms.columns) ASSERT_TRUE(column >= 0 && column < inputs);
  for (const double weight : forms.weights) ASSERT_TRUE(std::isfinite(weight));
  for (const double offset : forms.offsets) ASSERT_TRUE(std::isfinite(offset));
}

void expect_between(const Relaxation& forms, const Tensor& x, const Box& there) {
  for (Index i = 0; i < there.lower.size(); ++i) {
    ASSERT_LE(value_of(forms.lower, i, x).lo, there.upper.at(i)) << "entry " << i;
    ASSERT_GE(value_of(forms.upper, i, x).hi, there.lower.at(i)) << "entry " << i;
  }
}

std::vector<Box> thin(const std::vector<Tensor>& points) {
  std::vector<Box> boxes;
  for (const Tensor& point : points) boxes.push_back({point, point});
  return boxes;
}

// The entries of all inputs of a node at a point.
Tensor one_after_another(const std::vector<Box>& at) {
  std::vector<double> all;
  for (const Box& box : at) {
    for (Index i = 0; i < box.lower.size(); ++i) all.push_back(box.lower.at(i));
  }
  return Tensor::vector(std::move(all));
}

void check_box(const Built& built, const std::vector<Box>& boxes, const std::vector<Box>& inside,
               Rng& rng) {
  const Op& op = *built.graph.nodes()[0].op;
  const auto forms = op.relax(boxes_of_node(built, boxes));
  if (!forms) return;
  const Value& output = built.graph.value(built.graph.nodes()[0].outputs[0]);
  const Index outputs = element_count(output.type.shape);
  Index inputs = 0;
  for (const Box& box : boxes_of_node(built, boxes)) inputs += box.lower.size();
  expect_well_formed_forms(forms->lower, outputs, inputs);
  expect_well_formed_forms(forms->upper, outputs, inputs);
  for (int s = 0; s < samples_for(*forms) && !testing::Test::HasFatalFailure(); ++s) {
    std::vector<Tensor> points;
    for (const Box& box : inside) points.push_back(sample_point(rng, box));
    const std::vector<Box> at = boxes_of_node(built, thin(points));
    const auto there = op.range(at);
    ASSERT_TRUE(there.has_value());
    expect_between(*forms, one_after_another(at), there->front());
  }
}

class OpRelaxKit : public testing::TestWithParam<const OpKind*> {};

TEST_P(OpRelaxKit, FormsHoldEverySample) {
  Rng rng(kRelaxSeed);
  const std::vector<OpCase> cases = GetParam()->cases(rng);
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const Built built = kits::build(*GetParam(), cases[k]);
    if (built.graph.nodes().empty()) continue;
    for (const double width : {0.0, 1e-300, 1e-14, 1e-7, 1e-3, 0.3, 3.0, 40.0, 3000.0}) {
      SCOPED_TRACE("case " + std::to_string(k) + " width " + std::to_string(width));
      std::vector<Box> boxes;
      for (const Tensor& input : built.inputs) boxes.push_back(around(input, width));
      check_box(built, boxes, boxes, rng);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(OpRelaxKit, UnboundedBoxesHaveSoundFormsOrNone) {
  Rng rng(kRelaxSeed);
  const std::vector<OpCase> cases = GetParam()->cases(rng);
  for (std::size_t k = 0; k < cases.size(); ++k) {
    SCOPED_TRACE("case " + std::to_string(k));
    const Built built = kits::build(*GetParam(), cases[k]);
    if (built.graph.nodes().empty()) continue;
    std::vector<Box> boxes, inside;
    for (const Tensor& input : built.inputs) {
      inside.push_back(around(input, 20));
      boxes.push_back(inside.back());
      if (!is_floating(input.type())) continue;
      for (double& entry : boxes.back().lower.doubles()) entry = uniform(rng) < 0.5 ? -kInf : entry;
      for (double& entry : boxes.back().upper.doubles()) entry = uniform(rng) < 0.5 ? kInf : entry;
    }
    check_box(built, boxes, inside, rng);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(AllOperators, OpRelaxKit, testing::ValuesIn(kits::all_kinds()),
                         [](const auto& param) { return std::string(param.param->name); });

// One operator on one box.
class Relaxed {
 public:
  Relaxed(const std::string& name, const std::vector<double>& lower,
          const std::vector<double>& upper, const Attributes& attributes = {})
      : n_(std::ssize(lower)) {
    const Shape shape{1, n_};
    const NodeInput input{{ElementType::kFloat64, shape}, nullptr};
    const auto op = find_op_kind(name)->import(OnnxNode(name, 13, attributes, {input})).op;
    const Box box{Tensor(ElementType::kFloat64, shape, lower),
                  Tensor(ElementType::kFloat64, shape, upper)};
    forms_ = op->relax(std::span(&box, 1));
  }
  [[nodiscard]] bool offered() const { return forms_.has_value(); }
  [[nodiscard]] double lower(Index i, const std::vector<double>& x) const {
    return midpoint(value_of(forms_->lower, i, tensor(x)));
  }
  [[nodiscard]] double upper(Index i, const std::vector<double>& x) const {
    return midpoint(value_of(forms_->upper, i, tensor(x)));
  }
  [[nodiscard]] const Relaxation& forms() const { return *forms_; }

 private:
  [[nodiscard]] Tensor tensor(const std::vector<double>& x) const {
    return {ElementType::kFloat64, {1, n_}, x};
  }
  Index n_;
  std::optional<Relaxation> forms_;
};

void expect_line(const AffineRows& forms, double weight, double offset) {
  EXPECT_NEAR(forms.weights[0], weight, 1e-14);
  EXPECT_NEAR(forms.offsets[0], offset, 1e-14);
}

TEST(Relax, PiecewiseLinearFunctionsHaveTheirTriangle) {
  const Relaxed mostly_on("Relu", {-1}, {3});
  expect_line(mostly_on.forms().upper, 0.75, 0.75);
  expect_line(mostly_on.forms().lower, 1, 0);
  const Relaxed mostly_off("Relu", {-3}, {1});
  expect_line(mostly_off.forms().upper, 0.25, 0.75);
  expect_line(mostly_off.forms().lower, 0, 0);
  const Relaxed leaky("LeakyRelu", {-1}, {3}, {{"alpha", 0.25}});
  expect_line(leaky.forms().upper, 0.8125, 0.5625);
  expect_line(leaky.forms().lower, 1, 0);
  const Relaxed abs("Abs", {-2}, {1});
  expect_line(abs.forms().upper, -1.0 / 3, 4.0 / 3);
  expect_line(abs.forms().lower, -1, 0);
  for (const char* name : {"Relu", "Abs"}) {
    const Relaxed on(name, {1}, {3});
    expect_line(on.forms().upper, 1, 0);
    expect_line(on.forms().lower, 1, 0);
  }
  // A narrow kink beside one end.
  const Relaxed uneven("Relu", {-0.1}, {7.9});
  expect_line(uneven.forms().upper, 0.9875, 0.09875);
}

TEST(Relax, ConvexFunctionsLieBetweenTangentAndChord) {
  const Relaxed exp("Exp", {0}, {1});
  EXPECT_NEAR(exp.upper(0, {0}), 1, 1e-14);
  EXPECT_NEAR(exp.upper(0, {1}), std::exp(1.0), 1e-14);
  EXPECT_NEAR(exp.lower(0, {0.5}), std::exp(0.5), 1e-14);
  const Relaxed log("Log", {1}, {3});
  EXPECT_NEAR(log.lower(0, {1}), 0, 1e-14);
  EXPECT_NEAR(log.lower(0, {3}), std::log(3.0), 1e-14);
  EXPECT_NEAR(log.upper(0, {2}), std::log(2.0), 1e-14);
}

// Two per cent of the best line, which is found here by brute force.
TEST(Relax, LinesAreNearTheBest) {
  const struct {
    const char* name;
    double (*f)(double);
    double lower, upper;
  } cases[] = {{"Tanh", [](double x) { return std::tanh(x); }, -1, 2},
               {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -5, 3},
               {"Sin", [](double x) { return std::sin(x); }, -1, 2.5},
               {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, -2, 4}};
  for (const auto& c : cases) {
    const double middle = 0.5 * (c.lower + c.upper);
    double best_upper = kInf, best_lower = -kInf, range = 0;
    for (double slope = -1.2; slope <= 1.2; slope += 1e-3) {
      double above = -kInf, below = kInf;
      for (int k = 0; k <= 1000; ++k) {
        const double x = c.lower + (c.upper - c.lower) * k / 1000;
        above = std::max(above, c.f(x) - slope * (x - middle));
        below = std::min(below, c.f(x) - slope * (x - middle));
        range = std::max(range, std::abs(c.f(x) - c.f(c.lower)));
      }
      best_upper = std::min(best_upper, above);
      best_lower = std::max(best_lower, below);
    }
    const Relaxed got(c.name, {c.lower}, {c.upper});
    EXPECT_LE(got.upper(0, {middle}), best_upper + 0.02 * range) << c.name;
    EXPECT_GE(got.lower(0, {middle}), best_lower - 0.02 * range) << c.name;
  }
}

TEST(Relax, OfferedByTheFamilies) {
  for (const char* name : {"Relu", "LeakyRelu", "Abs", "Sigmoid", "Tanh", "Gelu", "HardSwish",
                           "Exp", "Softmax", "LogSoftmax", "Clip", "Floor"}) {
    EXPECT_TRUE(Relaxed(name, {-0.5, 0.5}, {1, 2}).offered()) << name;
  }
  EXPECT_FALSE(Relaxed("Relu", {-1}, {kInf}).offered());
  EXPECT_TRUE(Relaxed("Tanh", {-kInf}, {kInf}).offered());
  EXPECT_TRUE(Relaxed("Softmax", {-kInf, 0}, {kInf, 1}).offered());
  EXPECT_FALSE(Relaxed("LogSoftmax", {-kInf, 0}, {kInf, 1}).offered());
}

// The bounds by log-sum-exp of Wei, Wu, Wu, Chen, Barrett and Farchi (AISTATS 2023), in plain
// arithmetic, with their tangents taken in the middle.
struct LogSumExpBounds {
  std::vector<double> lower, upper, log_lower;

  LogSumExpBounds(const std::vector<double>& l, const std::vector<double>& u) {
    const std::size_t n = l.size();
    std::vector<double> c(n);
    for (std::size_t j = 0; j < n; ++j) c[j] = 0.5 * (l[j] + u[j]);
    const std::size_t top =
        static_cast<std::size_t>(std::max_element(c.begin(), c.end()) - c.begin());
    for (std::size_t i = 0; i < n; ++i) {
      double chords = 0, shifted = 1, sum = 0, sum_low = 1, sum_high = 1;
      for (std::size_t j = 0; j < n; ++j) {
        chords += 0.5 * (std::exp(l[j] - c[i]) + std::exp(u[j] - c[i]));
        if (j != top) shifted += 0.5 * (std::exp(l[j] - u[top]) + std::exp(u[j] - l[top]));
        sum += std::exp(c[j] - c[i]);
        if (j == i) continue;
        sum_low += std::exp(l[j] - u[i]);
        sum_high += std::exp(u[j] - l[i]);
      }
      lower.push_back(std::max(1 / chords, std::exp(c[i] - c[top]) / shifted));
      log_lower.push_back(std::log(lower.back()));
      const double from = -std::log(sum_high), to = -std::log(sum_low), at = -std::log(sum);
      const double chord =
          to > from ? (std::exp(to) - std::exp(from)) / (to - from) : std::exp(from);
      upper.push_back(std::exp(from) + chord * (at - from));
    }
  }
};

TEST(Relax, SoftmaxIsAtLeastAsTightAsLogSumExpBounds) {
  Rng rng(kRelaxSeed);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = 2 + rng() % 12;
    const double spread = std::pow(10, 3 * uniform(rng) - 1.5);
    const double width = std::pow(10, 5 * uniform(rng) - 4);
    std::vector<double> l(n), u(n), c(n), s(n);
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double at = spread * normal(rng), half = width * uniform(rng);
      l[j] = at - half, u[j] = at + half, c[j] = 0.5 * (l[j] + u[j]);
    }
    const double top = *std::max_element(c.begin(), c.end());
    for (std::size_t j = 0; j < n; ++j) sum += s[j] = std::exp(c[j] - top);
    const LogSumExpBounds known(l, u);
    const Relaxed softmax("Softmax", l, u), log_softmax("LogSoftmax", l, u);
    for (std::size_t i = 0; i < n; ++i) {
      const auto k = static_cast<Index>(i);
      const double share = s[i] / sum;
      EXPECT_LE(softmax.upper(k, c), known.upper[i] + 1e-12);
      EXPECT_GE(softmax.lower(k, c), known.lower[i] - 1e-12);
      EXPECT_GE(softmax.upper(k, c), share - 1e-14);
      EXPECT_LE(softmax.lower(k, c), share + 1e-14);
      EXPECT_NEAR(log_softmax.upper(k, c), std::log(share), 1e-11 * (1 - std::log(share)));
      EXPECT_GE(log_softmax.lower(k, c), known.log_lower[i] - 1e-11 * (1 - known.log_lower[i]));
    }
    if (HasFailure()) return;
  }
}

// With two entries softmax is a function of the difference alone, and the best lines are known.
TEST(Relax, SoftmaxOfTwo) {
  const auto logistic = [](double t) { return 1 / (1 + std::exp(-t)); };
  // The difference runs over [1, 3]: concave, so the tangent and the chord.
  const Relaxed right("Softmax", {1.5, -0.5}, {2.5, 0.5});
  EXPECT_NEAR(right.upper(0, {2, 0}), logistic(2), 1e-14);
  EXPECT_NEAR(right.lower(0, {1.5, 0.5}), logistic(1), 1e-14);
  EXPECT_NEAR(right.lower(0, {2.5, -0.5}), logistic(3), 1e-14);
  EXPECT_NEAR(right.lower(1, {2, 0}), logistic(-2), 1e-14);
  EXPECT_NEAR(right.upper(1, {1.5, 0.5}), logistic(-1), 1e-14);
  const Relaxed log("LogSoftmax", {1.5, -0.5}, {2.5, 0.5});
  EXPECT_NEAR(log.lower(0, {1.5, 0.5}), std::log(logistic(1)), 1e-14);
  EXPECT_NEAR(log.upper(1, {2, 0}), std::log(logistic(-2)), 1e-14);
}

// Logits far apart, huge and equal.
TEST(Relax, SoftmaxAtTheEdge) {
  for (const double far : {50.0, 700.0, 2000.0, 1e300}) {
    const Relaxed forms("Softmax", {-far, 0, far}, {-far + 1, 1, far + 1});
    EXPECT_NEAR(forms.lower(2, {-far, 0.5, far}), 1, 1e-12) << far;
    EXPECT_NEAR(forms.upper(0, {-far, 0.5, far}), 0, 1e-12) << far;
    EXPECT_GE(forms.upper(2, {-far, 1, far}), 1 - 1e-15) << far;
  }
  const Relaxed wide("Softmax", {-1e308, -1e308}, {1e308, 1e308});
  EXPECT_TRUE(wide.offered());
  const Relaxed one("LogSoftmax", {3}, {5});
  EXPECT_EQ(one.upper(0, {4}), 0);
  EXPECT_EQ(one.lower(0, {4}), 0);
}

}  // namespace
}  // namespace lipscope
