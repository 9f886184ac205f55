// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/op.h"

namespace lipscope {

// What a Pad adds (or, negative, takes away) before and behind each axis. Modes as ONNX names them.
struct Padding {
  std::vector<Index> begin, end;
  std::string mode;
  double fill = 0;
};

// Nothing for any other operator.
[[nodiscard]] std::optional<Padding> as_padding(const Op& op);

}  // namespace lipscope
