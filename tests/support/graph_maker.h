// SPDX-License-Identifier: Apache-2.0
// Small graphs made node by node through the operators' importers.
#pragma once

#include <string>
#include <vector>

#include "lipscope/graph.h"
#include "ops/kind.h"
#include "passes/add_node.h"

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
    return add_node(builder_, op, inputs, op + std::to_string(++count_), std::move(attributes),
                    opset);
  }
  // An operator with several outputs.
  std::vector<ValueId> add_many(const std::string& op, ValueId input, std::size_t outputs,
                                Attributes attributes = {}) {
    const Value& value = builder_.value(input);
    const Imported made = find_op_kind(op)->import(OnnxNode(
        op, 13, std::move(attributes), {NodeInput::of(value)}, std::vector<bool>(outputs, true)));
    return builder_.add(made.op, {input}, op + std::to_string(++count_), {});
  }
  const Shape& shape(ValueId id) const { return builder_.value(id).type.shape; }
  const std::string& name(ValueId id) const { return builder_.value(id).name; }
  Graph finish(ValueId output) { return builder_.finish({output}); }

 private:
  GraphBuilder builder_;
  int count_ = 0;
};

inline Graph unary(const std::string& op) {
  GraphMaker m;
  return m.finish(m.add(op, {m.input({1, 1})}));
}

// x A + b with A = [[3, 4], [0, 5]]: columns of the map sum to 7 and 5, rows to 3 and 9.
inline Graph affine() {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  return m.finish(m.add("Gemm", {x, m.weights({2, 2}, {3, 4, 0, 5}), m.weights({2}, {10, -7})}));
}

}  // namespace lipscope::testing_support
