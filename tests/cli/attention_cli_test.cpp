// SPDX-License-Identifier: Apache-2.0
// attention as a user calls it.
#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;
using lipscope::Index;

// One head with unit weights on tokens of width 1, and an added mask. The value "x" has to be
// there.
std::string head_behind(ModelWriter writer, Index tokens, const std::vector<float>& mask = {}) {
  writer.weight("w", {1, 1}, {1});
  for (const char* name : {"q", "k", "v"}) writer.node("MatMul", {"x", "w"}, {name}, name);
  auto* turn = writer.node("Transpose", {"k"}, {"kt"}, "turn");
  auto* perm = turn->add_attribute();
  perm->set_name("perm");
  perm->set_type(onnx::AttributeProto::INTS);
  for (const int axis : {0, 2, 1}) perm->add_ints(axis);
  writer.node("MatMul", {"q", "kt"}, {"raw"}, "scores");
  std::string scores = "raw";
  if (!mask.empty()) {
    writer.weight("mask", {1, tokens, tokens}, mask);
    writer.node("Add", {"raw", "mask"}, {"masked"}, "add");
    scores = "masked";
  }
  writer.node("Softmax", {scores}, {"p"}, "weights");
  writer.node("MatMul", {"p", "v"}, {"y"}, "mix");
  writer.output("y");
  return writer.bytes();
}
std::string head_model(Index tokens, const std::vector<float>& mask = {}) {
  ModelWriter writer;
  writer.input("x", {1, tokens, 1});
  return head_behind(writer, tokens, mask);
}

// The product that stands in the way, and what to do about it.
TEST_F(Cli, AttentionIsNamedAsWhatHasNoConstant) {
  const std::string model = file("head.onnx", head_model(2));
  const std::string bound = run("bound " + model + " --explain --effort 1/20").out;
  EXPECT_NE(bound.find("no finite upper bound: node 'scores': operator MatMul multiplies"),
            std::string::npos)
      << bound;
  EXPECT_NE(bound.find("(--at and --radius, --box)"), std::string::npos) << bound;
  EXPECT_EQ(bound.find("not finite"), std::string::npos) << bound;
  const std::string certify = run("certify " + model + " --data " + file("x.csv", "0,1\n") +
                                  " --labels " + file("y.csv", "1\n") + " --effort 1/10")
                                  .out;
  EXPECT_NE(certify.find("node 'scores': operator MatMul multiplies"), std::string::npos)
      << certify;
  EXPECT_NE(certify.find("--scope local finds radii"), std::string::npos) << certify;
}

