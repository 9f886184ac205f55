// SPDX-License-Identifier: Apache-2.0
// ONNX models made in memory, for tests: a thin layer over the generated protobuf classes.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "io/onnx/onnx_proto.h"
#include "lipscope/model.h"

namespace lipscope::testing_support {

class ModelWriter {
 public:
  explicit ModelWriter(int opset = 13) {
    model.set_ir_version(7);
    model.set_producer_name("test");
    auto* import = model.add_opset_import();
    import->set_domain("");
    import->set_version(opset);
    model.mutable_graph()->set_name("graph");
  }

  // Dimensions below 0 are symbolic, named "d0", "d1", ...
  void input(const std::string& name, const std::vector<Index>& dims,
             int type = onnx::TensorProto::FLOAT) {
    declare(model.mutable_graph()->add_input(), name, dims, type);
  }
  void output(const std::string& name) { model.mutable_graph()->add_output()->set_name(name); }
  void weight(const std::string& name, const std::vector<Index>& dims,
              const std::vector<float>& entries) {
    auto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const Index d : dims) tensor->add_dims(d);
    for (const float e : entries) tensor->add_float_data(e);
  }
  void integers(const std::string& name, const std::vector<Index>& dims,
                const std::vector<Index>& entries) {
    auto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    for (const Index d : dims) tensor->add_dims(d);
    for (const Index e : entries) tensor->add_int64_data(e);
  }
  onnx::NodeProto* node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = "") {
    auto* made = model.mutable_graph()->add_node();
    made->set_op_type(op);
    made->set_name(name);
    for (const auto& i : inputs) made->add_input(i);
    for (const auto& o : outputs) made->add_output(o);
    return made;
  }

  [[nodiscard]] std::string bytes() const { return model.SerializeAsString(); }
  [[nodiscard]] OnnxModel read(const std::string& folder = "") const {
    const std::string text = bytes();
    return OnnxModel::parse(std::as_bytes(std::span(text)), "test.onnx", folder);
  }

  onnx::ModelProto model;

 private:
  static void declare(onnx::ValueInfoProto* info, const std::string& name,
                      const std::vector<Index>& dims, int type) {
    info->set_name(name);
    auto* tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    auto* shape = tensor->mutable_shape();
    for (std::size_t i = 0; i < dims.size(); ++i) {
      auto* dim = shape->add_dim();
      if (dims[i] >= 0) {
        dim->set_dim_value(dims[i]);
      } else {
        dim->set_dim_param("d" + std::to_string(i));
      }
    }
  }
};

inline void set_attribute(onnx::NodeProto* node, const std::string& name, Index value) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INT);
  a->set_i(value);
}
inline void set_attribute(onnx::NodeProto* node, const std::string& name, float value) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::FLOAT);
  a->set_f(value);
}
inline void set_attribute(onnx::NodeProto* node, const std::string& name,
                          const std::string& value) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s(value);
}
inline void set_attribute(onnx::NodeProto* node, const std::string& name,
                          const std::vector<Index>& values) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::INTS);
  for (const Index v : values) a->add_ints(v);
}

}  // namespace lipscope::testing_support
