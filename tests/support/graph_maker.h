// SPDX-License-Identifier: Apache-2.0
// Small graphs made node by node through the operators' importers.
#pragma once

#include <string>
#include <vector>

#include "lipscope/graph.h"
#include "ops/kind.h"

namespace lipscope::testing_support {

class GraphMaker {
 public:
  ValueId input(Shape shape, ElementType type = ElementType::kFloat32) {
    return builder_.input("x" + std::to_string(++count_), {type, std::move(shape)});
  }
  ValueId weights(Shape shape, std::vector<double> entries) {
    return builder_.constant("w" + std::to_string(++count_),
                             Tensor(ElementType::kFloat32, std::move(shape), std::move(entries)));
  }
  ValueId weights(Tensor tensor) {
    return builder_.constant("w" + std::to_string(++count_), std::move(tensor));
  }
  ValueId integers(std::vector<Index> entries) {
    const Shape shape{static_cast<Index>(entries.size())};
    return builder_.constant("i" + std::to_string(++count_),
                             Tensor::integers(shape, std::move(entries)));
  }
  ValueId add(const std::string& op, const std::vector<ValueId>& inputs, Attributes attributes = {},
              int opset = 13) {
    std::vector<std::optional<NodeInput>> infos;
    for (const ValueId id : inputs)
      infos.push_back(NodeInput{builder_.value(id).type, builder_.value(id).constant.get()});
    const Imported made =
        find_op_kind(op)->import(OnnxNode(op, opset, std::move(attributes), infos));
    std::vector<ValueId> uses;
    for (const Index k : made.uses) uses.push_back(inputs[static_cast<std::size_t>(k)]);
    return builder_.add(made.op, uses, op + std::to_string(++count_))[0];
  }
  const Shape& shape(ValueId id) const { return builder_.value(id).type.shape; }
  Graph finish(ValueId output) { return builder_.finish({output}); }

 private:
  GraphBuilder builder_;
  int count_ = 0;
};

}  // namespace lipscope::testing_support
