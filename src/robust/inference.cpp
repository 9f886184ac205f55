// SPDX-License-Identifier: Apache-2.0
#include "robust/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "lipscope/error.h"
#include "lipscope/robustness.h"
#include "ops/box.h"
#include "ops/elementwise.h"
#include "pieces/small.h"

namespace lipscope {
namespace {

// Sums of products with constants, in any order; the last ones divide after the sum.
const std::set<std::string_view> kSums = {"Gemm",
                                          "MatMul",
                                          "Conv",
                                          "Add",
                                          "Sub",
                                          "Mul",
                                          "Div",
                                          "Sum",
                                          "Concat",
                                          "AveragePool",
                                          "GlobalAveragePool",
                                          "ReduceMean"};
const std::set<std::string_view> kMeans = {"AveragePool", "GlobalAveragePool", "ReduceMean"};
// Copies of entries.
const std::set<std::string_view> kMoves = {"Reshape", "Flatten",   "Transpose",
                                           "Squeeze", "Unsqueeze", "Identity",
                                           "Slice",   "Dropout",   "Gather"};
const std::set<std::string_view> kExactFunctions = {"Relu", "Abs", "Neg"};
const std::set<std::string_view> kFunctions = {"LeakyRelu", "Sigmoid", "Tanh"};
constexpr double kUlps = 4;  // error of functions of the library, at most

double unit_of(ElementType format) {
  switch (format) {
    case ElementType::kFloat32: return 0x1p-24;
    case ElementType::kFloat16: return 0x1p-11;
    case ElementType::kBFloat16: return 0x1p-8;
    default: throw Error(ErrorCode::kUnsupported, "inference in float32, float16 or bfloat16 only");
  }
}

struct SparseEntry {
  Index column;
  double size;  // |a|, rounded up
};
using SparseRows = std::vector<std::vector<SparseEntry>>;

}  // namespace

struct InferenceError::Step {
  enum class Kind { kSum, kMean, kMove, kFunction, kExactFunction, kLargest };
  const Node* node = nullptr;
  Kind kind = Kind::kSum;
  // For sums: by input that varies, and the absolute values at 0.
  std::vector<std::pair<std::size_t, SparseRows>> parts = {};
  std::vector<double> constant = {};
};

InferenceError::InferenceError(const Graph& graph, ValueId last, const InferenceFormat& format)
    : graph_(graph), last_(last), unit_(unit_of(format.values)), sum_unit_(unit_of(format.sums)) {
  if (sum_unit_ > unit_)
    throw Error(ErrorCode::kUsage, "sums cannot be less precise than what they are rounded to");
  switch (format.values) {
    case ElementType::kFloat16: tiny_ = 0x1p-25, most_ = 65504; break;
    case ElementType::kBFloat16: tiny_ = 0x1p-134, most_ = 0x1.fep127; break;
    default: tiny_ = 0x1p-150, most_ = 0x1.fffffep127;
  }
  std::vector<bool> needed(graph.values().size());
  needed[last.index] = true;
  const auto nodes = graph.nodes();
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const bool any =
        std::ranges::any_of(nodes[n].outputs, [&](ValueId v) { return needed[v.index]; });
    for (const ValueId v : nodes[n].inputs) needed[v.index] = needed[v.index] || any;
  }
  for (const Node& node : nodes) {
    if (needed[node.outputs[0].index]) add_step(node);
  }
}
InferenceError::~InferenceError() = default;

