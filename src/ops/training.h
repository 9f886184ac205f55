// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/onnx_node.h"

namespace lipscope {

// Why a Dropout or BatchNormalization cannot be run for inference, as far as its attributes and
// constant inputs tell; empty for any other node.
[[nodiscard]] std::string training_obstacle(const OnnxNode& node);

}  // namespace lipscope
