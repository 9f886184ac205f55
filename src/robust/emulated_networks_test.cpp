// SPDX-License-Identifier: Apache-2.0
// Bounds of the rounding of inference, and decisions that hold for it, against networks run in the
// formats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "lipscope/arrays.h"
#include "lipscope/model.h"
#include "lipscope/robustness.h"
#include "lipscope/select.h"
#include "tests/support/emulator.h"

namespace lipscope {
namespace {

using namespace testing_support;
using Type = ElementType;

std::vector<InferenceFormat> every_format() {
  std::vector<InferenceFormat> all;
  for (const Type values : {Type::kFloat16, Type::kBFloat16, Type::kFloat32}) {
    for (const Type sums : {Type::kFloat16, Type::kBFloat16, Type::kFloat32}) {
      for (const bool flush : {false, true}) all.push_back({values, sums, flush});
    }
  }
  return all;
}

Reals numbers(Rng& rng, std::size_t count, double scale) {
  Reals made(count);
  for (double& x : made)
    x = static_cast<float>(scale * std::uniform_real_distribution<double>(-1, 1)(rng));
  return made;
}

std::vector<Interval> real_values(const Graph& graph, const Reals& x) {
  std::vector<Box> boxes;
  for (const Tensor& tensor : split_inputs(graph, x)) boxes.push_back({tensor, tensor});
  ValueBoxes values(graph, boxes);
  const Box& out = values.at(graph.outputs()[0]);
  std::vector<Interval> found;
  for (std::size_t i = 0; i < out.lower.doubles().size(); ++i)
    found.push_back({out.lower.doubles()[i], out.upper.doubles()[i]});
  return found;
}

// The step of norm 1 that goes furthest along g.
Reals steepest_step(const Reals& g, const Norm& norm) {
  Reals step(g.size(), 0);
  const auto largest = static_cast<std::size_t>(
      std::ranges::max_element(g, {}, [](double e) { return std::fabs(e); }) - g.begin());
  double length = 0;
  for (const double e : g) length = std::hypot(length, e);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double side = std::copysign(1.0, g[i]);
    step[i] = norm.p() == 1   ? (i == largest ? side : 0)
              : norm.p() == 2 ? (length > 0 ? g[i] / length : 0)
                              : side;
  }
  return step;
}
Reals random_step(const Norm& norm, std::size_t size, Rng& rng) {
  Reals g(size);
  for (double& e : g) e = std::normal_distribution<double>()(rng);
  if (norm.p() == 1 && rng() % 2 == 0) {  // inside a face
    double sum = 0;
    for (const double e : g) sum += std::fabs(e);
    for (double& e : g) e /= sum;
    return g;
  }
  if (!std::isinf(norm.p()) || rng() % 2 == 0) return steepest_step(g, norm);
  for (double& e : g) e = std::uniform_real_distribution<double>(-1, 1)(rng);
  return g;
}
// Not quite to the end of the step: the ball is that of real numbers.
Reals moved_by(const Reals& center, double radius, const Reals& step) {
  Reals x = center;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += 0.9999 * radius * step[i];
  return x;
}

struct Tally {
  int said = 0, all = 0;
  double closest = 0;  // of an error to its bound
};

// Every computed output lies within its bound of the real one.
void attack(const EmulatedGraph& net, const Reals& center, double radius, const Norm& norm,
            const InferenceFormat& format, Rng& rng, Tally& tally) {
  const Graph& graph = net.graph;
  const Reals bound = inference_error(graph, graph.outputs()[0], format, norm)(center, radius);
  tally.all += static_cast<int>(bound.size());
  const auto said = std::ranges::count_if(bound, [](double b) { return b < kInf; });
  tally.said += static_cast<int>(said);
  if (said == 0) return;
  for (const Habits& habits : all_habits(format)) {
    const Reals x = moved_by(center, radius, random_step(norm, center.size(), rng));
    const std::vector<Interval> real = real_values(graph, x);
    const Reals seen = emulate(net, x, habits);
    for (std::size_t i = 0; i < bound.size(); ++i) {
      if (!(bound[i] < kInf)) continue;
      ASSERT_TRUE(std::isfinite(seen[i])) << "way " << habits.way;
      ASSERT_LE(seen[i], add_up(real[i].hi, bound[i])) << "way " << habits.way;
      ASSERT_GE(seen[i], sub_down(real[i].lo, bound[i])) << "way " << habits.way;
      if (bound[i] > 0)
        tally.closest = std::max(tally.closest, std::fabs(seen[i] - midpoint(real[i])) / bound[i]);
    }
  }
}

using Build = ValueId (*)(EmulatedMaker&, ValueId, Rng&, double);

// x has shape [1, 2, 4, 4]; the number is the size of stored numbers.
ValueId flat(EmulatedMaker& m, ValueId x) { return m.node("Flatten", {x}); }
double attribute(Rng& rng, double size) { return numbers(rng, 1, size)[0]; }

struct StepCase {
  const char* name;
  Build build;
};
const StepCase kSteps[] = {
    {"MatMul",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("MatMul", {flat(m, x), m.weights({32, 3}, numbers(rng, 96, size))});
     }},
    {"Gemm",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("Gemm",
                     {flat(m, x), m.weights({3, 32}, numbers(rng, 96, size)),
                      m.weights({3}, numbers(rng, 3, size))},
                     {{"transB", Index{1}}});
     }},
    {"GemmWithFactors",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       const double inverse = static_cast<float>(1 / size);
       return m.node("Gemm",
                     {flat(m, x), m.weights({32, 3}, numbers(rng, 96, size)),
                      m.weights({3}, numbers(rng, 3, size))},
                     {{"alpha", attribute(rng, inverse)}, {"beta", attribute(rng, 3)}});
     }},
    {"Conv",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("Conv",
                     {x, m.weights({3, 2, 3, 3}, numbers(rng, 54, size)),
                      m.weights({3}, numbers(rng, 3, size))},
                     {{"pads", std::vector<Index>{1, 1, 1, 1}}});
     }},
    {"ConvTranspose",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("ConvTranspose", {x, m.weights({2, 2, 3, 3}, numbers(rng, 36, size))});
     }},
    {"BatchNormalization",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       Reals variance = numbers(rng, 2, size);
       for (double& v : variance) v = std::fabs(v);
       return m.node("BatchNormalization",
                     {x, m.weights({2}, numbers(rng, 2, size)), m.weights({2}, numbers(rng, 2, 1)),
                      m.weights({2}, numbers(rng, 2, size)), m.weights({2}, variance)},
                     {{"epsilon", static_cast<double>(1e-3F)}}, 15);
     }},
    {"AveragePool",
     [](EmulatedMaker& m, ValueId x, Rng&, double) {
       return m.node(
           "AveragePool", {x},
           {{"kernel_shape", std::vector<Index>{3, 3}}, {"pads", std::vector<Index>{1, 1, 0, 0}}});
     }},
    {"GlobalAveragePool",
     [](EmulatedMaker& m, ValueId x, Rng&, double) { return m.node("GlobalAveragePool", {x}); }},
    {"ReduceMean",
     [](EmulatedMaker& m, ValueId x, Rng&, double) {
       return m.node("ReduceMean", {x}, {{"axes", std::vector<Index>{1, 2}}});
     }},
    {"ReduceSum",
     [](EmulatedMaker& m, ValueId x, Rng&, double) {
       return m.node("ReduceSum", {x}, {{"axes", std::vector<Index>{1, 2, 3}}}, 11);
     }},
    {"MaxPool",
     [](EmulatedMaker& m, ValueId x, Rng&, double) {
       return m.node("MaxPool", {x}, {{"kernel_shape", std::vector<Index>{2, 2}}});
     }},
    {"Div",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("Div", {x, m.weights({2, 1, 1}, numbers(rng, 2, size))});
     }},
    {"Mul",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("Mul", {x, m.weights({2, 1, 1}, numbers(rng, 2, size))});
     }},
    {"Square",
     [](EmulatedMaker& m, ValueId x, Rng&, double) {
       return m.node("Mul", {x, x});
     }},
    {"SubAndAdd",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       const ValueId c = m.weights({2, 1, 1}, numbers(rng, 2, size));
       return m.node("Add", {m.node("Sub", {x, c}), c});
     }},
    {"Sum",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("Sum", {x, m.weights({2, 1, 1}, numbers(rng, 2, size)),
                             m.weights({4}, numbers(rng, 4, size))});
     }},
    {"ComputedConstant",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       const ValueId c = m.weights({4}, numbers(rng, 4, size));
       const ValueId difference =
           m.node("Sub", {m.node("Add", {c, m.weights({}, {size})}), m.weights({}, {size})});
       return m.node("Mul", {x, difference});
     }},
    {"LeakyRelu",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("LeakyRelu", {x}, {{"alpha", attribute(rng, size)}});
     }},
    {"HardSigmoid",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("HardSigmoid", {x},
                     {{"alpha", attribute(rng, size)}, {"beta", attribute(rng, 1)}});
     }},
    {"Elu",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("Elu", {x}, {{"alpha", attribute(rng, size)}});
     }},
    {"Clip",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       const double low = -std::fabs(attribute(rng, size));
       return m.node("Clip", {x}, {{"min", low}, {"max", std::fabs(attribute(rng, size))}}, 6);
     }},
    {"Tanh", [](EmulatedMaker& m, ValueId x, Rng&, double) { return m.node("Tanh", {x}); }},
    {"Sigmoid", [](EmulatedMaker& m, ValueId x, Rng&, double) { return m.node("Sigmoid", {x}); }},
    {"Relu", [](EmulatedMaker& m, ValueId x, Rng&, double) { return m.node("Relu", {x}); }},
    {"AbsAndNeg",
     [](EmulatedMaker& m, ValueId x, Rng&, double) { return m.node("Neg", {m.node("Abs", {x})}); }},
    {"Sqrt", [](EmulatedMaker& m, ValueId x, Rng&,
                double) { return m.node("Sqrt", {m.node("Abs", {x})}); }},
    {"Concat",
     [](EmulatedMaker& m, ValueId x, Rng& rng, double size) {
       return m.node("Concat", {x, m.weights({1, 1, 4, 4}, numbers(rng, 16, size))},
                     {{"axis", Index{1}}});
     }},
};