void InferenceError::add_step(const Node& node) {
  using Kind = Step::Kind;
  const std::string_view name = node.op->name();
  auto step = std::make_unique<Step>();
  step->node = &node;
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("node '{}': {} for operator {}; leave out --inference, or export the "
                            "model with that layer merged into its neighbours",
                            node.name, why, name));
  };
  if (kExactFunctions.contains(name) || kFunctions.contains(name)) {
    step->kind = kFunctions.contains(name) ? Kind::kFunction : Kind::kExactFunction;
    steps_.push_back(std::move(step));
    return;
  }
  if (name == "MaxPool" || name == "GlobalMaxPool") {
    step->kind = Kind::kLargest;
    steps_.push_back(std::move(step));
    return;
  }
  if (!kSums.contains(name) && !kMoves.contains(name)) refuse("no bound of its rounding is known");
  step->kind = kMoves.contains(name)   ? Kind::kMove
               : kMeans.contains(name) ? Kind::kMean
                                       : Kind::kSum;
  // The matrices hold wherever the other inputs are, so they must not depend on them.
  std::vector<Box> boxes;
  for (const ValueId id : node.inputs) {
    const Value& value = graph_.value(id);
    if (value.constant) {
      boxes.push_back(is_floating(value.type.type) ? constant_box(value)
                                                   : Box{*value.constant, *value.constant});
    } else {
      const Tensor zero = Tensor::zeros(ElementType::kFloat64, value.type.shape);
      boxes.push_back({zero, zero});
    }
  }
  const auto at_zero = node.op->range(boxes);
  if (!at_zero) refuse("no range is known");
  const Box& offset = (*at_zero)[0];
  const std::size_t outputs = offset.lower.doubles().size();
  for (std::size_t i = 0; i < outputs; ++i)
    step->constant.push_back(magnitude({offset.lower.doubles()[i], offset.upper.doubles()[i]}));
  Index varying = 0;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (graph_.value(node.inputs[k]).constant) continue;
    ++varying;
    SparseRows rows(outputs);
    const bool affine =
        node.op->matrix({.in = boxes, .wrt = static_cast<Index>(k), .output = 0},
                        [&](Index row, Index column, double lower, double upper) {
                          rows[lipscope::at(row)].push_back({column, magnitude({lower, upper})});
                        });
    if (!affine) refuse("no matrix is known");
    step->parts.emplace_back(k, std::move(rows));
  }
  if (varying > 1 && name != "Add" && name != "Sub" && name != "Sum" && name != "Concat")
    refuse("two inputs that vary are not known");
  // A divisor below the normal numbers of the format could be rounded to something quite different.
  if (name == "Div") {
    const Box& divisor = boxes[1];
    for (std::size_t i = 0; i < divisor.lower.doubles().size(); ++i) {
      if (!(mignitude({divisor.lower.doubles()[i], divisor.upper.doubles()[i]}) >= tiny_ / unit_))
        refuse("a divisor this small is not known");
    }
  }
  steps_.push_back(std::move(step));
}

// What is known of all values while a ball is looked at.
struct InferenceError::Run {
  ValueBoxes boxes;
  std::vector<std::vector<double>> error;  // by value

  [[nodiscard]] double size(ValueId id, std::size_t i) {
    const Box& box = boxes.at(id);
    return magnitude({box.lower.doubles()[i], box.upper.doubles()[i]});
  }
};

// A function of one entry.
double InferenceError::function_error(const Step& step, std::size_t i, Run& run) const {
  const ValueId in = step.node->inputs[0];
  const Box& box = run.boxes.at(in);
  const double before = run.error[in.index][i];
  const auto* phi = dynamic_cast<const Elementwise*>(step.node->op.get());
  if (phi == nullptr) return kInf;
  const auto slopes = phi->slopes(
      {sub_down(box.lower.doubles()[i], before), add_up(box.upper.doubles()[i], before)});
  if (!slopes) return kInf;
  const double moved = mul_up(magnitude(*slopes), before);
  if (step.kind == Step::Kind::kExactFunction) return moved;
  const double size = add_up(run.size(step.node->outputs[0], i), moved);
  return add_up(moved, add_up(mul_up(2 * kUlps * unit_, size), 2 * kUlps * tiny_));
}

