// SPDX-License-Identifier: Apache-2.0
// certify --inference as a user calls it, where formats end; and outputs that are no classes.
#include <cmath>
#include <functional>

#include "lipscope/arrays.h"
#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;
using lipscope::ElementType;
using lipscope::Index;
using lipscope::Tensor;

class InferenceCli : public Cli {
 protected:
  using Fill = std::function<void(ModelWriter&)>;
  // From x, of two entries, to y.
  std::string written(const std::string& name, const Fill& fill) const {
    ModelWriter writer;
    writer.input("x", {-1, 2});
    fill(writer);
    writer.output("y");
    return file(name + ".onnx", writer.bytes());
  }
  std::string array(const std::string& name, const Tensor& tensor) const {
    const auto bytes = lipscope::write_npy(tensor);
    return file(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  // One sample of class 1.
  std::string sample(double first, double second) const {
    return " --data " +
           array("x.npy",
                 Tensor(ElementType::kFloat64, {1, 2}, std::vector<double>{first, second})) +
           " --labels " + array("y.npy", Tensor::integers({1}, {1})) + " --norm inf --effort 1/10";
  }
  Json answer(const std::string& model, const std::string& flags) const {
    const Outcome result = run("certify " + model + flags + " --json");
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? Json::parse(result.out) : Json();
  }
  double radius(const std::string& model, const std::string& flags) const {
    const Json document = answer(model, flags);
    return document.is_null() ? -1 : document["samples"][0]["radius"].get<double>();
  }
};

TEST_F(InferenceCli, NothingIsProvedBeyondTheFormat) {
  const std::string half = " --inference float16", single = " --inference float32";
  const auto diagonal = [](float w) {
    return [w](ModelWriter& m) {
      m.weight("w", {2, 2}, {w, 0, 0, w});
      m.node("MatMul", {"x", "w"}, {"y"});
    };
  };
  const std::string scaled = written("scaled", diagonal(1e-3F));
  EXPECT_EQ(radius(scaled, sample(1e5, 2e5) + half), 0);  // the input overflows
  EXPECT_GT(radius(scaled, sample(1e5, 2e5) + single), 49000);

  const std::string divided = written("divided", [](ModelWriter& m) {
    m.weight("c", {}, {1e5F});
    m.weight("w", {2, 2}, {6e4F, 0, 0, 6e4F});
    m.node("Div", {"x", "c"}, {"z"});
    m.node("MatMul", {"z", "w"}, {"y"});
  });
  EXPECT_EQ(radius(divided, sample(1, 3) + half), 0);
  EXPECT_GT(radius(divided, sample(1, 3) + single), 0.9);

  const std::string factor = written("factor", [](ModelWriter& m) {
    m.weight("w", {2, 2}, {1e-4F, 0, 0, 1e-4F});
    set_attribute(m.node("Gemm", {"x", "w"}, {"y"}), "alpha", 1e5F);
  });
  EXPECT_EQ(radius(factor, sample(.5, 1) + half), 0);
  EXPECT_GT(radius(factor, sample(.5, 1) + single), 0.2);

  const std::string slope = written("slope", [](ModelWriter& m) {
    set_attribute(m.node("LeakyRelu", {"x"}, {"y"}), "alpha", 1e5F);
  });
  EXPECT_EQ(radius(slope, sample(-.2, -.1) + half), 0);

  const std::string sums = written("sums", [](ModelWriter& m) {
    m.weight("w", {2, 2}, {300, 512, 512, 300});
    m.node("MatMul", {"x", "w"}, {"y"});
  });
  EXPECT_EQ(radius(sums, sample(512, 0) + " --inference bfloat16 --accumulate float16"), 0);
  EXPECT_GT(radius(sums, sample(512, 0) + " --inference bfloat16"), 100);

  const std::string sigmoid = written("sigmoid", [](ModelWriter& m) {
    m.weight("w", {2, 2}, {1, 0, 0, 1});
    m.node("MatMul", {"x", "w"}, {"z"});
    m.node("Sigmoid", {"z"}, {"y"});
  });
  EXPECT_EQ(radius(sigmoid, sample(10, 20) + half), 0);
  EXPECT_GT(radius(sigmoid, sample(10, 20)), 4.9);  // real numbers do not saturate
  EXPECT_GT(radius(sigmoid, sample(-1, 1) + half), 0.9);

  // A constant computed on the way: inf - inf.
  const std::string computed = written("computed", [](ModelWriter& m) {
    m.weight("a", {}, {70001});
    m.weight("b", {}, {70000});
    m.node("Sub", {"a", "b"}, {"c"});
    m.node("Mul", {"x", "c"}, {"y"});
  });
  EXPECT_EQ(radius(computed, sample(1, 3) + half), 0);
}

TEST_F(InferenceCli, TheAnswerSaysWhatItIsAbout) {
  const std::string tiny = written("tiny", [](ModelWriter& m) {
    m.weight("w", {2, 2}, {0x1p-12F, 0, 0, 0x1p-12F});
    m.node("MatMul", {"x", "w"}, {"z"});
    m.node("Identity", {"z"}, {"y"});
  });
  const std::string call = sample(0x1p-10, 0x1p-4) + " --radii 0 --inference float16";
  const Json kept = answer(tiny, call), flushed = answer(tiny, call + " --flush-to-zero");
  EXPECT_EQ(kept["subnormals"], "kept");
  EXPECT_GT(kept["samples"][0]["radius"], 0);
  EXPECT_EQ(kept["certified"][0]["accuracy"], 1);
  EXPECT_EQ(flushed["subnormals"], "flushed");
  EXPECT_EQ(flushed["samples"][0]["radius"], 0);
  EXPECT_EQ(flushed["certified"][0]["accuracy"], 0);  // not even at the sample itself
  EXPECT_EQ(flushed["classes"][1]["certified"][0], 0);
  EXPECT_EQ(flushed["clean_accuracy"], 1);
  EXPECT_NE(run("certify --help").out.find("--flush-to-zero"), std::string::npos);
  expect_failure("certify " + tiny + sample(0, 1) + " --flush-to-zero", 2, "--inference");
  // Real arithmetic refutes nothing about another one.
  EXPECT_EQ(run("certify " + tiny + sample(1, 0) + " --require 0.1:50%").code, 1);
  EXPECT_EQ(run("certify " + tiny + sample(1, 0) + " --require 0.1:50% --inference float16").code,
            5);
  expect_failure("certify " + written("cube", [](ModelWriter& m) { m.node("Erf", {"x"}, {"y"}); }) +
                     sample(0, 1) + " --inference float32",
                 4, "Erf");
}

TEST_F(InferenceCli, OutputsAreOneVectorOfClasses) {
  const std::string places = written("places", [](ModelWriter& m) {
    m.integers("s", {4}, {1, 1, 1, 2});
    m.weight("w", {3, 1, 1, 1}, {1, 2, 3});
    m.node("Reshape", {"x", "s"}, {"z"});
    m.node("Conv", {"z", "w"}, {"y"});
  });
  expect_failure("certify " + places + sample(0, 1), 4, "[1, 3, 1, 2]");
  const std::string column = written("column", [](ModelWriter& m) {
    m.integers("s", {4}, {1, 2, 1, 1});
    m.node("Reshape", {"x", "s"}, {"y"});
  });
  EXPECT_GT(radius(column, sample(0, 1)), 0.4);
  const std::string two = written("two", [](ModelWriter& m) {
    m.node("Neg", {"x"}, {"first"});
    m.node("Relu", {"x"}, {"y"});
    m.output("first");
  });
  const Json document = answer(two, sample(1, 0));
  EXPECT_EQ(document["output"], "first");
  ASSERT_FALSE(document["hints"].empty());
  EXPECT_NE(document["hints"][0].get<std::string>().find("'first'"), std::string::npos);
}

TEST_F(InferenceCli, OnlyTheSmallestDeviationGivesARadiusInTheData) {
  const std::string net =
      written("plain", [](ModelWriter& m) { m.node("Identity", {"x"}, {"y"}); });
  const Json document = answer(net, sample(0, 1) + " --mean 0,0 --std 0.25,4");
  const std::string hint = document["hints"].back();
  EXPECT_NE(hint.find("the smallest --std, 0.25 times"), std::string::npos) << hint;
}

}  // namespace