TEST_F(Cli, AttentionOfTwoTokens) {
  const std::string model = file("head.onnx", head_model(2)), x = file("x.csv", "0\n1\n");
  const Json document = Json::parse(
      run("attention --json " + model + " --input " + x + " --norm 2 --norm inf --radius 0.01")
          .out);
  EXPECT_EQ(document["schema"], "lipscope.attention/1");
  EXPECT_EQ(document["outcome"], "finished");
  ASSERT_EQ(document["blocks"].size(), 1U);
  const Json& block = document["blocks"][0];
  EXPECT_EQ(block["node"], "weights");
  EXPECT_EQ(block["layer"], 0);
  EXPECT_EQ(block["kind"], "self");
  ASSERT_EQ(block["heads"].size(), 1U);
  const Json& head = block["heads"][0];
  EXPECT_EQ(head["head"], 0);
  EXPECT_EQ(head["rows"], 2);
  EXPECT_EQ(head["softmax"]["2:2"]["max"], 0.5);
  EXPECT_TRUE(head["softmax"]["inf:inf"].contains("median"));
  const double truth = 1.303152069591;
  for (const Json* local : {&head["local"], &block["local"], &document["model"]["local"]}) {
    EXPECT_NEAR((*local)["lower"]["value"].get<double>(), truth, 1e-9);
    EXPECT_NEAR((*local)["upper"]["value"].get<double>(), truth, 1e-9);
    EXPECT_LE((*local)["lower"]["value"], (*local)["upper"]["value"]);
    EXPECT_EQ((*local)["lower"]["guarantee"], "proved");
    EXPECT_EQ((*local)["upper"]["guarantee"], "proved");
  }
  std::vector<std::string> names;
  for (const Json& bound : head["bounds"]) {
    names.push_back(bound["name"]);
    EXPECT_EQ(bound["theorem"].get<std::string>().rfind("attention-", 0), 0U);
    EXPECT_GE(bound["value"].get<double>(), bound["norm"] == "2:2" ? truth - 1e-9 : 1);
    EXPECT_TRUE(bound["guarantee"] == "proved" || bound["guarantee"] == "real");
  }
  for (const char* name : {"explicit", "covariance", "block", "token-max", "yudin", "castin", "hu",
                           "ball: taylor", "ball: covariance", "ball: lengths"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  EXPECT_GE(head["ball"]["upper"]["value"].get<double>(), truth - 1e-9);
  EXPECT_LE(head["ball"]["upper"]["value"].get<double>(), 1.1 * truth);
  const Outcome human = run("attention " + model + " --input " + x);
  EXPECT_EQ(human.code, 0);
  EXPECT_NE(human.out.find("attention-3"), std::string::npos) << human.out;
}

TEST_F(Cli, AttentionHasAPage) {
  const std::string result = (folder_ / "r.json").string();
  ASSERT_EQ(run("attention --json " + file("head.onnx", head_model(2)) + " --input " +
                file("x.csv", "0\n1\n") + " --radius 0.01 --empirical 0.1 -o " + result)
                .code,
            0);
  const Outcome page = run("report " + result);
  EXPECT_EQ(page.code, 0) << page.err;
}

TEST_F(Cli, AttentionEmpiricalStudy) {
  const std::string model = file("head.onnx", head_model(2)), x = file("x.csv", "0\n1\n");
  const Json head = Json::parse(
      run("attention --json " + model + " --input " + x + " --norm 2 --norm 1 --empirical 1e-3,0.1")
          .out)["blocks"][0]["heads"][0];
  ASSERT_EQ(head["empirical"].size(), 4U);
  for (const Json& cell : head["empirical"]) {
    EXPECT_LE(cell["random_max"], 0.5);
    EXPECT_LE(cell["directed_max"], 0.5);
    EXPECT_GT(cell["directed_max"], 0);
  }
}

TEST_F(Cli, AttentionRefusesWhatItCannotAnswer) {
  const std::string two = file("two.onnx", head_model(2)), x = file("x.csv", "0\n1\n");
  expect_failure(
      "attention " + kModels + "fashion_mlp.onnx --input " + kModels + "fashion_image.npy", 4,
      "no attention");
  expect_failure(
      "attention " + file("one.onnx", head_model(1)) + " --input " + file("one.csv", "1\n"), 4,
      "rows of one entry");
  const float hidden = -1e30F;
  const std::string masked = file("masked.onnx", head_model(2, {0, 0, hidden, hidden}));
  expect_failure("attention " + masked + " --input " + x, 3, "hides all of row 1");
  const float never = -std::numeric_limits<float>::infinity();
  const std::string closed = file("closed.onnx", head_model(2, {0, 0, never, never}));
  expect_failure("attention " + closed + " --input " + x, 3, "hides all of row 1");
  expect_failure("attention " + two + " --input " + file("nan.csv", "nan\n1\n"), 3, "nan");
  expect_failure("attention " + two + " --input " + file("big.csv", "1e200\n1e200\n"), 3, "score");
  expect_failure("attention " + two + " --input " + x + " --radius -1", 2, "radius");
  expect_failure("attention " + two + " --input " + x + " --sample 3", 2, "samples");
  expect_failure("attention " + two + " --input missing.csv", 3, "missing.csv");
  EXPECT_EQ(run("attention " + two).code, 2);
}

TEST_F(Cli, AttentionChecksTokenIds) {
  ModelWriter writer;
  writer.input("ids", {1, 2}, onnx::TensorProto::INT64);
  writer.weight("table", {3, 1}, {0, 1, 2});
  writer.node("Gather", {"table", "ids"}, {"x"}, "embedding");
  auto* turn = writer.node("Transpose", {"x"}, {"xt"}, "turn");
  auto* perm = turn->add_attribute();
  perm->set_name("perm");
  perm->set_type(onnx::AttributeProto::INTS);
  for (const int axis : {0, 2, 1}) perm->add_ints(axis);
  writer.node("MatMul", {"x", "xt"}, {"raw"}, "scores");
  writer.node("Softmax", {"raw"}, {"p"}, "weights");
  writer.node("MatMul", {"p", "x"}, {"y"}, "mix");
  writer.output("y");
  const std::string model = file("ids.onnx", writer.bytes());
  const Json document =
      Json::parse(run("attention --json " + model + " --input " + file("ids.csv", "0,1\n")).out);
  EXPECT_EQ(document["from"], "embedding");
  EXPECT_NEAR(document["model"]["local"]["lower"]["value"].get<double>(), 1.303152069591, 1e-9);
  expect_failure("attention " + model + " --input " + file("bad.csv", "0,7\n"), 3, "7");
  expect_failure("attention " + model + " --input " + file("below.csv", "0,-9\n"), 3, "-9");
}

// Integers that are cast at once: the constant at a point is that of the function of real numbers.
TEST_F(Cli, AttentionOfIntegersIsThatOfRealNumbers) {
  ModelWriter writer;
  writer.input("bytes", {1, 2, 1}, onnx::TensorProto::UINT8);
  set_attribute(writer.node("Cast", {"bytes"}, {"x"}, "real"), "to", Index{1});
  const std::string whole = file("whole.onnx", head_behind(writer, 2)),
                    real = file("real.onnx", head_model(2)), x = file("x.csv", "0\n1\n");
  const auto ask = [&](const std::string& model) {
    return Json::parse(
        run("attention --json " + model + " --input " + x + " --radius 0.01 --norm 2").out);
  };
  const Json found = ask(whole), expected = ask(real);
  EXPECT_EQ(found["integers_as_reals"], Json::array({"bytes"})) << found;
  EXPECT_FALSE(expected.contains("integers_as_reals"));
  EXPECT_EQ(found["model"]["local"], expected["model"]["local"]);
  const auto on_ball = [](const Json& document) {
    return document["model"]["ball"]["upper"]["value"].get<double>();
  };
  EXPECT_NEAR(on_ball(found), on_ball(expected), 1e-9);
  EXPECT_EQ(found["blocks"][0]["local"], expected["blocks"][0]["local"]);
  EXPECT_GT(found["model"]["local"]["lower"]["value"].get<double>(), 1.3);
  EXPECT_NE(run("attention " + whole + " --input " + x).out.find("bytes"), std::string::npos);
}

TEST_F(Cli, AttentionOfIntegersThatAreComputedWithIsRefused) {
  const auto model = [](const std::string& op) {
    ModelWriter writer;
    writer.input("n", {1, 2, 1}, onnx::TensorProto::INT32);
    if (op == "Cast") {  // 300 becomes 44
      set_attribute(writer.node(op, {"n"}, {"l"}, "integers"), "to", Index{2});
    } else {
      writer.node(op, {"n", "n"}, {"l"}, "integers");
    }
    set_attribute(writer.node("Cast", {"l"}, {"x"}, "real"), "to", Index{1});
    return head_behind(writer, 2);
  };
  const std::string x = file("x.csv", "0\n1\n");
  for (const char* op : {"Mul", "Add", "Cast"})
    expect_failure("attention " + file("n.onnx", model(op)) + " --input " + x, 4, "no attention");
}

TEST_F(Cli, InspectShowsAttention) {
  const std::string model =
      file("head.onnx", head_model(3, {0, -1e9F, -1e9F, 0, 0, -1e9F, 0, 0, 0}));
  const Json document = Json::parse(run("inspect --json " + model).out);
  ASSERT_EQ(document["attention"].size(), 1U);
  EXPECT_EQ(document["attention"][0]["kind"], "self");
  EXPECT_EQ(document["attention"][0]["mask"], "causal");
  EXPECT_EQ(document["attention"][0]["heads"], 1);
  EXPECT_NE(run("inspect " + model).out.find("causal"), std::string::npos);
  const Json none = Json::parse(run("inspect --json " + kModels + "fashion_mlp.onnx").out);
  EXPECT_TRUE(none["attention"].empty());
}

// RMSNorm and SiLU as exporters spell them, around attention.
TEST_F(Cli, AttentionBehindRmsNorm) {
  ModelWriter w;
  w.input("x", {1, 3, 2});
  w.weight("two", {}, {2});
  w.weight("eps", {}, {1e-5F});
  w.weight("gamma", {2}, {1, 0.5F});
  w.weight("up", {2, 2}, {1, -1, 0.5F, 2});
  const auto integers = [](onnx::NodeProto* node, const char* name, std::vector<int> entries) {
    auto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const int e : entries) attribute->add_ints(e);
  };
  w.node("Pow", {"x", "two"}, {"squares"}, "squares");
  integers(w.node("ReduceMean", {"squares"}, {"mean"}, "mean"), "axes", {-1});
  w.node("Add", {"mean", "eps"}, {"sum"}, "sum");
  w.node("Sqrt", {"sum"}, {"rms"}, "rms");
  w.node("Div", {"x", "rms"}, {"z"}, "norm");
  w.node("Mul", {"z", "gamma"}, {"t"}, "gamma");
  integers(w.node("Transpose", {"t"}, {"tt"}, "turn"), "perm", {0, 2, 1});
  w.node("MatMul", {"t", "tt"}, {"raw"}, "scores");
  w.node("Softmax", {"raw"}, {"p"}, "weights");
  w.node("MatMul", {"p", "t"}, {"mixed"}, "mix");
  w.node("Add", {"x", "mixed"}, {"h"}, "residual");
  w.node("MatMul", {"h", "up"}, {"u"}, "up");
  w.node("Sigmoid", {"u"}, {"g"}, "gate");
  w.node("Mul", {"u", "g"}, {"y"}, "silu");
  w.output("y");
  const std::string model = file("rms.onnx", w.bytes());
  const std::string x = file("x.csv", "1,0.5\n-0.3,2\n0.7,-1\n");
  EXPECT_NE(run("inspect " + model).out.find("RMSNormalization, residual"), std::string::npos)
      << run("inspect " + model).out;
  const Json local = Json::parse(run("attention --json " + model + " --input " + x).out);
  EXPECT_EQ(local["blocks"][0]["kind"], "self");
  const Json& whole = local["model"]["local"];
  EXPECT_EQ(whole["lower"]["guarantee"], "proved");
  EXPECT_EQ(whole["upper"]["guarantee"], "proved");
  EXPECT_LE(whole["upper"]["value"], whole["lower"]["value"].get<double>() * (1 + 1e-9));
  const Json ball = Json::parse(
      run("bound --json " + model + " --at " + x + " --radius 0.001 --methods expansion,point")
          .out);
  EXPECT_EQ(ball["lower"]["guarantee"], "proved");
  EXPECT_EQ(ball["upper"]["guarantee"], "proved");
  EXPECT_LE(ball["ratio"], 1.1);
  EXPECT_GE(ball["lower"]["value"], whole["lower"]["value"].get<double>() * (1 - 1e-9));
}

}  // namespace