double InferenceError::sum_error(const Step& step, std::size_t i, Run& run) const {
  constexpr double kSlack = 1 + 0x1p-20;  // of sums of positive numbers
  double moved = 0, weights = 0, sizes = 0, plain = 0;
  std::size_t terms = 0;
  for (const auto& [k, rows] : step.parts) {
    const ValueId in = step.node->inputs[k];
    for (const SparseEntry& entry : rows[i]) {
      const std::size_t j = lipscope::at(entry.column);
      const double before = run.error[in.index][j], most = run.size(in, j) + before;
      moved += entry.size * before;
      weights += (entry.size * unit_ + tiny_) * most;  // constants are rounded to the format, too
      sizes += (entry.size * (1 + unit_) + tiny_) * most;
      plain += most;
      ++terms;
    }
  }
  moved = add_up(mul_up(moved, kSlack), 0x1p-1000);
  if (step.kind == Step::Kind::kMove) return moved;
  const double roundings = static_cast<double>(terms) + 4;
  if (!(roundings * sum_unit_ < 0.5)) return kInf;
  // Four of the roundings are of the values' own format: of factors, and of the result.
  const double lost =
      add_up(div_up(mul_up(roundings, sum_unit_), sub_down(1, mul_up(roundings, sum_unit_))),
             sum_unit_ < unit_ ? mul_up(5, unit_) : 0);
  const double constant = step.constant[i];
  const double all = add_up(mul_up(sizes, kSlack), add_up(mul_up(constant, 1 + unit_), tiny_));
  // Partial sums, with their errors, stay inside the format.
  const double largest = mul_up(step.kind == Step::Kind::kMean ? std::max(all, plain) : all, 2);
  if (!(largest < most_)) return kInf;
  const double constants = add_up(mul_up(weights, kSlack), add_up(mul_up(unit_, constant), tiny_));
  return add_up(add_up(moved, constants), add_up(mul_up(lost, all), mul_up(2 * roundings, tiny_)));
}

std::vector<double> InferenceError::at(std::span<const double> center, double radius,
                                       const Norm& norm) const {
  Domain domain;
  domain.ball = Ball{Tensor::vector({center.begin(), center.end()}), radius, norm};
  Run run{ValueBoxes(graph_, input_boxes(graph_, domain)),
          std::vector<std::vector<double>>(graph_.values().size())};
  for (const ValueId id : graph_.inputs()) {
    const Index size = element_count(graph_.value(id).type.shape);
    for (std::size_t i = 0; i < lipscope::at(size); ++i)
      run.error[id.index].push_back(add_up(mul_up(unit_, run.size(id, i)), tiny_));
  }
  for (const auto& step : steps_) {
    const Node& node = *step->node;
    const ValueId out = node.outputs[0];
    std::vector<double>& result = run.error[out.index];
    result.assign(lipscope::at(element_count(graph_.value(out).type.shape)), kInf);
    if (step->kind == Step::Kind::kLargest) {
      const Shape& shape = graph_.value(node.inputs[0]).type.shape;
      const Tensor doubts(ElementType::kFloat64, shape, run.error[node.inputs[0].index]);
      const Box box{doubts, doubts};
      if (const auto largest = node.op->range(std::span(&box, 1))) {
        const auto upper = (*largest)[0].upper.doubles();
        result.assign(upper.begin(), upper.end());
      }
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
      const bool function =
          step->kind == Step::Kind::kFunction || step->kind == Step::Kind::kExactFunction;
      if (function) {
        result[i] = function_error(*step, i, run);
      } else if (step->kind != Step::Kind::kLargest) {
        result[i] = sum_error(*step, i, run);
      }
      if (!(add_up(run.size(out, i), result[i]) < most_)) result[i] = kInf;
    }
  }
  return run.error[last_.index];
}

LogitError inference_error(const Graph& graph, ValueId logits, const InferenceFormat& format,
                           const Norm& norm) {
  const auto error = std::make_shared<const InferenceError>(graph, logits, format);
  return [error, norm](std::span<const double> center, double radius) {
    return error->at(center, radius, norm);
  };
}

}  // namespace lipscope