class StepKinds : public testing::TestWithParam<StepCase> {};

TEST_P(StepKinds, ResultsLieWithinTheirBounds) {
  Rng rng(11);
  // Sizes of inputs and of stored numbers; beyond float16, and beyond everything.
  const double sizes[] = {1, 0x1p-9, 0x1p-16, 0x1p-23, 0x1p8, 0x1p14, 0x1p16, 0x1p-70, 0x1p66};
  Tally tally;
  for (const InferenceFormat& format : every_format()) {
    for (const double x_size : sizes) {
      for (const double size : {sizes[rng() % 9], sizes[rng() % 9]}) {
        EmulatedMaker m;
        const ValueId x = m.input({1, 2, 4, 4});
        const EmulatedGraph net = m.done(GetParam().build(m, x, rng, size));
        const Reals center = numbers(rng, 32, x_size);
        const Norm norm = std::vector{Norm::infinity(), Norm(2), Norm(1)}[rng() % 3];
        attack(net, center, rng() % 2 == 0 ? 0 : 0.01 * x_size, norm, format, rng, tally);
        if (HasFatalFailure()) {
          FAIL() << to_string(format.values) << " sums " << to_string(format.sums) << " flush "
                 << format.flush_to_zero << " input " << x_size << " stored " << size << " norm "
                 << norm.name();
        }
      }
    }
  }
  EXPECT_GT(tally.said, tally.all / 5);
  EXPECT_TRUE(tally.closest == 0 || tally.closest > 0.05) << tally.closest;
}
INSTANTIATE_TEST_SUITE_P(All, StepKinds, testing::ValuesIn(kSteps),
                         [](const auto& step) { return std::string(step.param.name); });

