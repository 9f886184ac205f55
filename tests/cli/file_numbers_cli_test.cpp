// SPDX-License-Identifier: Apache-2.0
// Proofs are about the numbers and functions that are in the file, from the program's side: each
// model here has a constant that is known from what the file says.
#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;
using lipscope::Index;

class FileNumbers : public Cli {
 protected:
  std::string model(const ModelWriter& w) const { return file("model.onnx", w.bytes()); }
  Json bound(const ModelWriter& w, const std::string& flags = "") const {
    const Outcome done = run("bound --json --effort 2/20 " + model(w) + " " + flags);
    EXPECT_EQ(done.code, 0) << done.err;
    return Json::parse(done.out);
  }
  // A bracket around the constant, from both sides to some digits.
  void expect_bracket(const ModelWriter& w, double constant, const std::string& flags = "") const {
    const Json document = bound(w, flags);
    EXPECT_GE(document["upper"]["value"].get<double>(), constant * (1 - 1e-15));
    EXPECT_LE(document["upper"]["value"].get<double>(), constant * (1 + 1e-6));
    if (!document["lower"].is_null()) {
      EXPECT_LE(document["lower"]["value"].get<double>(), constant * (1 + 1e-9));
    }
  }
};

// Four rows of a LayerNorm of one: sqrt(4) times its constant.
TEST_F(FileNumbers, AnEpsilonMayBroadcast) {
  ModelWriter w;
  w.input("x", {1, 3});
  w.output("y");
  w.weight("eps", {4, 1}, {1, 1, 1, 1});
  set_attribute(w.node("ReduceMean", {"x"}, {"mu"}), "axes", std::vector<Index>{-1});
  w.node("Sub", {"x", "mu"}, {"d"});
  w.node("Mul", {"d", "d"}, {"sq"});
  set_attribute(w.node("ReduceMean", {"sq"}, {"var"}), "axes", std::vector<Index>{-1});
  w.node("Add", {"var", "eps"}, {"ve"});
  w.node("Sqrt", {"ve"}, {"sd"});
  w.node("Div", {"d", "sd"}, {"y"});
  const Json document = bound(w);
  const Json& upper = document["upper"]["value"];
  EXPECT_TRUE(upper.is_string() || upper.get<double>() >= 2) << upper;
  const std::string x = file("x.csv", "1,2,3\n");
  const Json out = Json::parse(run("eval --json " + model(w) + " --input " + x).out);
  EXPECT_EQ(out["outputs"][0]["shape"], Json({4, 3}));
}

TEST_F(FileNumbers, ScalesOfResizeAreTheStoredOnes) {
  ModelWriter w;
  w.input("x", {1, 1, 4});
  w.output("y");
  w.weight("roi", {0}, {});
  w.weight("scales", {3}, {1, 1, 2.000001907F});
  auto* node = w.node("Resize", {"x", "roi", "scales"}, {"y"});
  set_attribute(node, "coordinate_transformation_mode", std::string("asymmetric"));
  set_attribute(node, "nearest_mode", std::string("floor"));
  expect_bracket(w, 3, "--norm 1");
}

TEST_F(FileNumbers, OmittedEpsilonsAreFloats) {
  ModelWriter w;
  w.input("x", {1, 2});
  w.output("y");
  w.weight("one", {2}, {1, 1});
  w.weight("zero", {2}, {0, 0});
  w.node("BatchNormalization", {"x", "one", "zero", "zero", "zero"}, {"y"});
  expect_bracket(w, 1 / std::sqrt(double{1e-5F}));
}

