// SPDX-License-Identifier: Apache-2.0
// Functions that a file defines: followed, or refused by name; never passed over.
#include "io/onnx/onnx_functions.h"

#include <gtest/gtest.h>

#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "tests/support/model_writer.h"

namespace lipscope {
namespace {

using testing_support::ModelWriter;
using testing_support::set_attribute;

onnx::FunctionProto* add_function(ModelWriter& w, const std::string& domain,
                                  const std::string& name, const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs, int opset = 13) {
  auto* f = w.model.add_functions();
  f->set_domain(domain);
  f->set_name(name);
  for (const auto& i : inputs) f->add_input(i);
  for (const auto& o : outputs) f->add_output(o);
  f->add_opset_import()->set_version(opset);
  return f;
}
onnx::NodeProto* body(onnx::FunctionProto* f, const std::string& op,
                      const std::vector<std::string>& inputs, const std::string& output) {
  auto* node = f->add_node();
  node->set_op_type(op);
  for (const auto& i : inputs) node->add_input(i);
  node->add_output(output);
  return node;
}
void refer(onnx::NodeProto* node, const std::string& name, const std::string& to) {
  auto* a = node->add_attribute();
  a->set_name(name);
  a->set_ref_attr_name(to);
  a->set_type(onnx::AttributeProto::FLOAT);
}
double at_minus_two(const ModelWriter& w) {
  const Tensor x(ElementType::kFloat32, {1}, std::vector<double>{-2});
  return evaluate(w.read().graph(), std::vector{x})[0].at(0);
}
std::string refusal_of(const ModelWriter& w) {
  try {
    w.read().require_supported();
    (void)w.read().graph();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << error.what();
    return error.what();
  }
  return "";
}

ModelWriter calling(const std::string& op, const std::string& domain) {
  ModelWriter w;
  w.input("x", {1});
  w.output("y");
  w.node(op, {"x"}, {"y"}, "call")->set_domain(domain);
  return w;
}

TEST(LocalFunctions, AreFollowed) {
  for (const std::string domain : {"", "com.example"}) {
    ModelWriter w = calling("Twice", domain);
    auto* f = add_function(w, domain, "Twice", {"a"}, {"b"});
    body(f, "Add", {"a", "a"}, "t");
    body(f, "Add", {"t", "t"}, "b");
    EXPECT_EQ(at_minus_two(w), -8) << domain;
  }
}

TEST(LocalFunctions, MayCallOthersAndHandAttributesOn) {
  ModelWriter w = calling("Outer", "com.example");
  set_attribute(w.model.mutable_graph()->mutable_node(0), "slope", 0.5F);
  auto* outer = add_function(w, "com.example", "Outer", {"x"}, {"y"});
  outer->add_attribute("slope");
  auto* call = body(outer, "Inner", {"x"}, "y");
  call->set_domain("com.example");
  refer(call, "alpha", "slope");
  auto* inner = add_function(w, "com.example", "Inner", {"y"}, {"x"});
  inner->add_attribute("alpha");
  refer(body(inner, "LeakyRelu", {"y"}, "x"), "alpha", "alpha");
  EXPECT_EQ(at_minus_two(w), -1);
  // Not given: the operator's own default.
  w.model.mutable_graph()->mutable_node(0)->clear_attribute();
  EXPECT_EQ(at_minus_two(w), -2 * double{0.01F});
}

TEST(LocalFunctions, HaveOpsetsOfTheirOwn) {
  ModelWriter w = calling("Normalise", "com.example");
  auto* f = add_function(w, "com.example", "Normalise", {"a"}, {"b"}, 6);
  set_attribute(body(f, "Clip", {"a"}, "b"), "min", -1.0F);  // an input since opset 11
  EXPECT_EQ(at_minus_two(w), -1);
}

TEST(LocalFunctions, AnInputMayBeAnOutput) {
  ModelWriter w = calling("Same", "com.example");
  add_function(w, "com.example", "Same", {"a"}, {"a"});
  EXPECT_EQ(at_minus_two(w), -2);
}

TEST(LocalFunctions, OverStandardOperatorsAreRefused) {
  ModelWriter w = calling("Relu", "");
  body(add_function(w, "", "Relu", {"a"}, {"b"}), "Neg", {"a"}, "b");
  EXPECT_NE(refusal_of(w).find("Relu"), std::string::npos);
  ModelWriter other = calling("Relu", "");
  body(add_function(other, "ai.onnx", "Relu", {"a"}, {"b"}), "Neg", {"a"}, "b");
  EXPECT_NE(refusal_of(other).find("Relu"), std::string::npos);
}

TEST(LocalFunctions, WithVariantsOrDefaultsAreRefused) {
  ModelWriter w = calling("Twice", "com.example");
  auto* f = add_function(w, "com.example", "Twice", {"a"}, {"b"});
  body(f, "Add", {"a", "a"}, "b");
  f->mutable_unknown_fields()->AddLengthDelimited(13, "another");
  EXPECT_NE(refusal_of(w).find("Twice"), std::string::npos);
  f->clear_name();
  f->mutable_unknown_fields()->Clear();
  f->set_name("Twice");
  EXPECT_EQ(refusal_of(w), "");
  w.model.mutable_graph()->mutable_node(0)->mutable_unknown_fields()->AddLengthDelimited(8, "v");
  EXPECT_NE(refusal_of(w).find("Twice"), std::string::npos);
}

TEST(LocalFunctions, ThatAreDamagedAreBadFiles) {
  const auto is_bad = [](const ModelWriter& w) {
    try {
      (void)w.read().graph();
    } catch (const Error& error) {
      return error.code() == ErrorCode::kBadFile;
    }
    return false;
  };
  ModelWriter self = calling("F", "com.example");
  body(add_function(self, "com.example", "F", {"a"}, {"b"}), "F", {"a"}, "b")
      ->set_domain("com.example");
  EXPECT_TRUE(is_bad(self));
  ModelWriter outside = calling("F", "com.example");
  body(add_function(outside, "com.example", "F", {"a"}, {"b"}), "Relu", {"x"}, "b");
  EXPECT_TRUE(is_bad(outside));
}

TEST(OnnxFile, NamesAreGivenOnce) {
  ModelWriter w;
  w.input("x", {1});
  w.output("y");
  w.weight("h", {1}, {5});
  w.node("Relu", {"x"}, {"h"});
  w.node("Neg", {"h"}, {"y"});
  EXPECT_THROW((void)w.read(), Error);
  ModelWriter two = calling("Relu", "");
  auto* import = two.model.add_opset_import();
  import->set_domain("ai.onnx");
  import->set_version(7);
  EXPECT_THROW((void)two.read(), Error);
}

}  // namespace
}  // namespace lipscope
