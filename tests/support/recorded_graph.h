// SPDX-License-Identifier: Apache-2.0
// A graph made node by node, and the same network as a model file. Weights and real attributes are
// rounded to float32 first, so that both are the same function.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/graph_maker.h"
#include "tests/support/model_writer.h"

namespace lipscope::testing_support {

class RecordedGraph {
 public:
  explicit RecordedGraph(int opset) : writer_(opset), opset_(opset) {}

  ValueId input(const Shape& shape) {
    const ValueId id = maker_.input(shape);
    writer_.input(name(id), shape);
    return id;
  }
  ValueId weights(Tensor tensor) {
    std::vector<float> entries;
    for (double& e : tensor.doubles()) e = entries.emplace_back(static_cast<float>(e));
    const Shape shape = tensor.shape();
    const ValueId id = maker_.weights(std::move(tensor));
    writer_.weight(name(id), shape, entries);
    return id;
  }
  ValueId integers(const std::vector<Index>& entries) {
    const ValueId id = maker_.integers(entries);
    writer_.integers(name(id), {static_cast<Index>(entries.size())}, entries);
    return id;
  }
  ValueId add(const std::string& op, const std::vector<ValueId>& inputs,
              Attributes attributes = {}) {
    for (auto& [key, value] : attributes) {
      if (auto* real = std::get_if<double>(&value)) *real = static_cast<float>(*real);
    }
    const ValueId id = maker_.add(op, inputs, attributes, opset_);
    std::vector<std::string> names;
    for (const ValueId input : inputs) names.push_back(name(input));
    auto* node = writer_.node(op, names, {name(id)}, op + std::to_string(id.index));
    for (const auto& [key, value] : attributes) record(node, key, value);
    return id;
  }

  const Shape& shape(ValueId id) const { return maker_.shape(id); }
  Graph finish(ValueId output) {
    writer_.output(name(output));
    return maker_.finish(output);
  }
  // After finish().
  [[nodiscard]] OnnxModel model() const { return writer_.read(); }

 private:
  static std::string name(ValueId id) { return "v" + std::to_string(id.index); }

  static void record(onnx::NodeProto* node, const std::string& key, const Attribute& value) {
    if (const auto* integer = std::get_if<Index>(&value)) {
      set_attribute(node, key, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      set_attribute(node, key, static_cast<float>(*real));
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      set_attribute(node, key, *text);
    } else if (const auto* list = std::get_if<std::vector<Index>>(&value)) {
      set_attribute(node, key, *list);
    } else {
      throw std::logic_error("attribute " + key + " has a type that is not written");
    }
  }

  GraphMaker maker_;
  ModelWriter writer_;
  int opset_;
};

}  // namespace lipscope::testing_support
