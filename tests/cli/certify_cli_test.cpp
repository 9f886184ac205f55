// SPDX-License-Identifier: Apache-2.0
// certify as a user calls it.
#include <csignal>

#include "lipscope/arrays.h"
#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;
using lipscope::ElementType;
using lipscope::Index;
using lipscope::Tensor;

class CertifyCli : public Cli {
 protected:
  // Logits x W of two entries each, with a final operator on request.
  std::string model(const std::string& last = "", std::vector<float> weights = {1, 0, 0, 1}) const {
    ModelWriter writer;
    const auto classes = static_cast<Index>(weights.size()) / 2;
    writer.input("x", {-1, 2});
    writer.weight("w", {2, classes}, weights);
    writer.node("MatMul", {"x", "w"}, {last.empty() ? "y" : "z"});
    if (!last.empty()) writer.node(last, {"z"}, {"y"});
    writer.output("y");
    return file("model" + last + std::to_string(classes) + ".onnx", writer.bytes());
  }
  std::string array(const std::string& name, const Tensor& tensor) const {
    const auto bytes = lipscope::write_npy(tensor);
    return file(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  std::string points(const std::string& name, std::vector<double> entries) const {
    const Index count = static_cast<Index>(entries.size()) / 2;
    return array(name, Tensor(ElementType::kFloat64, {count, 2}, std::move(entries)));
  }
  std::string labels(const std::string& name, std::vector<Index> entries) const {
    const Index count = static_cast<Index>(entries.size());
    return array(name, Tensor::integers({count}, std::move(entries)));
  }
  // Margins 2, 1, 0 (a tie), -1 for the first class; the third and fourth are not right.
  std::string small() const {
    return " --data " + points("x.npy", {3, 1, 2, 1, 1, 1, 1, 2}) + " --labels " +
           labels("y.npy", {0, 0, 0, 0});
  }
};

const std::string kFashion = kModels + "fashion_mlp.onnx --data " + kModels +
                             "fashion_test_images.idx3.gz --labels " + kModels +
                             "fashion_test_labels.idx1.gz --scale 1/255";

TEST_F(CertifyCli, RadiiOfALinearModelAreKnown) {
  const Outcome result = run("certify --json --norm inf --radii 0.4,0.6 " + model() + small());
  ASSERT_EQ(result.code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["schema"], "lipscope.certify/1");
  EXPECT_EQ(document["norm"], "inf");
  EXPECT_EQ(document["count"], 4);
  EXPECT_EQ(document["clean_accuracy"], 0.5);
  EXPECT_EQ(document["certified"][0]["radius"], 0.4);
  EXPECT_EQ(document["certified"][0]["accuracy"], 0.5);
  EXPECT_TRUE(document["certified"][0]["attacked_accuracy"].is_null());
  EXPECT_EQ(document["certified"][1]["accuracy"], 0.25);
  const Json& samples = document["samples"];
  EXPECT_NEAR(samples[0]["radius"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(samples[1]["radius"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(samples[2]["radius"], 0);
  EXPECT_EQ(samples[3]["radius"], 0);
  EXPECT_EQ(samples[3]["predicted"], 1);
  EXPECT_NEAR(document["margins"][0]["upper"]["value"].get<double>(), 2, 1e-9);
}

TEST_F(CertifyCli, AttackAndLocalScopeBracketTheRadius) {
  const Outcome result =
      run("certify --json --scope local --attack --norm 2 --radii 0.5,0.8 " + model() + small());
  ASSERT_EQ(result.code, 0) << result.err;
  const Json document = Json::parse(result.out);
  const double certified = document["samples"][0]["radius"];
  const double attacked = document["samples"][0]["attack_radius"];
  EXPECT_NEAR(certified, std::sqrt(2), 1e-6);
  EXPECT_LE(certified, attacked);
  EXPECT_NEAR(attacked, std::sqrt(2), 1e-4);
  EXPECT_TRUE(document["samples"][3]["attack_radius"].is_null());
  EXPECT_EQ(document["certified"][1]["attacked_accuracy"], 0.25);
}

TEST_F(CertifyCli, AFinalSquashIsLeftOutAndThatIsSaid) {
  const Json plain = Json::parse(run("certify --json " + model() + small()).out);
  for (const std::string last : {"Softmax", "LogSoftmax", "Sigmoid"}) {
    const Outcome text = run("certify " + model(last) + small());
    EXPECT_NE(text.out.find("the final " + last + " is left out"), std::string::npos) << text.out;
    const Json document = Json::parse(run("certify --json " + model(last) + small()).out);
    EXPECT_EQ(document["dropped"], last);
    EXPECT_EQ(document["samples"], plain["samples"]);
  }
}

TEST_F(CertifyCli, InferenceInAFormatCostsSomeRadius) {
  const std::string call = "certify --norm inf " + model("Softmax") + small();
  double before = Json::parse(run(call + " --json").out)["samples"][0]["radius"];
  for (const std::string format : {"float32", "float16", "bfloat16"}) {
    const Json document = Json::parse(run(call + " --json --inference " + format).out);
    EXPECT_EQ(document["inference"], format);
    const double radius = document["samples"][0]["radius"];
    EXPECT_LT(radius, before);
    EXPECT_GT(radius, 0.9);
    before = radius;
  }
  EXPECT_NE(run(call + " --inference float16").out.find("as float16 arithmetic computes them"),
            std::string::npos);
  expect_failure(call + " --inference float8", 2, "--inference");
}

TEST_F(CertifyCli, RequirementsDecideTheExitCode) {
  const std::string call = "certify --norm inf " + model() + small();
  EXPECT_EQ(run(call + " --require 0.4:50%").code, 0);
  EXPECT_EQ(run(call + " --require 0.4:51%").code, 1);  // half of all are not right at all
  EXPECT_EQ(run(call + " --require 0.6:50%").code, 5);
  EXPECT_EQ(run(call + " --require 0.6:50% --attack").code, 1);
  for (const std::string bad : {"0.5", "0.5:70", "x:70%", "0.5:-1%", "0.5:101%", ":%"})
    expect_failure(call + " --require " + bad, 2, "--require");
}

TEST_F(CertifyCli, BadInputIsNamed) {
  const std::string net = "certify " + model();
  const std::string x = " --data " + points("x.npy", {3, 1, 2, 1}), y = " --labels ";
  expect_failure(net + x, 2, "--labels");
  expect_failure(net + x + y + labels("a.npy", {0, 2}), 3, "2 classes");
  expect_failure(net + x + y + labels("b.npy", {0}), 3, "2 samples");
  expect_failure(net + x + y + labels("c.npy", {0, -1}), 3, "label 1");
  expect_failure(net + x + y + file("d.csv", "0\n0.5\n"), 3, "label 1");
  expect_failure(net + x + y + "nowhere.npy", 3, "nowhere.npy");
  const std::string good = y + labels("e.npy", {0, 0});
  expect_failure(net + " --data " + points("n.npy", {3, 1, NAN, 1}) + good, 3, "sample 1");
  expect_failure(net + " --data " + file("f.csv", "1,2,3\n") + good, 3, "entries");
  expect_failure(net + x + good + " --norm 2:1", 2, "--norm");
  expect_failure(net + x + good + " --norm 0.5", 2, "norm");
  expect_failure(net + x + good + " --radii -1", 2, "radii");
  expect_failure(net + x + good + " --std 0", 2, "--std");
  expect_failure("certify " + model("", {1, 1}) + x + good, 4, "one output");
}

TEST_F(CertifyCli, AccuracyNearChanceGivesAHint) {
  const Outcome result = run(
      "certify --limit 100 --time 1 " + kModels + "fashion_cnn.onnx --data " + kModels +
      "fashion_test_images.idx3.gz --labels " + kModels + "fashion_test_labels.idx1.gz --scale=-1");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("near chance"), std::string::npos) << result.out;
}

TEST_F(CertifyCli, NormalisationOutsideTheModelIsAnOptionWithAWarning) {
  const Outcome result = run("certify --json --norm inf --mean 1 --std 2 " + model() + small());
  const Json document = Json::parse(result.out);
  EXPECT_NEAR(document["samples"][0]["radius"].get<double>(), 0.5, 1e-9);
  EXPECT_NE(document["hints"][0].get<std::string>().find("outside the model"), std::string::npos);
}

TEST_F(CertifyCli, AnInterruptedRunGoesOn) {
  const std::string log = (folder_ / "log.jsonl").string();
  const std::string call = "certify --scope local --attack --norm 2 " + model() + " --data " +
                           points("six.npy", {3, 1, 2, 1, 4, 1, 5, 1, 6, 1, 7, 1}) + " --labels " +
                           labels("zeros.npy", {0, 0, 0, 0, 0, 0}) + " --resume " + log;
  const Json whole = Json::parse(run(call + " --json").out);
  const std::string lines = slurp(log);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 7);
  // The first lines with one distance changed, to see that it is taken over; the last line cut off.
  std::size_t end = 0;
  for (int k = 0; k < 4; ++k) end = lines.find('\n', end) + 1;
  std::string kept = lines.substr(0, end);
  const std::size_t at = kept.rfind("\"attack_radius\":");
  kept.replace(at, kept.find('}', at) - at, "\"attack_radius\":123");
  file("log.jsonl", kept + "{\"index\":5,\"rad");
  const Json again = Json::parse(run(call + " --json").out);
  int taken = 0;
  for (std::size_t s = 0; s < 6; ++s) {
    const Json &a = again["samples"][s], &b = whole["samples"][s];
    taken += a["attack_radius"] == 123 ? 1 : 0;
    EXPECT_NEAR(a["radius"].get<double>(), b["radius"].get<double>(), 1e-6);
  }
  EXPECT_EQ(taken, 1);
  const std::string now = slurp(log);
  EXPECT_EQ(std::count(now.begin(), now.end(), '\n'), 7);
  expect_failure(call + " --seed 2", 3, "another model");
  file("log.jsonl", "hello\n");
  expect_failure(call, 3, "not a file of earlier samples");
}

TEST_F(CertifyCli, FashionIsCertifiedOnBothScopes) {
  const Json global = Json::parse(run("certify --json --time 8 --radii 0.01 " + kFashion).out);
  EXPECT_EQ(global["clean_accuracy"], 0.904);
  EXPECT_EQ(global["images"]["samples"].size(), 24U);
  EXPECT_GT(global["certified"][0]["accuracy"].get<double>(), 0.8);
  const Json local = Json::parse(
      run("certify --json --scope local --attack --limit 4 --parts 20 " + kFashion).out);
  for (std::size_t s = 0; s < 4; ++s) {
    const Json& sample = local["samples"][s];
    EXPECT_GE(sample["radius"].get<double>(), global["samples"][s]["radius"].get<double>() / 2);
    if (sample["attack_radius"].is_null()) continue;
    EXPECT_LE(sample["radius"].get<double>(), sample["attack_radius"].get<double>());
  }
}

TEST_F(CertifyCli, ProgressSaysRateAndRest) {
  const Outcome result = run("certify --progress json --attack --norm inf " + model() + small());
  EXPECT_NE(result.err.find("\"event\":\"count\""), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("seconds_left"), std::string::npos);
}

}  // namespace
