// SPDX-License-Identifier: Apache-2.0
// Promises every pass keeps, on small models that spell out what the passes recognise.
#include <gtest/gtest.h>

#include <cmath>

#include "lipscope/evaluate.h"
#include "ops/kind.h"
#include "passes/pass.h"
#include "tests/support/model_writer.h"

namespace lipscope {
namespace {

using testing_support::ModelWriter;
using testing_support::set_attribute;

struct Spelled {
  std::string name;
  std::string expected;  // the one operator it becomes; empty: it has to stay as it is
  ModelWriter writer;
};

ModelWriter start() {
  ModelWriter w;
  w.input("x", {1, 3, 4});
  w.output("y");
  return w;
}

ModelWriter gelu_erf(bool factor_first, float one = 1, float root_of = 0) {
  ModelWriter w = start();
  if (root_of == 0) {
    w.weight("c", {}, {1.4142135F});
  } else {
    w.weight("square", {}, {root_of});
    w.node("Sqrt", {"square"}, {"c"});
  }
  w.weight("one", {}, {one});
  w.weight("half", {}, {0.5F});
  w.node("Div", {"x", "c"}, {"d"});
  w.node("Erf", {"d"}, {"e"});
  w.node("Add", {"e", "one"}, {"g"});
  if (factor_first) {
    w.node("Mul", {"half", "x"}, {"hx"});
    w.node("Mul", {"g", "hx"}, {"y"});
  } else {
    w.node("Mul", {"x", "g"}, {"xg"});
    w.node("Mul", {"xg", "half"}, {"y"});
  }
  return w;
}

ModelWriter gelu_tanh() {
  ModelWriter w = start();
  w.weight("cubic", {}, {0.044715F});
  w.weight("scale", {}, {0.7978845F});
  w.weight("three", {}, {3});
  w.weight("one", {}, {1});
  w.weight("half", {}, {0.5F});
  w.node("Pow", {"x", "three"}, {"p"});
  w.node("Mul", {"p", "cubic"}, {"q"});
  w.node("Add", {"x", "q"}, {"s"});
  w.node("Mul", {"s", "scale"}, {"u"});
  w.node("Tanh", {"u"}, {"t"});
  w.node("Add", {"t", "one"}, {"g"});
  w.node("Mul", {"x", "half"}, {"hx"});
  w.node("Mul", {"hx", "g"}, {"y"});
  return w;
}

ModelWriter silu(float alpha) {
  ModelWriter w = start();
  if (alpha == 1) {
    w.node("Sigmoid", {"x"}, {"g"});
  } else {
    w.weight("alpha", {}, {alpha});
    w.node("Mul", {"x", "alpha"}, {"ax"});
    w.node("Sigmoid", {"ax"}, {"g"});
  }
  w.node("Mul", {"g", "x"}, {"y"});
  return w;
}

ModelWriter hard_swish_clip(float shift) {
  ModelWriter w = start();
  w.weight("shift", {}, {shift});
  w.weight("zero", {}, {0});
  w.weight("six", {}, {6});
  w.node("Add", {"x", "shift"}, {"s"});
  w.node("Clip", {"s", "zero", "six"}, {"g"});
  w.node("Mul", {"x", "g"}, {"m"});
  w.node("Div", {"m", "six"}, {"y"});
  return w;
}

ModelWriter hard_swish_sigmoid() {
  ModelWriter w = start();
  set_attribute(w.node("HardSigmoid", {"x"}, {"g"}), "alpha", 0.16666667F);
  w.node("Mul", {"x", "g"}, {"y"});
  return w;
}

ModelWriter layer_norm(bool affine, bool pow) {
  ModelWriter w = start();
  w.weight("eps", {}, {1e-5F});
  w.weight("two", {}, {2});
  w.weight("scale", {4}, {1, 2, -1, 0.5F});
  w.weight("bias", {4}, {0, 1, 2, 3});
  set_attribute(w.node("ReduceMean", {"x"}, {"mu"}), "axes", std::vector<Index>{-1});
  w.node("Sub", {"x", "mu"}, {"d"});
  w.node("Sub", {"x", "mu"}, {"d2"});
  if (pow) {
    w.node("Pow", {"d2", "two"}, {"sq"});
  } else {
    w.node("Mul", {"d2", "d2"}, {"sq"});
  }
  set_attribute(w.node("ReduceMean", {"sq"}, {"var"}), "axes", std::vector<Index>{-1});
  w.node("Add", {"var", "eps"}, {"ve"});
  w.node("Sqrt", {"ve"}, {"sd"});
  w.node("Div", {"d", "sd"}, {affine ? "n" : "y"});
  if (affine) {
    w.node("Mul", {"n", "scale"}, {"ns"});
    w.node("Add", {"ns", "bias"}, {"y"});
  }
  return w;
}

ModelWriter rms_norm(const std::string& way) {
  ModelWriter w = start();
  w.weight("eps", {}, {1e-5F});
  w.weight("two", {}, {2});
  w.weight("one", {}, {1});
  w.weight("minus_half", {}, {-0.5F});
  w.node("Pow", {"x", "two"}, {"sq"});
  set_attribute(w.node("ReduceMean", {"sq"}, {"ms"}), "axes",
                std::vector<Index>{way == "axis" ? -2 : -1});
  w.node("Add", {"ms", "eps"}, {"me"});
  w.node("Sqrt", {"me"}, {"rms"});
  if (way == "reciprocal") w.node("Reciprocal", {"rms"}, {"inverse"});
  if (way == "one over") w.node("Div", {"one", "rms"}, {"inverse"});
  if (way == "pow") w.node("Pow", {"me", "minus_half"}, {"inverse"});
  if (way == "divided" || way == "axis") {
    w.node("Div", {"x", "rms"}, {"y"});
  } else {
    w.node("Mul", {"inverse", "x"}, {"y"});
  }
  return w;
}

std::vector<Spelled> spelled() {
  return {{"GeluErf", "Gelu", gelu_erf(false)},
          {"GeluErfFactorFirst", "Gelu", gelu_erf(true)},
          {"GeluErfWithAnotherShift", "", gelu_erf(false, 2)},
          {"GeluErfRootOfTwo", "Gelu", gelu_erf(false, 1, 2)},
          // The root of 3 is no double, and no double takes its place.
          {"GeluErfRootOfThree", "", gelu_erf(false, 1, 3)},
          {"GeluTanh", "Gelu", gelu_tanh()},
          {"Silu", "Silu", silu(1)},
          {"QuickGelu", "Swish", silu(1.702F)},
          {"HardSwishClip", "HardSwish", hard_swish_clip(3)},
          {"HardSwishWithAnotherShift", "", hard_swish_clip(2)},
          {"HardSwishSigmoid", "HardSwish", hard_swish_sigmoid()},
          {"LayerNorm", "LayerNormalization", layer_norm(true, true)},
          {"LayerNormPlain", "LayerNormalization", layer_norm(false, false)},
          {"RmsNormDivided", "RMSNormalization", rms_norm("divided")},
          {"RmsNormReciprocal", "RMSNormalization", rms_norm("reciprocal")},
          {"RmsNormOneOver", "RMSNormalization", rms_norm("one over")},
          {"RmsNormPow", "RMSNormalization", rms_norm("pow")},
          {"RmsNormOfAnotherAxis", "", rms_norm("axis")}};
}

// The graph as the file spells it, before any pass.
Graph raw_graph(const ModelWriter& writer) {
  GraphBuilder builder;
  std::map<std::string, ValueId> ids;
  const Graph done = writer.read().graph();  // checks that the file is sound
  ids["x"] = builder.input("x", done.value(done.inputs()[0]).type);
  for (const auto& w : writer.model.graph().initializer()) {
    Shape shape(w.dims().begin(), w.dims().end());
    ids[w.name()] = builder.constant(
        w.name(), Tensor(ElementType::kFloat32, shape,
                         std::vector<double>(w.float_data().begin(), w.float_data().end())));
  }
  for (const auto& node : writer.model.graph().node()) {
    Attributes attributes;
    for (const auto& a : node.attribute()) {
      if (a.type() == onnx::AttributeProto::INTS) {
        attributes[a.name()] = std::vector<Index>(a.ints().begin(), a.ints().end());
      } else {
        attributes[a.name()] = double{a.f()};
      }
    }
    std::vector<std::optional<NodeInput>> infos;
    for (const auto& name : node.input()) {
      infos.push_back(NodeInput::of(builder.value(ids.at(name))));
    }
    const Imported made =
        find_op_kind(node.op_type())->import(OnnxNode(node.op_type(), 13, attributes, infos));
    std::vector<ValueId> inputs;
    for (const Index k : made.uses) inputs.push_back(ids.at(node.input(static_cast<int>(k))));
    ids[node.output(0)] = builder.add(made.op, inputs, node.op_type())[0];
  }
  return builder.finish({ids.at("y")});
}

class PassKit : public testing::TestWithParam<Spelled> {};

TEST_P(PassKit, KeepsTheFunction) {
  const Graph before = raw_graph(GetParam().writer);
  Rng rng(7);
  for (const Pass& pass : passes()) {
    const Graph after = pass.run(before);
    for (int trial = 0; trial < 20; ++trial) {
      const std::vector<Tensor> x{random_tensor(rng, {1, 3, 4}, -6, 6)};
      const Tensor a = evaluate(before, x)[0], b = evaluate(after, x)[0];
      for (Index i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a.at(i), b.at(i), 1e-13 * (1 + std::abs(a.at(i)))) << pass.name;
    }
  }
}

TEST_P(PassKit, AppliedTwiceChangesNothing) {
  const Graph once = run_passes(raw_graph(GetParam().writer));
  const Graph twice = run_passes(once);
  ASSERT_EQ(once.nodes().size(), twice.nodes().size());
  for (std::size_t i = 0; i < once.nodes().size(); ++i)
    EXPECT_EQ(once.nodes()[i].op->name(), twice.nodes()[i].op->name());
}

TEST_P(PassKit, RecognisesWhatItShould) {
  const Graph before = raw_graph(GetParam().writer);
  const Graph after = run_passes(before);
  if (GetParam().expected.empty()) {
    EXPECT_EQ(after.nodes().size(), before.nodes().size());
  } else {
    ASSERT_EQ(after.nodes().size(), 1U);
    EXPECT_EQ(after.nodes()[0].op->name(), GetParam().expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Spelled, PassKit, testing::ValuesIn(spelled()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace lipscope
