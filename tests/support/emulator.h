// SPDX-License-Identifier: Apache-2.0
// Runs graphs as processors and runtimes do: in float32, float16 or bfloat16, operation by
// operation, with sums in many orders. Written from the formats and the operators' definitions,
// without the bounds it is used to attack.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lipscope/graph.h"
#include "lipscope/robustness.h"
#include "ops/kind.h"
#include "tests/support/graph_maker.h"

namespace lipscope::testing_support {

using Reals = std::vector<double>;

// What a runtime may choose.
struct Habits {
  InferenceFormat format;
  enum class Order { kForward, kBackward, kLargestFirst, kPairs, kBlocks, kTree } order = {};
  bool fused = false;      // products and additions in one rounding
  bool flushes = false;    // every subnormal number becomes zero
  int way = 0;             // among forms of a formula; any number
  std::uint64_t seed = 1;  // of the tree
};
// All orders, fused or not, a few ways.
[[nodiscard]] std::vector<Habits> all_habits(const InferenceFormat& format);

// One format's arithmetic: each result is the correctly rounded one.
class EmulatedFormat {
 public:
  EmulatedFormat(ElementType type, bool flushes);
  [[nodiscard]] double round(double x) const;  // of a number known exactly
  [[nodiscard]] double add(double a, double b) const;
  [[nodiscard]] double mul(double a, double b) const;
  [[nodiscard]] double div(double a, double b) const;
  [[nodiscard]] double fma(double a, double b, double c) const;
  [[nodiscard]] double sqrt(double a) const;

 private:
  [[nodiscard]] double operand(double x) const;
  ElementType type_;
  double normal_ = 0;  // results below it are zero
};

// A graph with what its operators do not tell.
struct EmulatedGraph {
  Graph graph;
  std::map<std::string, Attributes> attributes;  // by the name of the value made
};

class EmulatedMaker : public GraphMaker {
 public:
  ValueId node(const std::string& op, const std::vector<ValueId>& inputs,
               const Attributes& attributes = {}, int opset = 13) {
    const ValueId made = add(op, inputs, attributes, opset);
    attributes_[name(made)] = attributes;
    return made;
  }
  EmulatedGraph done(ValueId output) { return {finish(output), attributes_}; }

 private:
  std::map<std::string, Attributes> attributes_;
};

// The first output. Throws kUnsupported for operators it does not know.
[[nodiscard]] Reals emulate(const EmulatedGraph& net, const Reals& x, const Habits& habits);

}  // namespace lipscope::testing_support
