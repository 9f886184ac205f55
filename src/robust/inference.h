// SPDX-License-Identifier: Apache-2.0
// How far a model computed in a floating-point format is from its real-valued function
// [robustness-6].
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lipscope/graph.h"
#include "lipscope/norm.h"
#include "lipscope/robustness.h"
#include "machine/step.h"

namespace lipscope {

class InferenceError {
 public:
  // Borrows the graph. `last` is the value of interest. Throws kUnsupported, with the node, for an
  // operator that does not tell how it is computed, and for formats other than float32, float16 and
  // bfloat16.
  InferenceError(const Graph& graph, ValueId last, const InferenceFormat& format);
  ~InferenceError();

  // The entries of the value for every input of the ball; errors are infinity where an overflow or
  // an invalid operation cannot be excluded.
  [[nodiscard]] std::vector<Computed> at(std::span<const double> center, double radius,
                                         const Norm& norm) const;
  [[nodiscard]] const Machine& machine() const noexcept { return machine_; }

 private:
  struct Step {
    const Node* node;
    std::size_t output;
    std::unique_ptr<const MachineStep> made;
  };
  [[nodiscard]] std::vector<Box> ball_boxes(std::span<const double> center, double radius,
                                            const Norm& norm) const;
  void add_step(const Node& node, std::size_t output);

  const Graph& graph_;
  ValueId last_;
  Machine machine_;
  std::vector<Step> steps_;
  std::vector<std::vector<double>> constants_;  // errors by value; empty for those that vary
};

}  // namespace lipscope
