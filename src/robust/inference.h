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
#include "robust/number_format.h"

namespace lipscope {

class InferenceError {
 public:
  // Borrows the graph. `last` is the value of interest; sums are kept in a format of their own, at
  // least as precise, until their result is rounded. Throws kUnsupported, with the node, for an
  // operator whose rounding is not known here, and for formats other than float32, float16 and
  // bfloat16.
  InferenceError(const Graph& graph, ValueId last, const InferenceFormat& format);
  ~InferenceError();

  // By entry, for every input of the ball; infinity where an overflow cannot be excluded.
  [[nodiscard]] std::vector<double> at(std::span<const double> center, double radius,
                                       const Norm& norm) const;

 private:
  struct Step;
  struct Run;
  void add_step(const Node& node);
  // How far a coefficient can be off as computed; a piece of one is not rounded by itself.
  [[nodiscard]] double drift(const Step& step, double lower, double upper, bool piece) const;
  [[nodiscard]] double function_error(const Step& step, std::size_t i, Run& run) const;
  [[nodiscard]] double sum_error(const Step& step, std::size_t i, Run& run) const;

  const Graph& graph_;
  ValueId last_;
  NumberFormat format_, sums_;
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace lipscope
