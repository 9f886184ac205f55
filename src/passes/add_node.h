// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lipscope/graph.h"
#include "ops/onnx_node.h"

namespace lipscope {

// Adds the ONNX operator `type`, as opset 13 has it. Inputs it needs only to be made (a shape,
// axes) do not become inputs of the node. Returns the first output.
ValueId add_node(GraphBuilder& builder, const std::string& type, const std::vector<ValueId>& inputs,
                 const std::string& name, Attributes attributes = {}, int opset = 13,
                 const std::vector<std::string>& output_names = {});

// Reshape to a known shape; the value itself when it has it.
ValueId reshaped(GraphBuilder& builder, ValueId x, const Shape& shape);

}  // namespace lipscope
