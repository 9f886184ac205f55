// SPDX-License-Identifier: Apache-2.0
#include "robust/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "lipscope/error.h"
#include "lipscope/robustness.h"
#include "ops/box.h"
#include "ops/elementwise.h"
#include "pieces/small.h"
#include "robust/batch_norm_rounding.h"
#include "robust/sum_rounding.h"

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

struct SparseEntry {
  Index column;
  double lower, upper;  // of the real coefficient
  double drift;         // how far the computed one is off
};
using SparseRows = std::vector<std::vector<SparseEntry>>;

// Where no coefficient is stored, and where it is the file's number as it is.
const std::set<std::string_view> kUnitCoefficients = {"Add", "Sub", "Sum", "Concat"};
const std::set<std::string_view> kStoredCoefficients = {"MatMul", "Conv", "Mul"};

// Roundings of results besides those of the sum: into the format, scaling, the bias; one more for
// what they do to each other.
double extra_roundings(std::string_view name, bool scaled) {
  if (kMeans.contains(name)) return 4;
  if (name == "Conv" || name == "Gemm") return scaled ? 5 : 3;
  return 2;
}

double largest_entry(const Box& box) {
  double largest = 0;
  for (std::size_t i = 0; i < box.lower.doubles().size(); ++i)
    largest = std::max(largest, magnitude({box.lower.doubles()[i], box.upper.doubles()[i]}));
  return largest;
}

}  // namespace

struct InferenceError::Step {
  enum class Kind { kSum, kMean, kMove, kFunction, kExactFunction, kLargest, kBatchNorm };
  const Node* node = nullptr;
  Kind kind = Kind::kSum;
  // For sums: by input that varies, and the absolute values at 0.
  std::vector<std::pair<std::size_t, SparseRows>> parts = {};
  std::vector<double> constant = {};
  std::vector<bool> overflows = {};  // a coefficient is beyond the format
  double factor = 1;                 // of Gemm: what multiplies stored numbers, at most; at least 1
  double shrink = 1;                 // how much larger sums are before it, at most; at least 1
  bool scaled = false;               // such a factor is there
  std::optional<BatchNormRounding> batch_norm = {};
};