// A classifier with a final operator or without one.
EmulatedGraph random_network(Rng& rng, int kind, const std::string& last) {
  EmulatedMaker m;
  ValueId x = m.input({1, 2, 4, 4});
  if (kind % 3 == 0) {
    x = m.node(
        "Conv",
        {x, m.weights({3, 2, 3, 3}, numbers(rng, 54, 0.5)), m.weights({3}, numbers(rng, 3, 1))},
        {{"strides", std::vector<Index>{1, 1}}});
    x = m.node("BatchNormalization",
               {x, m.weights({3}, numbers(rng, 3, 1)), m.weights({3}, numbers(rng, 3, 1)),
                m.weights({3}, numbers(rng, 3, 1)), m.weights({3}, {0.5, 1, 2})},
               {{"epsilon", static_cast<double>(1e-5F)}}, 15);
    x = m.node(kind % 2 == 0 ? "Relu" : "Tanh", {x});
    x = m.node("MaxPool", {x}, {{"kernel_shape", std::vector<Index>{2, 2}}});
    x = flat(m, x);
  } else {
    x = m.node("Div", {m.node("Sub", {x, m.weights({}, {0.25})}), m.weights({2, 1, 1}, {0.3, 2})});
    x = m.node("LeakyRelu", {x}, {{"alpha", static_cast<double>(0.1F)}});
    x = kind % 3 == 1 ? m.node("GlobalAveragePool", {x}) : x;
    x = flat(m, x);
  }
  const Index width = m.shape(x)[1];
  x = m.node("Gemm",
             {x, m.weights({4, width}, numbers(rng, static_cast<std::size_t>(4 * width), 1)),
              m.weights({4}, numbers(rng, 4, 1))},
             {{"transB", Index{1}}, {"alpha", kind % 2 == 0 ? 1.0 : 1.5}});
  if (!last.empty()) x = m.node(last, {x});
  return m.done(x);
}

