// SPDX-License-Identifier: Apache-2.0
// TensorProto to Tensor. Internal: the only headers that name protobuf types are in this folder.
#pragma once

#include <span>
#include <string>

#include "io/onnx/onnx_proto.h"
#include "lipscope/tensor.h"

namespace lipscope {

// kUnsupported for strings, complex, 8-bit and 4-bit floating types.
[[nodiscard]] ElementType element_type(int onnx_type);

// Throws kBadFile when sizes and data disagree. `folder`: where external data may be read from;
// empty: nowhere.
[[nodiscard]] Tensor to_tensor(const onnx::TensorProto& proto, const std::string& folder);

// A serialized TensorProto, as in the data sets of the ONNX backend tests.
[[nodiscard]] Tensor parse_tensor_proto(std::span<const std::byte> bytes);

}  // namespace lipscope
