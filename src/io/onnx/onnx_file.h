// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "io/onnx/onnx_proto.h"

namespace lipscope {

// Bytes of a file (gzip or not) to the model message; kBadFile with a hint when they are something
// else: empty, truncated, a PyTorch, Keras or TensorFlow file, an array.
[[nodiscard]] onnx::ModelProto parse_model_proto(std::span<const std::byte> bytes,
                                                 const std::string& name);

}  // namespace lipscope