// Directions in which the output of each rival gains on the winner's, in real numbers.
std::vector<Reals> against(const Graph& graph, const Reals& center, std::size_t winner,
                           double step) {
  const auto values = [&](const Reals& x) {
    Reals middle;
    for (const Interval& e : real_values(graph, x)) middle.push_back(midpoint(e));
    return middle;
  };
  const Reals here = values(center);
  std::vector<Reals> found(here.size(), Reals(center.size()));
  for (std::size_t i = 0; i < center.size(); ++i) {
    Reals x = center;
    x[i] += step;
    const Reals there = values(x);
    for (std::size_t j = 0; j < here.size(); ++j)
      found[j][i] = (there[j] - here[j]) - (there[winner] - here[winner]);
  }
  found.erase(found.begin() + static_cast<std::ptrdiff_t>(winner));
  return found;
}

// Every input within a proved radius has the proved class, whatever the runtime does.
void expect_decisions_hold(const EmulatedGraph& net, const Reals& center, const Decision& decision,
                           const InferenceFormat& format, const Norm& norm, Rng& rng) {
  const auto winner = static_cast<std::size_t>(decision.predicted);
  std::vector<Reals> steps{Reals(center.size(), 0)};
  for (const Reals& g : against(net.graph, center, winner, 0.01 * decision.radius))
    steps.push_back(steepest_step(g, norm));
  for (const Habits& habits : all_habits(format)) {
    std::vector<Reals> all = steps;
    for (int k = 0; k < 2; ++k) all.push_back(random_step(norm, center.size(), rng));
    for (const Reals& step : all) {
      const Reals seen = emulate(net, moved_by(center, decision.radius, step), habits);
      for (std::size_t j = 0; j < seen.size(); ++j) {
        ASSERT_TRUE(j == winner || seen[winner] > seen[j]) << "way " << habits.way;
      }
    }
  }
}

// A network and its logits.
struct Classifier {
  EmulatedGraph net;
  Selected logits;
};
Classifier random_classifier(Rng& rng, int kind) {
  const std::string last = std::vector<std::string>{
      "", "Softmax", "LogSoftmax", "Sigmoid"}[static_cast<std::size_t>(kind / 3 % 4)];
  EmulatedGraph net = random_network(rng, kind, last);
  EXPECT_EQ(final_squash(net.graph) != nullptr, !last.empty());
  Selection selection;
  selection.logits = !last.empty();
  Selected logits = select(net.graph, selection);
  return {std::move(net), std::move(logits)};
}

