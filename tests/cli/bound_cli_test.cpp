// SPDX-License-Identifier: Apache-2.0
// bound, check, methods and activations as a user calls them.
#include "tests/cli/cli_fixture.h"
#include "tests/cli/running_program.h"

namespace {

using namespace lipscope::testing_support;

const std::string kMlp = kModels + "fashion_mlp.onnx", kCnn = kModels + "fashion_cnn.onnx";

TEST_F(Cli, BoundPrintsABracketForPeopleAndMachines) {
  const Outcome human = run("bound " + kMlp + " --effort 3/20");
  EXPECT_EQ(human.code, 0) << human.err;
  EXPECT_NE(human.out.find("<= L <="), std::string::npos) << human.out;
  EXPECT_EQ(human.err, "");
  const Json document = Json::parse(run("bound --json --effort 3/20 " + kMlp).out);
  EXPECT_EQ(document["schema"], "lipscope.bound/1");
  EXPECT_EQ(document["query"]["norm_in"], "2");
  EXPECT_EQ(document["query"]["domain"]["kind"], "everywhere");
  EXPECT_EQ(document["upper"]["guarantee"], "proved");
  // The product of the spectral norms (LAPACK) is 26.15908; the semidefinite bound is below it.
  const Json product = Json::parse(run("bound --json --methods layer-product " + kMlp).out);
  EXPECT_NEAR(product["upper"]["value"].get<double>(), 26.15908, 1e-4);
  EXPECT_TRUE(document["upper"]["method"] == "lipsdp" ||
              document["upper"]["method"] == "exact-global");
  // 23.546 within a second on an idle machine; a busy one is further away.
  EXPECT_NEAR(document["upper"]["value"].get<double>(), 23.9, 0.4);
  const double lower = document["lower"]["value"], upper = document["upper"]["value"];
  EXPECT_GT(lower, 10);
  EXPECT_GE(document["ratio"].get<double>(), upper / lower * (1 - 1e-12));
  EXPECT_EQ(document["witness"]["x"].size(), 784U);
  EXPECT_EQ(document["witness"]["direction"].size(), 784U);
  EXPECT_GE(document["methods"].size(), 3U);
  EXPECT_TRUE(document["series"].empty());
}

TEST_F(Cli, CertificatesAreAcceptedAndFalseOnesRejected) {
  const std::string proof = (folder_ / "proof.json").string();
  for (const std::string flags : {" --norm inf", " --margin 3,5", " --norm 1:inf --output 2"}) {
    const Outcome bound = run("bound --effort 1/20 " + kCnn + flags + " --certificate " + proof);
    ASSERT_EQ(bound.code, 0) << bound.err;
    const Outcome good = run("check --json " + kCnn + " " + proof);
    EXPECT_EQ(good.code, 0) << good.out;
    EXPECT_EQ(Json::parse(good.out)["valid"], true);
    const Outcome other = run("check --json " + kMlp + " " + proof);
    EXPECT_EQ(other.code, 1);
    EXPECT_NE(Json::parse(other.out)["reason"].get<std::string>().find("another model"),
              std::string::npos);
  }
  std::string text = slurp(proof);
  text[text.find("\"upper\"") + 30] ^= 1;
  EXPECT_EQ(run("check " + kCnn + " " + file("changed.json", text)).code, 1);
  expect_failure("check " + kCnn + " " + file("no.json", "hello"), 3, "no.json");
  expect_failure("check " + kCnn + " nowhere.json", 3, "nowhere.json");
}

TEST_F(Cli, DomainsAreHonoured) {
  const std::string proof = (folder_ / "proof.json").string();
  const Outcome box =
      run("bound --json --effort 4/20 " + kCnn + " --box 0.3,0.31 --certificate " + proof);
  const Json document = Json::parse(box.out);
  EXPECT_EQ(document["query"]["domain"]["kind"], "box");
  for (const double x : document["witness"]["x"]) {
    EXPECT_GE(x, 0.3);
    EXPECT_LE(x, 0.31);
  }
  EXPECT_EQ(run("check " + kCnn + " " + proof).code, 0);
  std::string zeros;
  for (int i = 0; i < 784; ++i) zeros += i == 0 ? "0" : ",0";
  const std::string at = " --at " + file("zeros.csv", zeros + "\n");
  const Json series = Json::parse(
      run("bound --json --effort 2/20 --ball inf --radius 0.2,0.1 --box -0.15,1 " + kMlp + at).out);
  EXPECT_EQ(series["query"]["domain"]["kind"], "ball+box");
  ASSERT_EQ(series["series"].size(), 2U);
  EXPECT_EQ(series["series"][0]["radius"], 0.1);
  EXPECT_EQ(series["series"][1]["upper"]["value"], series["upper"]["value"]);
}

TEST_F(Cli, EstimatesAreCalledEstimates) {
  std::string zeros;
  for (int i = 0; i < 784; ++i) zeros += i == 0 ? "0" : ",0";
  const std::string question =
      kMlp + " --margin 3,5 --radius 1e-5 --effort 20/20 --at " + file("zeros.csv", zeros + "\n");
  const Json alone = Json::parse(run("bound --json --methods sampling,clever " + question).out);
  EXPECT_EQ(alone["lower"]["guarantee"], "real");
  EXPECT_EQ(alone["upper"]["guarantee"], "estimate");
  EXPECT_TRUE(alone["ratio"].is_null());
  EXPECT_NE(alone["methods"].back()["note"].get<std::string>().find("batches"), std::string::npos);
  const Outcome human = run("bound --explain --methods sampling,clever " + question);
  EXPECT_NE(human.out.find("<= L <= inf"), std::string::npos) << human.out;
  EXPECT_NE(human.out.find("(estimate of L: "), std::string::npos) << human.out;
  EXPECT_NE(human.out.find("batches of"), std::string::npos) << human.out;
  const Json beside =
      Json::parse(run("bound --json --methods layer-product,clever " + question).out);
  EXPECT_EQ(beside["upper"]["method"], "layer-product");
  EXPECT_EQ(beside["methods"].back()["guarantee"], "estimate");
}

TEST_F(Cli, TargetsAndLimitsEndASearch) {
  const Outcome missed = run("bound --json --effort 0.3/20 --target-ratio 1.0001 " + kMlp);
  EXPECT_EQ(missed.code, 5);
  EXPECT_EQ(Json::parse(missed.out)["outcome"], "time-limit");
  const Outcome reached = run("bound --json --effort 20/20 --target-ratio 3 " + kMlp);
  EXPECT_EQ(reached.code, 0);
  EXPECT_EQ(Json::parse(reached.out)["outcome"], "target");
  const Outcome only = run("bound --json --effort 1/20 --methods dag " + kMlp);
  EXPECT_TRUE(Json::parse(only.out)["lower"].is_null());
  EXPECT_NE(run("bound --effort 1/20 --methods dag --explain " + kMlp).out.find("not asked for"),
            std::string::npos);
}

TEST_F(Cli, AnInterruptKeepsTheBestAnswer) {
  const std::string out = (folder_ / "stdout").string();
  const int code = interrupted_at(
      "\"upper\":{", "bound --json --time inf --target-ratio 1 --norm inf " + kCnn + " >" + out,
      (folder_ / "events").string());
  const Json document = Json::parse(slurp(out));
  // A search that ended by itself before the signal is no failure of the interrupt.
  if (document["outcome"] == "interrupted") {
    EXPECT_EQ(code, 130);
  }
  EXPECT_EQ(document["upper"]["guarantee"], "proved");
}

TEST_F(Cli, ProgressIsOneDocumentPerLine) {
  const Outcome result = run("bound --json --progress json --effort 1/20 " + kMlp);
  EXPECT_EQ(result.code, 0);
  std::istringstream lines(result.err);
  int events = 0;
  for (std::string line; std::getline(lines, line); ++events) {
    const Json event = Json::parse(line);
    EXPECT_EQ(event["event"], "bracket");
    EXPECT_TRUE(event.contains("lower") && event.contains("upper") && event.contains("stage"));
  }
  EXPECT_GE(events, 3);
  EXPECT_EQ(run("bound --json --progress json --quiet --effort 1/20 " + kMlp).err, "");
}

TEST_F(Cli, EveryCommandTakesTheCommonFlags) {
  for (const std::string command : {"version", "ops", "methods", "activations"}) {
    const Outcome result =
        run(command + " --time 5 --memory 4 --seed 7 --threads 1 --progress json --quiet");
    EXPECT_EQ(result.code, 0) << command << result.err;
    EXPECT_NE(result.out, "");
  }
}

TEST_F(Cli, QuestionsThatMakeNoSenseGetOneClearLine) {
  expect_failure("bound --norm 0.5 " + kMlp, 2, "at least 1");
  expect_failure("bound --norm 2: " + kMlp, 2, "'2:'");
  expect_failure("bound --norm nan " + kMlp, 2, "'nan'");
  expect_failure("bound --margin 3 " + kMlp, 2, "I,J or all");
  expect_failure("bound --margin 3,10 " + kMlp, 2, "10 entries");
  expect_failure("bound --output 10 " + kMlp, 2, "10 entries");
  expect_failure("bound --output 1 --margin 1,2 " + kMlp, 2, "exclude");
  expect_failure("bound --from nowhere " + kMlp, 2, "nowhere");
  expect_failure("bound --box 1,0 " + kMlp, 2, "above");
  expect_failure("bound --radius 1 " + kMlp, 2, "belong together");
  expect_failure("bound --methods magic " + kMlp, 2, "magic");
  expect_failure("bound --time -1 " + kMlp, 2, "at least 0");
  expect_failure("bound --memory much " + kMlp, 2, "neither a number nor a fraction");
  expect_failure("bound nowhere.onnx", 3, "nowhere.onnx");
}

TEST_F(Cli, NormsNextToOneAreNorms) {
  const Json document = Json::parse(run("bound --json --effort 2/20 --norm 1.0000001 " + kMlp).out);
  EXPECT_EQ(document["query"]["norm_in"], "1.0000001");
  EXPECT_GE(document["upper"]["value"].get<double>(), document["lower"]["value"].get<double>());
}

TEST_F(Cli, InspectShowsGains) {
  const Json document = Json::parse(run("inspect --json " + kMlp).out);
  const Json& gain = document["nodes"][1]["gain"];
  EXPECT_EQ(gain["2:2"]["guarantee"], "proved");
  EXPECT_GT(gain["inf:inf"]["value"].get<double>(), gain["2:2"]["value"].get<double>());
}

TEST_F(Cli, ListsOfMethodsAndActivations) {
  const Json methods = Json::parse(run("methods --json").out);
  EXPECT_GE(methods["methods"].size(), 3U);
  const Outcome activations = run("activations");
  EXPECT_NE(activations.out.find("HardSwish"), std::string::npos);
}

}  // namespace
