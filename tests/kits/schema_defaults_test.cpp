// SPDX-License-Identifier: Apache-2.0
// Omitted attributes mean what the schemas of the ONNX library say.
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include <map>
#include <set>

#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "ops/attribute_defaults.h"
#include "tests/kits/op_cases.h"

namespace lipscope {
namespace {

constexpr int kNewestOpset = 17;  // of the library

// Attributes of training, which importers pass over.
bool is_ignored(std::string_view op, std::string_view attribute) {
  return op == "BatchNormalization" && attribute == "momentum";
}

TEST(SchemaDefaults, RealsAreThoseOfTheTable) {
  int compared = 0;
  for (const OpKind& kind : op_kinds()) {
    for (int opset = 1; opset <= kNewestOpset; ++opset) {
      const auto* schema = onnx::OpSchemaRegistry::Schema(std::string(kind.name), opset, "");
      if (schema == nullptr || schema->Deprecated()) continue;
      for (const auto& [name, attribute] : schema->attributes()) {
        const auto value = attribute_default(kind.name, name, opset);
        if (attribute.type != onnx::AttributeProto::FLOAT || is_ignored(kind.name, name)) continue;
        if (!attribute.default_value.has_f()) continue;
        ASSERT_TRUE(value) << kind.name << " " << name << " in opset " << opset;
        EXPECT_EQ(*value, double{attribute.default_value.f()})
            << kind.name << " " << name << " in opset " << opset;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 200);
}

Attribute to_attribute(const onnx::AttributeProto& a) {
  switch (a.type()) {
    case onnx::AttributeProto::FLOAT: return double{a.f()};
    case onnx::AttributeProto::INT: return Index{a.i()};
    case onnx::AttributeProto::STRING: return a.s();
    case onnx::AttributeProto::INTS: return std::vector<Index>(a.ints().begin(), a.ints().end());
    default: return std::vector<double>(a.floats().begin(), a.floats().end());
  }
}

// The operator's cases with an attribute left out and written out.
TEST(SchemaDefaults, WrittenOutChangeNothing) {
  int compared = 0;
  for (const OpKind& kind : op_kinds()) {
    Rng rng(1);
    for (const OpCase& plain : kind.cases(rng)) {
      if (plain.opset > kNewestOpset) continue;
      const auto* schema = onnx::OpSchemaRegistry::Schema(std::string(kind.name), plain.opset, "");
      if (schema == nullptr) continue;
      for (const auto& [name, attribute] : schema->attributes()) {
        const bool has_default = attribute.default_value.has_name();
        if (!has_default || plain.attributes.contains(name)) continue;
        SCOPED_TRACE(std::string(kind.name) + " " + name);
        OpCase written = plain;
        written.attributes[name] = to_attribute(attribute.default_value);
        const kits::Built one = kits::build(kind, plain), two = kits::build(kind, written);
        const auto a = evaluate(one.graph, one.inputs), b = evaluate(two.graph, two.inputs);
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          ASSERT_EQ(a[i].shape(), b[i].shape());
          for (Index k = 0; k < a[i].size(); ++k) {
            const double x = a[i].at(k), y = b[i].at(k);
            EXPECT_TRUE(x == y || (x != x && y != y)) << x << " " << y;
          }
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 300);
}

// The epsilon of MeanVarianceNormalization is no attribute: it is in the body of its function.
TEST(SchemaDefaults, TheEpsilonOfMeanVarianceNormalization) {
  int compared = 0;
  for (const int opset : {9, 13, kNewestOpset}) {
    const auto* schema = onnx::OpSchemaRegistry::Schema("MeanVarianceNormalization", opset, "");
    ASSERT_NE(schema, nullptr);
    ASSERT_TRUE(schema->HasFunction());
    const onnx::FunctionProto* function = schema->GetFunction();
    ASSERT_NE(function, nullptr);
    std::map<std::string, float> constants;
    std::map<std::string, std::string> made;  // by operator and its inputs
    for (const auto& node : function->node()) {
      std::string key = node.op_type();
      for (const auto& input : node.input()) key += " " + input;
      made[key] = node.output(0);
      if (node.op_type() != "Constant") continue;
      const onnx::TensorProto& value = node.attribute(0).t();
      ASSERT_EQ(value.float_data_size(), 1) << node.output(0);
      constants[node.output(0)] = value.float_data(0);
    }
    ASSERT_TRUE(constants.contains("Epsilon"));
    EXPECT_EQ(constants["Epsilon"], kMeanVarianceEpsilon);
    EXPECT_EQ(made["Add STD Epsilon"], "Processed_STD");  // to the deviation, not to the variance
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

}  // namespace
}  // namespace lipscope