// Attacks the radius of the class that is right, after `looks` of a search around the sample.
bool attack_radius(const Classifier& c, const InferenceFormat& format, const Norm& norm,
                   const Reals& center, int looks, Rng& rng) {
  Certifier certifier(c.logits.graph, {.norm = norm,
                                       .parts = looks,
                                       .margins_needed = inference_margins(
                                           c.net.graph, final_squash(c.net.graph), format, norm)});
  certifier.find_constants(std::chrono::duration<double>(0.01), {});
  for (Index label = 0; label < 4; ++label) {
    Decision found = certifier.decide(center, std::vector<Index>{label})[0];
    if (looks > 0) certifier.improve(center, found, [] { return false; });
    if (!(found.radius > 0)) continue;
    expect_decisions_hold(c.net, center, found, format, norm, rng);
    return true;
  }
  return false;
}

const Norm kNorms[] = {Norm::infinity(), Norm(2), Norm(1)};

TEST(InferenceDecisions, HoldForNetworksRunInTheFormat) {
  Rng rng(29);
  int proved = 0;
  for (int kind = 0; kind < 24; ++kind) {
    const Classifier c = random_classifier(rng, kind);
    for (const InferenceFormat& format : every_format()) {
      const Reals center = numbers(rng, 32, kind % 5 == 0 ? 30 : 1);
      const Norm& norm = kNorms[rng() % 3];
      proved += attack_radius(c, format, norm, center, 0, rng) ? 1 : 0;
      ASSERT_FALSE(HasFatalFailure())
          << kind << " " << to_string(format.values) << " norm " << norm.name();
    }
  }
  EXPECT_GT(proved, 60);
}

// Bounds around the sample leave less room: the rounding is all that is between radius and rival.
TEST(InferenceDecisions, HoldForLocalRadii) {
  Rng rng(37);
  int proved = 0;
  for (int kind = 0; kind < 12; ++kind) {
    const Classifier c = random_classifier(rng, kind);
    for (const InferenceFormat& format : {InferenceFormat{Type::kFloat16, Type::kFloat16},
                                          InferenceFormat{Type::kBFloat16, Type::kFloat32},
                                          InferenceFormat{Type::kFloat32, Type::kFloat32, true}}) {
      for (const Norm& norm : kNorms) {
        const Reals center = numbers(rng, 32, 1);
        proved += attack_radius(c, format, norm, center, 20, rng) ? 1 : 0;
        ASSERT_FALSE(HasFatalFailure())
            << kind << " " << to_string(format.values) << " norm " << norm.name();
      }
    }
  }
  EXPECT_GT(proved, 30);
}

// The models that come with the project, at the first test images.
TEST(InferenceDecisions, HoldForTheBundledModels) {
  Rng rng(31);
  const std::string models = LIPSCOPE_MODELS;
  const Tensor image = read_array(models + "/fashion_image.npy");
  Reals center;
  for (Index i = 0; i < image.size(); ++i) center.push_back(image.at(i));
  for (const char* name : {"fashion_mlp.onnx", "fashion_cnn.onnx"}) {
    const OnnxModel model = OnnxModel::read(models + "/" + name);
    const EmulatedGraph net{model.graph({}), {}};
    const std::vector<Interval> real = real_values(net.graph, center);
    double largest = 0;
    for (const Interval& logit : real) largest = std::max(largest, magnitude(logit));
    for (const InferenceFormat& format : {InferenceFormat{Type::kFloat16, Type::kFloat32},
                                          InferenceFormat{Type::kFloat32, Type::kFloat32, true}}) {
      const auto error =
          inference_error(net.graph, net.graph.outputs()[0], format, Norm::infinity());
      const Reals bound = error(center, 0);
      std::vector<Habits> habits = all_habits(format);
      std::ranges::shuffle(habits, rng);
      habits.resize(4);
      for (const Habits& h : habits) {
        const Reals seen = emulate(net, center, h);
        for (std::size_t i = 0; i < seen.size(); ++i) {
          ASSERT_LT(bound[i], largest);
          ASSERT_LE(seen[i], add_up(real[i].hi, bound[i]));
          ASSERT_GE(seen[i], sub_down(real[i].lo, bound[i]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace lipscope
