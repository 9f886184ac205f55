// SPDX-License-Identifier: Apache-2.0
// Element types as attributes name them: TensorProto.DataType's numbers, or their names in opset 1.
#pragma once

#include "ops/onnx_node.h"

namespace lipscope {

// Both throw kUnsupported, naming the node, for types that are not held here.
[[nodiscard]] ElementType element_type_of_code(const OnnxNode& node, Index code);
[[nodiscard]] ElementType element_type_of_name(const OnnxNode& node, const std::string& name);

}  // namespace lipscope