TEST_F(FileNumbers, IntegerInputsAreTakenAsReals) {
  ModelWriter w;
  w.input("x", {1, 2}, onnx::TensorProto::UINT8);
  w.output("y");
  w.weight("w", {2, 2}, {1, 2, 3, 4});
  set_attribute(w.node("Cast", {"x"}, {"r"}), "to", Index{1});
  w.node("MatMul", {"r", "w"}, {"y"});
  expect_bracket(w, std::sqrt(15 + std::sqrt(221)));
  EXPECT_EQ(bound(w)["query"]["integers_as_reals"], Json({"x"}));
  const std::string proof = (folder_ / "proof.json").string();
  const Outcome text =
      run("bound --effort 2/20 " + model(w) + " --box 0,255 --certificate " + proof);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("whole numbers taken as real ones: input x"), std::string::npos);
  const Outcome checked = run("check --json " + model(w) + " " + proof);
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_EQ(Json::parse(checked.out)["query"]["integers_as_reals"], Json::array({"x"}));
  const std::string at = file("at.csv", "3,200\n"), label = file("label.csv", "1\n");
  EXPECT_EQ(run("bound --effort 2/20 " + model(w) + " --at " + at + " --radius 1").code, 0);
  expect_failure("bound " + model(w) + " --scale 1/255 --at " + at + " --radius 1", 2, "--scale");
  const Outcome certify = run("certify --json --effort 1/4 " + model(w) + " --data " + at +
                              " --labels " + label + " --scale 1");
  EXPECT_EQ(certify.code, 0) << certify.err;
  const Json document = Json::parse(certify.out);
  EXPECT_EQ(document["integers_as_reals"], Json({"x"}));
  // The margin is 203 + 3 - ... = x1 + x2, with the gradient (1, 1).
  EXPECT_NEAR(document["samples"][0]["radius"].get<double>(), 203 / std::sqrt(2), 1e-3);
}

TEST_F(FileNumbers, IntegerArithmeticOnInputsIsRefused) {
  ModelWriter w;
  w.input("x", {1, 2}, onnx::TensorProto::INT32);
  w.output("y");
  w.node("Mul", {"x", "x"}, {"m"});
  set_attribute(w.node("Cast", {"m"}, {"y"}), "to", Index{1});
  expect_failure("bound " + model(w), 4, "not cast to real numbers");
}

TEST_F(FileNumbers, CastsOfConstantsRound) {
  ModelWriter w;
  w.input("x", {1, 1});
  w.output("y");
  w.weight("w", {1, 1}, {1.0007F});
  set_attribute(w.node("Cast", {"w"}, {"h"}), "to", Index{10});
  set_attribute(w.node("Cast", {"h"}, {"v"}), "to", Index{1});
  w.node("MatMul", {"x", "v"}, {"y"});
  expect_bracket(w, 1.0009765625);
  EXPECT_FALSE(bound(w)["query"].contains("casts_as_identity"));
  // Of what moves they change nothing, and the answer names them.
  set_attribute(w.node("Cast", {"y"}, {"z"}, "narrow"), "to", Index{10});
  w.model.mutable_graph()->mutable_output(0)->set_name("z");
  expect_bracket(w, 1.0009765625);
  EXPECT_EQ(bound(w)["query"]["casts_as_identity"], Json({"narrow"}));
}

TEST_F(FileNumbers, FunctionsOverStandardOperatorsAreRefused) {
  ModelWriter w;
  w.input("x", {1, 2});
  w.output("y");
  w.node("Relu", {"x"}, {"y"}, "act");
  auto* f = w.model.add_functions();
  f->set_name("Relu");
  f->add_input("a");
  f->add_output("b");
  f->add_opset_import()->set_version(13);
  auto* node = f->add_node();
  node->set_op_type("Add");
  node->add_input("a");
  node->add_input("a");
  node->add_output("b");
  expect_failure("bound " + model(w), 4, "Relu");
}

TEST_F(FileNumbers, StatisticsOfTheBatchAreRefused) {
  for (const bool says_so : {false, true}) {
    ModelWriter w(6);
    w.input("x", {1, 2});
    w.output("y");
    w.weight("one", {2}, {1, 1});
    w.weight("zero", {2}, {0, 0});
    auto* node = w.node("BatchNormalization", {"x", "one", "zero", "zero", "one"}, {"y"});
    if (says_so) set_attribute(node, "is_test", Index{0});
    expect_failure("bound " + model(w), 4, "training mode");
    expect_failure("eval " + model(w) + " --input nowhere.npy", 4, "training mode");
  }
}

// --to ends before the output; what reaches the output does not matter.
TEST_F(FileNumbers, TheFunctionThatIsAskedForDecidesWhereItStarts) {
  ModelWriter w;
  w.input("x", {2});
  w.output("y");
  w.weight("table", {3, 2}, {1, 2, 3, 4, 5, 6});
  w.weight("three", {}, {3});
  w.node("Mul", {"x", "three"}, {"m"}, "product");
  set_attribute(w.node("Cast", {"m"}, {"i"}), "to", Index{7});
  w.node("Gather", {"table", "i"}, {"y"}, "lookup");
  const Json document = bound(w, "--to product");
  EXPECT_TRUE(document["query"]["from"].is_null());
  EXPECT_NEAR(document["upper"]["value"].get<double>(), 3, 1e-9);
}

}  // namespace
