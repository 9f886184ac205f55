// SPDX-License-Identifier: Apache-2.0
// bound on boxes and balls as a user calls it: good questions, bad ones, points, series.
#include "tests/cli/cli_fixture.h"
#include "tests/cli/running_program.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;

class LocalCli : public Cli {
 protected:
  // x -> relu(3 x_0) + relu(-2 x_0) + x_1 - relu(x_1): a kink along each axis.
  std::string kinks() const {
    ModelWriter w;
    w.input("x", {-1, 2});
    w.weight("A", {2, 4}, {3, -2, 0, 0, 0, 0, 1, -1});
    w.weight("B", {4, 1}, {1, 1, 0, -1});
    w.node("MatMul", {"x", "A"}, {"z"}, "first");
    w.node("Relu", {"z"}, {"y"}, "relu");
    w.node("MatMul", {"y", "B"}, {"out"}, "second");
    w.output("out");
    return file("kinks.onnx", w.bytes());
  }
  std::string csv(const std::string& name, const std::string& row) const {
    return file(name, row + "\n");
  }
  Json bound(const std::string& arguments) const {
    const Outcome outcome = run("bound --json --effort 20/20 " + arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.out;
    return Json::parse(outcome.out);
  }
};

TEST_F(LocalCli, QuestionsThatMakeNoSense) {
  const std::string net = "bound --effort 1/20 " + kinks();
  const std::string at = net + " --at " + csv("x.csv", "1,1");
  for (const char* radius : {"-1", "-0.5,1", "nan", "inf", "abc", "1/0", "0.1,x"})
    expect_failure(at + " --radius=" + radius, 2, "a radius is a number of at least 0");
  expect_failure(at + " --radius --quiet", 2, "--radius");
  expect_failure(at, 2, "belong together");
  expect_failure(net + " --radius 1", 2, "belong together");
  expect_failure(net + " --ball 2", 2, "--ball");
  expect_failure(at + " --radius 1 --ball 0.5", 2, "at least 1");
  expect_failure(net + " --radius 1 --at " + csv("three.csv", "1,2,3"), 3, "2 entries");
  expect_failure(net + " --radius 1 --at " + csv("four.csv", "1,2,3,4"), 2, "2 samples");
  expect_failure(net + " --radius 1 --at " + csv("nan.csv", "1,nan"), 3, "nan");
  expect_failure(net + " --radius 1 --at nowhere.npy", 3, "nowhere.npy");
  expect_failure(net + " --box 1,0", 2, "the box is empty");
  for (const char* box : {"0", "0,1,2", "a,b", "nan,1", "0,"})
    expect_failure(net + " --box " + box, 2, "expected LO,HI");
  expect_failure(net + " --box nowhere.npz", 3, "no such file");
  // A ball and a box far from each other: also when a larger ball would reach it.
  expect_failure(at + " --radius 0.5,3 --box 2,3", 2, "no point in the box");
  EXPECT_EQ(run(at + " --radius 1.5 --box 2,3").code, 0);
}

TEST_F(LocalCli, APointHasTheLargestOfAllSlopesAroundIt) {
  const std::string net = kinks() + " --norm inf";
  const auto upper_at = [&](const std::string& row) {
    return bound(net + " --radius 0 --at " + csv("p.csv", row))["upper"]["value"].get<double>();
  };
  EXPECT_NEAR(upper_at("1,1"), 3, 1e-6);
  EXPECT_NEAR(upper_at("-1,1"), 2, 1e-6);
  EXPECT_NEAR(upper_at("1,-1"), 4, 1e-6);
  EXPECT_NEAR(upper_at("0,0"), 4, 1e-6);  // the kinks of both axes
  // A box of one point is the same question.
  const Json box = bound(net + " --box 0,0");
  EXPECT_NEAR(box["upper"]["value"].get<double>(), 4, 1e-6);
}

// The slopes at a point are those of no pair of points in a box that holds nothing else.
TEST_F(LocalCli, ABoxOfOnePointHasNoSlopes) {
  const Json found = bound(kinks() + " --at " + csv("x.csv", "1,1") + " --radius 0 --box 1,1");
  EXPECT_EQ(found["upper"]["value"], 0);
  EXPECT_TRUE(found["lower"].is_null() || found["lower"]["value"] == 0) << found["lower"];
}

TEST_F(LocalCli, HugeAndTinyBallsHaveAnAnswer) {
  const std::string at = kinks() + " --norm inf --at " + csv("x.csv", "1,1");
  for (const char* radius : {"1e300", "1e6", "1e-300", "1e-12"}) {
    const Json document = bound(at + " --radius " + radius);
    const double upper = document["upper"]["value"];
    EXPECT_EQ(document["upper"]["guarantee"], "proved");
    EXPECT_NEAR(upper, std::string(radius).find('-') == std::string::npos ? 4 : 3, 1e-5) << radius;
  }
}

TEST_F(LocalCli, ASeriesGrowsWithTheRadius) {
  const std::string at = kinks() + " --norm inf --at " + csv("x.csv", "0.5,0.1");
  const Json document = bound(at + " --radius 1/5,2,0,0.05,1/5");
  ASSERT_EQ(document["series"].size(), 4U);  // in order, each once
  const double radii[] = {0, 0.05, 0.2, 2}, constants[] = {3, 3, 4, 4};
  double lower = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const Json& row = document["series"][i];
    EXPECT_EQ(row["radius"], radii[i]);
    EXPECT_NEAR(row["upper"]["value"].get<double>(), constants[i], 1e-5);
    if (row["lower"].is_null()) continue;
    EXPECT_GE(row["lower"]["value"].get<double>(), lower);
    if (row["lower"]["guarantee"] == "proved") lower = row["lower"]["value"];
  }
  EXPECT_EQ(document["query"]["domain"]["radius"], 2);
  EXPECT_EQ(document["series"][3]["upper"], document["upper"]);
}

