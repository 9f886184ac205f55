// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax, row by row.
#pragma once

#include <optional>

#include "lipscope/op.h"

namespace lipscope {

enum class SoftmaxResult { kProbabilities, kLogarithms };

// Op::softmax_rows.
class SoftmaxRows {
 public:
  virtual ~SoftmaxRows() = default;
  [[nodiscard]] virtual Index rows() const = 0;
  [[nodiscard]] virtual SoftmaxResult result() const = 0;
};

// What a Softmax or LogSoftmax of a single row gives; nothing for any other operator.
[[nodiscard]] inline std::optional<SoftmaxResult> single_softmax(const Op& op) {
  const SoftmaxRows* softmax = op.softmax_rows();
  return softmax != nullptr && softmax->rows() == 1 ? std::optional(softmax->result())
                                                    : std::nullopt;
}

// Whether any two outputs differ by as much as the inputs of the same places: a LogSoftmax of a
// single row.
[[nodiscard]] inline bool keeps_differences(const Op& op) {
  return single_softmax(op) == SoftmaxResult::kLogarithms;
}

}  // namespace lipscope
