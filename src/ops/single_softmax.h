// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax of a single row.
#pragma once

#include <optional>

#include "lipscope/op.h"

namespace lipscope {

enum class SingleSoftmax { kProbabilities, kLogarithms };

// Found by dynamic_cast.
class SoftmaxRows {
 public:
  virtual ~SoftmaxRows() = default;
  // What the operator gives; nothing for several rows.
  [[nodiscard]] virtual std::optional<SingleSoftmax> of_one_row() const = 0;
};

// What a Softmax or LogSoftmax of a single row gives; nothing for any other operator.
[[nodiscard]] inline std::optional<SingleSoftmax> single_softmax(const Op& op) {
  const auto* softmax = dynamic_cast<const SoftmaxRows*>(&op);
  return softmax == nullptr ? std::nullopt : softmax->of_one_row();
}

// Whether any two outputs differ by as much as the inputs of the same places: a LogSoftmax of a
// single row.
[[nodiscard]] inline bool keeps_differences(const Op& op) {
  return single_softmax(op) == SingleSoftmax::kLogarithms;
}

}  // namespace lipscope