InferenceError::InferenceError(const Graph& graph, ValueId last, const InferenceFormat& format)
    : graph_(graph),
      last_(last),
      format_(NumberFormat::of(format.values)),
      sums_(NumberFormat::of(format.sums)) {
  if (sums_.unit > format_.unit)
    throw Error(ErrorCode::kUsage, "sums cannot be less precise than what they are rounded to");
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
  if (name == "BatchNormalization") {
    for (std::size_t k = 1; k < node.inputs.size(); ++k) {
      if (!graph_.value(node.inputs[k]).constant) refuse("parameters that vary are not known");
    }
    step->kind = Kind::kBatchNorm;
    step->batch_norm.emplace(graph_, node, format_);
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
      boxes.push_back(value.constant->box());
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
  // What multiplies stored numbers multiplies their errors, too; sums are taken before it does.
  const auto see_factor = [&](std::size_t stored, double largest) {
    const double from = largest_entry(boxes[stored]);
    if (largest == from) return;
    step->scaled = true;
    const double slack = 1 + 0x1p-20;
    if (from > 0) step->factor = std::max(step->factor, mul_up(slack, div_up(largest, from)));
    step->shrink =
        largest > 0 ? std::max(step->shrink, mul_up(slack, div_up(from, largest))) : kInf;
  };
  if (name == "Gemm" && node.inputs.size() > 2) see_factor(2, largest_entry(offset));
  step->overflows.assign(outputs, false);
  Index varying = 0;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (graph_.value(node.inputs[k]).constant) continue;
    ++varying;
    if (name == "Gemm" && k > 1) refuse("a bias that varies is not known");
    SparseRows rows(outputs);
    double largest = 0;
    const bool affine =
        node.op->matrix({.in = boxes, .wrt = static_cast<Index>(k), .output = 0},
                        [&](Index row, Index column, double lower, double upper) {
                          rows[lipscope::at(row)].push_back({column, lower, upper, 0});
                          largest = std::max(largest, magnitude({lower, upper}));
                        });
    if (!affine) refuse("no matrix is known");
    if (name == "Gemm") see_factor(1 - k, largest);
    for (std::size_t i = 0; i < outputs; ++i) {
      auto& row = rows[i];
      const auto beyond = [&](const SparseEntry& entry) {
        return !(mul_up(magnitude({entry.lower, entry.upper}), step->shrink) < format_.most);
      };
      if (step->kind != Kind::kMove && std::ranges::any_of(row, beyond)) step->overflows[i] = true;
      // A coefficient that comes in pieces is not rounded piece by piece.
      std::ranges::sort(row, {}, &SparseEntry::column);
      const bool pieces = std::ranges::adjacent_find(row, {}, &SparseEntry::column) != row.end();
      for (SparseEntry& entry : row) entry.drift = drift(*step, entry.lower, entry.upper, pieces);
    }
    step->parts.emplace_back(k, std::move(rows));
  }
  if (varying > 1 && name != "Add" && name != "Sub" && name != "Sum" && name != "Concat")
    refuse("two inputs that vary are not known");
  if (name == "Sum" && std::ssize(node.inputs) > varying + 1)
    refuse("several constants, which may cancel, are not known");
  // A divisor below the normal numbers of the format could be rounded to something quite different.
  if (name == "Div") {
    const Box& divisor = boxes[1];
    for (std::size_t i = 0; i < divisor.lower.doubles().size(); ++i) {
      if (!(mignitude({divisor.lower.doubles()[i], divisor.upper.doubles()[i]}) >=
            format_.tiny / format_.unit))
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
  return add_up(moved, add_up(mul_up(2 * kUlps * format_.unit, size), 2 * kUlps * format_.tiny));
}

double InferenceError::drift(const Step& step, double lower, double upper, bool piece) const {
  const std::string_view name = step.node->op->name();
  if (step.kind == Step::Kind::kMove || kUnitCoefficients.contains(name)) return 0;
  const bool stored = kStoredCoefficients.contains(name) || (name == "Gemm" && !step.scaled);
  const double nearest = round_to(format_.type, lower);
  if (stored && !piece && lower == upper && std::isfinite(nearest))
    return std::fabs(sub_up(std::max(nearest, lower), std::min(nearest, lower)));
  // A quotient by a rounded number is off by up to u / (1 - u).
  const double size = magnitude({lower, upper});
  return add_up(mul_up(2 * format_.unit, size), mul_up(step.factor, format_.tiny));
}

double InferenceError::sum_error(const Step& step, std::size_t i, Run& run) const {
  constexpr double kSlack = 1 + 0x1p-20;  // of sums and products of positive numbers
  const double tiny = step.factor * format_.tiny;
  if (step.overflows[i]) return kInf;
  double moved = 0, drifted = 0, products = 0, plain = 0;
  SumTerms terms;
  std::size_t count = 0;
  for (const auto& [k, rows] : step.parts) {
    const ValueId in = step.node->inputs[k];
    const Box& box = run.boxes.at(in);
    const auto low = box.lower.doubles(), high = box.upper.doubles();
    const std::vector<double>& errors = run.error[in.index];
    terms.sizes.reserve(terms.sizes.size() + rows[i].size() + 1);
    count += rows[i].size();
    for (const SparseEntry& entry : rows[i]) {
      const std::size_t j = lipscope::at(entry.column);
      const double before = errors[j], most = std::max(-low[j], high[j]) + before;
      if (most == 0) continue;  // a product of zero is zero
      const double size = std::max(-entry.lower, entry.upper);
      const double product = (size + entry.drift) * most;
      const double rounding = sums_.unit * product + tiny;
      moved += size * before;
      drifted += entry.drift * most;
      products += rounding;
      plain += most;
      // What the sign of the real term leaves of it, and the rest on either side.
      const double rest = size * before + entry.drift * most + rounding;
      terms.plus += std::max({0.0, entry.lower * low[j], entry.lower * high[j],
                              entry.upper * low[j], entry.upper * high[j]}) +
                    rest;
      terms.minus += std::max({0.0, -entry.lower * low[j], -entry.lower * high[j],
                               -entry.upper * low[j], -entry.upper * high[j]}) +
                     rest;
      terms.sizes.push_back((product + rounding) * kSlack);
    }
  }
  moved = add_up(mul_up(moved, kSlack), 0x1p-1000);
  if (step.kind == Step::Kind::kMove) return moved;
  const double constant = step.constant[i];
  const double constant_drift =
      add_up(mul_up(2 * format_.unit, constant), mul_up(step.factor, format_.tiny));
  const double offset = constant > 0 ? add_up(constant, constant_drift) : 0;
  if (offset > 0) terms.sizes.push_back(offset);
  terms.plus = add_up(mul_up(terms.plus, kSlack), offset);
  terms.minus = add_up(mul_up(terms.minus, kSlack), offset);
  const double added = sum_rounding(terms, sums_.unit);
  const double partial = add_up(std::max(terms.plus, terms.minus), added);
  // Partial sums, with their errors, stay inside the format; those of means are not divided yet.
  const double largest = step.kind == Step::Kind::kMean ? std::max(partial, 2 * plain) : partial;
  if (!(mul_up(mul_up(2, largest), step.shrink) < format_.most)) return kInf;
  const double results =
      mul_up(mul_up(extra_roundings(step.node->op->name(), step.scaled), format_.unit), partial);
  const double underflow =
      mul_up(mul_up(2 * (static_cast<double>(count) + 4), step.factor), format_.tiny);
  const double constants = add_up(mul_up(add_up(drifted, products), kSlack), constant_drift);
  return add_up(add_up(moved, constants), add_up(add_up(added, results), underflow));
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
      run.error[id.index].push_back(run.size(id, i) == 0 ? 0 : format_.error_of(run.size(id, i)));
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
      } else if (step->kind == Step::Kind::kBatchNorm) {
        const ValueId in = node.inputs[0];
        result[i] = step->batch_norm->error(i, run.size(in, i), run.error[in.index][i]);
      } else if (step->kind != Step::Kind::kLargest) {
        result[i] = sum_error(*step, i, run);
      }
      if (!(add_up(run.size(out, i), result[i]) < format_.most)) result[i] = kInf;
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
