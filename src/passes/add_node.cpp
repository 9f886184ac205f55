// SPDX-License-Identifier: Apache-2.0
#include "passes/add_node.h"

#include "ops/kind.h"

namespace lipscope {

ValueId add_node(GraphBuilder& builder, const std::string& type, const std::vector<ValueId>& inputs,
                 const std::string& name, Attributes attributes, int opset,
                 const std::vector<std::string>& output_names) {
  std::vector<std::optional<NodeInput>> infos;
  for (const ValueId id : inputs) infos.push_back(NodeInput::of(builder.value(id)));
  const Imported made =
      find_op_kind(type)->import(OnnxNode(type, opset, std::move(attributes), infos));
  std::vector<ValueId> uses;
  for (const Index k : made.uses) uses.push_back(inputs[static_cast<std::size_t>(k)]);
  return builder.add(made.op, uses, name, output_names)[0];
}

ValueId reshaped(GraphBuilder& builder, ValueId x, const Shape& shape) {
  const Value& value = builder.value(x);
  if (value.type.shape == shape) return x;
  const std::string name = value.name + "/reshaped";
  const auto rank = static_cast<Index>(shape.size());
  const ValueId target = builder.constant(name + "/shape", Tensor::integers({rank}, shape));
  return add_node(builder, "Reshape", {x, target}, name);
}

}  // namespace lipscope
