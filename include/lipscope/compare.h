// SPDX-License-Identifier: Apache-2.0
// Outputs against a reference.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lipscope/arrays.h"

namespace lipscope {

struct Comparison {
  bool agrees = true;
  double max_error = 0;  // largest |output - reference| / max(1, largest finite |reference entry|)
  std::string reason;    // the first difference
};

// Entry by entry: a difference of at most `tolerance` times the largest reference entry (at least
// 1) agrees; NaN and infinities have to match exactly.
[[nodiscard]] Comparison compare_tensors(const std::string& name, const Tensor& output,
                                         const Tensor& reference, double tolerance);

// Each output with the array of its name or "output_0", "output_1", ...; throws kBadFile when there
// is none.
[[nodiscard]] Comparison compare_outputs(std::span<const std::string> names,
                                         std::span<const Tensor> outputs,
                                         std::span<const NamedTensor> references, double tolerance);

// Entries brought to the tensor's own element type, which is computed wider: float16 by rounding to
// nearest, bfloat16 by cutting.
[[nodiscard]] Tensor rounded_to_type(const Tensor& tensor);

}  // namespace lipscope