TEST_F(LocalCli, TimeAndInterruptKeepTheBracketOfEveryRadius) {
  std::string zeros;
  for (int i = 0; i < 784; ++i) zeros += i == 0 ? "0" : ",0";
  const std::string question = "bound --json --target-ratio 1 --norm inf " + kModels +
                               "fashion_mlp.onnx --radius 0.1,0.2,0.3 --at " +
                               csv("zeros.csv", zeros);
  const auto expect_series = [&](const Json& document) {
    ASSERT_EQ(document["series"].size(), 3U);
    double upper = 0;
    for (const Json& row : document["series"]) {
      EXPECT_EQ(row["upper"]["guarantee"], "proved");
      EXPECT_GE(row["upper"]["value"].get<double>(), upper);
      upper = row["upper"]["value"];
    }
  };
  const Outcome limited = run(question + " --effort 1/20");
  EXPECT_EQ(limited.code, 5) << limited.err;  // a target was asked for
  expect_series(Json::parse(limited.out));
  EXPECT_EQ(Json::parse(limited.out)["outcome"], "time-limit");
  const std::string out = (folder_ / "interrupted.json").string();
  EXPECT_EQ(interrupted_at("\"upper\":{", question + " --time inf >" + out,
                           (folder_ / "events").string()),
            130);
  const Json document = Json::parse(slurp(out));
  EXPECT_EQ(document["outcome"], "interrupted");
  expect_series(document);
}

TEST_F(LocalCli, ExplainsWhyLocalMethodsDidNotRun) {
  const std::string net = kinks();
  const Outcome box = run("bound --explain --norm inf --box=-1,1 " + net);
  EXPECT_EQ(box.code, 0) << box.err;
  for (const char* line : {"linear-jacobian  skipped: ", "fast-lip         skipped: ",
                           "milp             skipped: only when asked for: --methods milp",
                           "exact-global     skipped: the domain is not the whole space"})
    EXPECT_NE(box.out.find(line), std::string::npos) << line << "\n" << box.out;
  const Json named = bound("--norm inf --box=-1,1 --methods fast-lip,linear-jacobian " + net);
  for (const Json& row : named["methods"]) {
    const bool asked = row["method"] == "fast-lip" || row["method"] == "linear-jacobian";
    EXPECT_EQ(row["value"].is_number(), asked) << row;
  }
  const Json methods = Json::parse(run("methods --json").out);
  for (const char* name :
       {"fast-lip", "recur-jac", "linear-jacobian", "gram-l2", "local-lipsdp", "milp"}) {
    EXPECT_TRUE(std::ranges::any_of(methods["methods"], [&](const Json& row) {
      return row["method"] == name;
    })) << name;
  }
}

}  // namespace
