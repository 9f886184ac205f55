// SPDX-License-Identifier: Apache-2.0
// Decisions on constants that the graph computes, and inputs that stay unknown, as a user sees
// them.
#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;

// y = 10 x where `left` is larger than 1, and x elsewhere; `left` is for the caller to make.
ModelWriter chosen_layer() {
  ModelWriter w;
  w.input("x", {1, 1});
  w.weight("one", {}, {1});
  w.weight("ten", {}, {10});
  w.node("Greater", {"left", "one"}, {"c"}, "decide");
  w.node("Mul", {"x", "ten"}, {"steep"}, "steep");
  w.node("Where", {"c", "steep", "x"}, {"y"}, "where");
  w.output("y");
  return w;
}

// 1 + 2^-60 is more than 1.
TEST_F(Cli, DecisionsAreThoseOfTheFile) {
  ModelWriter w = chosen_layer();
  w.weight("e", {}, {0x1p-60F});
  w.node("Add", {"one", "e"}, {"left"}, "add");
  const std::string model = file("chosen.onnx", w.bytes());
  const std::string proof = (folder_ / "proof.json").string();
  const Outcome bound = run("bound --json " + model + " --certificate " + proof);
  ASSERT_EQ(bound.code, 0) << bound.err;
  const Json document = Json::parse(bound.out);
  EXPECT_LE(document["lower"]["value"].get<double>(), 10);
  EXPECT_GE(document["upper"]["value"].get<double>(), 10);
  EXPECT_EQ(document["upper"]["guarantee"], "proved");
  EXPECT_EQ(run("check " + model + " " + proof).code, 0);
}

// e^1 e^-1 is 1, but no interval says so.
TEST_F(Cli, DecisionsThatRoundingLeavesOpenAreRefused) {
  ModelWriter w = chosen_layer();
  w.weight("minus", {}, {-1});
  w.node("Exp", {"one"}, {"up"}, "up");
  w.node("Exp", {"minus"}, {"down"}, "down");
  w.node("Mul", {"up", "down"}, {"left"}, "product");
  const std::string model = file("open.onnx", w.bytes());
  expect_failure("bound " + model, 4, "node 'decide'");
  expect_failure("inspect " + model, 4, "node 'decide'");
}

// y = x int(m): the other input may be any number.
TEST_F(Cli, OtherInputsMayBeAnything) {
  ModelWriter w;
  w.input("x", {1, 1});
  w.input("m", {1, 1});
  set_attribute(w.node("Cast", {"m"}, {"whole"}, "cut"), "to", lipscope::Index{7});
  set_attribute(w.node("Cast", {"whole"}, {"factor"}, "back"), "to", lipscope::Index{1});
  w.node("Mul", {"x", "factor"}, {"y"}, "product");
  w.output("y");
  const Outcome bound = run("bound --json --wrt x " + file("any.onnx", w.bytes()));
  ASSERT_EQ(bound.code, 0) << bound.err;
  EXPECT_EQ(Json::parse(bound.out)["upper"]["value"], "inf");
}

}  // namespace
