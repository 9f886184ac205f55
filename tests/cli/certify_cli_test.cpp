// SPDX-License-Identifier: Apache-2.0
// certify as a user calls it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

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

// Nothing is said about a class without samples; arrays are named with what was read from them.
TEST_F(CertifyCli, ClassesWithoutSamplesAndSizesOfSamples) {
  const std::string net = model();
  const Outcome one = run("certify " + net + " --effort 1/20 --data " + points("one.npy", {3, 1}) +
                          " --labels " + labels("zero.npy", {0}));
  EXPECT_NE(one.out.find("  1      0        -         -\n"), std::string::npos) << one.out;
  expect_failure("certify " + net + " --data " + points("two.npy", {3, 1, 2, 1}) + " --labels " +
                     labels("zero.npy", {0}),
                 3, "2 samples of 2 entries");
  const std::string three = array("three.npy", Tensor::vector(std::vector<double>{1, 2, 3}));
  expect_failure("eval " + net + " --input " + three, 3, three + ": input 'x'");
  expect_failure("bound " + net + " --radius 1 --at " + three, 3, three + ": input 'x'");
}

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
  // A variable that was never set must not be taken for no requirement.
  expect_failure(call + " --require ''", 2, "--require");
  expect_failure(call + " --resume ''", 2, "--resume");
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
  expect_failure(net + x + good + " --std inf", 2, "--std");
  expect_failure(net + x + good + " --mean nan", 2, "--mean");
  expect_failure(net + x + y + labels("one.npy", {1, 2}), 3, "count from 1");
  expect_failure(net + x + y + labels("hot.npy", {1, 0, 0, 1}), 3, "one-hot");
  expect_failure(net + " --data " + points("none.npy", {}) + y + labels("none_y.npy", {}), 3,
                 "no samples");
  expect_failure(net + " --data " + folder_.string() + good, 3, "directory");
  expect_failure("certify " + model("", {1, 1}) + x + good, 4, "one output");
}

// Nothing is computed first, and nothing is left behind.
TEST_F(CertifyCli, OutputsThatCannotBeWrittenAreRefusedBeforehand) {
  const std::string call = "certify " + kFashion + " --time 60";
  const auto start = std::chrono::steady_clock::now();
  expect_failure(call + " -o " + (folder_ / "nowhere/x.json").string(), 3, "No such file");
  expect_failure(call + " -o " + folder_.string(), 3, "Is a directory");
  expect_failure(call + " --resume " + (folder_ / "nowhere/x.jsonl").string(), 3, "No such file");
  expect_failure(call + " --resume " + folder_.string(), 3, "Is a directory");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_F(CertifyCli, DevicesAndLinksStayWhatTheyAre) {
  const std::string call = "certify " + model() + small();
  const fs::path pipe = folder_ / "pipe", target = folder_ / "target.txt", link = folder_ / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(run(call + " -o " + pipe.string()).code, 0);
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
  expect_failure(call + " -o " + pipe.string(), 3, "nobody reads");  // and does not wait
  std::ofstream(target) << "old";
  fs::create_symlink(target, link);
  EXPECT_EQ(run(call + " -o " + link.string()).code, 0);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_NE(slurp(target).find("clean accuracy"), std::string::npos);
  EXPECT_FALSE(fs::exists(target.string() + ".part"));
  if (fs::is_character_file("/dev/full")) {
    const std::string program = LIPSCOPE_PROGRAM;
    const int status = std::system((program + " " + call + " >/dev/full 2>/dev/null").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 3);
  }
}

// Shares of groups do not have the order of the logits, so they are certified as they are.
TEST_F(CertifyCli, ASoftmaxOverGroupsIsKept) {
  const auto grouped = [&](Index axis) {
    ModelWriter writer;
    writer.input("x", {-1, 4});
    writer.integers("shape", {3}, {-1, 2, 2});
    writer.node("Reshape", {"x", "shape"}, {"pairs"});
    auto* softmax = writer.node("Softmax", {"pairs"}, {"shares"});
    auto* attribute = softmax->add_attribute();
    attribute->set_name("axis");
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(axis);
    writer.node("Flatten", {"shares"}, {"y"});
    writer.output("y");
    return file("grouped" + std::to_string(axis) + ".onnx", writer.bytes());
  };
  // The largest logit is 9, the largest share that of -1 against -9.
  const std::string data =
      " --data " +
      array("g.npy", Tensor(ElementType::kFloat64, {1, 4}, std::vector<double>{9, 8.9, -1, -9})) +
      " --labels " + labels("g_y.npy", {2});
  const Outcome result = run("certify --json --scope local --effort 1/4 " + grouped(2) + data);
  ASSERT_EQ(result.code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_TRUE(document["dropped"].is_null());
  EXPECT_EQ(document["samples"][0]["predicted"], 2);
  EXPECT_GT(document["samples"][0]["radius"].get<double>(), 0);
}

TEST_F(CertifyCli, ASquashInAnotherShapeIsLeftOutToo) {
  ModelWriter writer;
  writer.input("x", {-1, 2});
  writer.integers("column", {3}, {-1, 2, 1});
  auto* softmax = writer.node("Softmax", {"x"}, {"shares"});
  auto* attribute = softmax->add_attribute();
  attribute->set_name("axis");
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(1);
  writer.node("Reshape", {"shares", "column"}, {"y"});
  writer.output("y");
  const Outcome result =
      run("certify --json --norm inf " + file("column.onnx", writer.bytes()) + small());
  ASSERT_EQ(result.code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["dropped"], "Softmax");
  EXPECT_NEAR(document["samples"][0]["radius"].get<double>(), 1, 1e-9);
}

TEST_F(CertifyCli, WholeNumbersWithoutScaleGiveAHint) {
  const std::string call = "certify " + model() + " --data " + points("w.npy", {255, 0, 200, 3}) +
                           " --labels " + labels("w_y.npy", {0, 0});
  EXPECT_NE(run(call).out.find("--scale 1/255"), std::string::npos);
  EXPECT_EQ(run(call + " --scale 1/255").out.find("note:"), std::string::npos);
}

TEST_F(CertifyCli, AccuracyNearChanceGivesAHint) {
  const std::string call = "certify --limit 100 " + kModels + "fashion_cnn.onnx --data " + kModels +
                           "fashion_test_images.idx3.gz --labels " + kModels +
                           "fashion_test_labels.idx1.gz --scale=-1";
  const Outcome result = run(call + " --effort 0.01");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("near chance"), std::string::npos) << result.out;
  // Samples that the time did not suffice for are not wrong ones.
  const Outcome none = run(call + " --time 0");
  EXPECT_EQ(none.out.find("near chance"), std::string::npos) << none.out;
}

TEST_F(CertifyCli, NormalisationOutsideTheModelIsAnOptionWithAWarning) {
  const Outcome result = run("certify --json --norm inf --mean 1 --std 2 " + model() + small());
  const Json document = Json::parse(result.out);
  EXPECT_NEAR(document["samples"][0]["radius"].get<double>(), 0.5, 1e-9);
  EXPECT_NE(document["hints"][0].get<std::string>().find("outside the model"), std::string::npos);
}

TEST_F(CertifyCli, AnInterruptedRunGoesOn) {
  const std::string log = (folder_ / "log.jsonl").string();
  const std::string call = "certify --scope local --attack --norm 2 --effort 0.5 " + model() +
                           " --data " + points("six.npy", {3, 1, 2, 1, 4, 1, 5, 1, 6, 1, 7, 1}) +
                           " --labels " + labels("zeros.npy", {0, 0, 0, 0, 0, 0}) + " --resume " +
                           log;
  const Json whole = Json::parse(run(call + " --json").out);
  const std::string lines = slurp(log);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 7);
  // Some of the lines, the last one cut off: the others are not computed again.
  std::size_t end = 0;
  for (int k = 0; k < 4; ++k) end = lines.find('\n', end) + 1;
  file("log.jsonl", lines.substr(0, end) + "{\"sample\":\"5\",\"rad");
  const Json again = Json::parse(run(call + " --json").out);
  EXPECT_EQ(again["samples"], whole["samples"]);
  const std::string now = slurp(log);
  EXPECT_EQ(std::count(now.begin(), now.end(), '\n'), 7);
  expect_failure(call + " --seed 2", 3, "another model");
  expect_failure(call + " --parts 7", 3, "another model");
  // What is no such file, and lines that this run cannot have written; the file stays as it is.
  const std::string first = lines.substr(0, lines.find('\n') + 1);
  for (const std::string& other :
       {std::string("hello\n"), std::string("hello"), std::string("{\"schema\":5}\n"),
        std::string("{\"schema\":\"lipscope.bound/1\"}\n")}) {
    file("log.jsonl", other);
    expect_failure(call, 3, "not a file of earlier samples");
    EXPECT_EQ(slurp(log), other);
  }
  file("log.jsonl", "{\"schema\":\"lipscope.certify-samples/1\"}\n");
  expect_failure(call, 3, "another version");
  const auto row = [](const std::string& radius, const std::string& rival,
                      const std::string& attack, const std::string& rest = "") {
    return R"({"sample":"a","radius":)" + radius + R"(,"method":"m","rival":)" + rival +
           R"(,"attack_radius":)" + attack +
           R"(,"attacked":true,"whole_failed":null,"cases_failed":null,"complete":true)" +
           R"(,"check":"0")" + rest + "}\n";
  };
  for (const std::string& line :
       {std::string("garbage\n"), std::string("{\"sample\":\"a\"}\n"), row("-1", "1", "null"),
        row("\"x\"", "1", "null"), row("1", "2", "null"), row("1", "\"x\"", "null"),
        row("2", "1", "1"), row("1", "1", "null", ",\"more\":1"),
        row("1", "1", "null", ",\"rival\":1"), row("1e999", "1", "null"), row("1", "1", "null"),
        std::string("\n"), std::string(300'000, '[') + "\n"}) {
    file("log.jsonl", first + line);
    expect_failure(call, 3, ": line 2: ");
    EXPECT_EQ(slurp(log), first + line);
  }
  // A radius that was made larger by hand.
  std::string forged = lines.substr(0, lines.find('\n', first.size()) + 1);
  const std::size_t at = forged.find("\"radius\":") + 9;
  forged.replace(at, forged.find(',', at) - at, "0.0625");
  file("log.jsonl", forged);
  expect_failure(call, 3, "checksum");
  // Nothing but the beginning of the first line: nothing was done yet.
  file("log.jsonl", first.substr(0, 50));
  EXPECT_EQ(Json::parse(run(call + " --json").out)["samples"], whole["samples"]);
}

// Samples are known by themselves, wherever they stand and however many there are.
TEST_F(CertifyCli, SamplesAreResumedInAnotherSelection) {
  const std::string log = (folder_ / "log.jsonl").string();
  const std::string call =
      "certify --scope local --effort 0.5 --json " + model() + " --resume " + log + " --data ";
  const std::string three =
      points("a.npy", {3, 1, 2, 1, 4, 1}) + " --labels " + labels("a_y.npy", {0, 0, 0});
  const Json few = Json::parse(run(call + three + " --limit 2").out);
  const std::string first = slurp(log);
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 3);
  const Json all = Json::parse(run(call + three).out);
  EXPECT_EQ(all["samples"][1], few["samples"][1]);
  // The same in another order, and one of them with another label.
  const Json turned = Json::parse(
      run(call + points("b.npy", {4, 1, 3, 1, 2, 1}) + " --labels " + labels("b_y.npy", {0, 0, 1}))
          .out);
  EXPECT_EQ(turned["samples"][1]["radius"], all["samples"][0]["radius"]);
  EXPECT_EQ(turned["samples"][2]["radius"], 0);
  const std::string now = slurp(log);
  EXPECT_EQ(std::count(now.begin(), now.end(), '\n'), 4) << now;
}

TEST_F(CertifyCli, IntegersNeedAScaleThatIsSaid) {
  const std::string net = "certify --norm inf --effort 1/10 " + model();
  const std::string bytes =
      array("bytes.npy", Tensor::integers({2, 2}, std::vector<Index>{255, 0, 200, 3}));
  const std::string data = " --data " + bytes + " --labels " + labels("bytes_y.npy", {0, 0});
  expect_failure(net + data, 2, "--scale 1/255");
  expect_failure(net + data, 2, "--scale 1 if");
  expect_failure(net + data + " --mean 3", 2, "--scale 1/255");
  const Json raw = Json::parse(run(net + data + " --scale 1 --json").out);
  EXPECT_EQ(raw["data"]["scale"], 1);
  EXPECT_EQ(raw["data"]["range"], Json::parse("[0,255]"));
  EXPECT_EQ(raw["data"]["unit"], "the data as they are");
  EXPECT_TRUE(raw["hints"].empty()) << raw["hints"];
  const Outcome text = run(net + data + " --scale 1/255");
  EXPECT_NE(text.out.find("data from 0 to 1; radii in units of the data times 1/255"),
            std::string::npos)
      << text.out;
  const Json scaled = Json::parse(run(net + data + " --scale 1/255 --json").out);
  EXPECT_EQ(scaled["data"]["range"], Json::parse("[0,1]"));
  EXPECT_EQ(scaled["data"]["count"], 2);
  EXPECT_EQ(scaled["data"]["file"], bytes);
  EXPECT_EQ(scaled["data"]["sha256"].get<std::string>().size(), 64U);
  EXPECT_NEAR(scaled["samples"][0]["radius"].get<double>() * 255,
              raw["samples"][0]["radius"].get<double>(), 1e-9);
  expect_failure("certify " + kModels + "fashion_mlp.onnx --data " + kModels +
                     "fashion_test_images.idx3.gz --labels " + kModels +
                     "fashion_test_labels.idx1.gz",
                 2, "--scale 1/255");
}

TEST_F(CertifyCli, RadiiAreFixedOnesByDefault) {
  const auto radii = [&](const std::string& flags) {
    std::vector<double> list;
    const Json document =
        Json::parse(run("certify --json --effort 1/20 " + flags + model() + small()).out);
    for (const Json& row : document["certified"]) list.push_back(row["radius"]);
    return list;
  };
  EXPECT_EQ(radii(""), (std::vector<double>{0.02, 0.05, 0.1, 36.0 / 255, 0.25, 0.5, 1, 2}));
  EXPECT_EQ(radii("--scale 7 "), radii(""));
  EXPECT_EQ(radii("--norm inf ")[3], 8.0 / 255);
  EXPECT_EQ(radii("--norm 1 ").back(), 10);
  EXPECT_EQ(radii("--require 0.3:1% ")[5], 0.3);
}

TEST_F(CertifyCli, PartsMergeToTheWhole) {
  std::vector<double> x;
  std::vector<Index> y;
  for (int s = 0; s < 21; ++s) {
    x.insert(x.end(), {1 + 0.1 * s, 1.0});
    y.push_back(s == 5 ? 1 : 0);
  }
  const std::string call = "certify --scope local --attack --effort 0.5 --require 0.3:50% " +
                           model() + " --data " + points("m.npy", x) + " --labels " +
                           labels("m_y.npy", y);
  const auto without_seconds = [](Json document) {
    document.erase("seconds");
    document.erase("seconds_constants");
    return document;
  };
  const Json whole = Json::parse(run(call + " --json").out);
  std::vector<std::string> parts;
  for (int part = 1; part <= 4; ++part) {
    parts.push_back((folder_ / ("part" + std::to_string(part) + ".json")).string());
    const Outcome done =
        run(call + " --json --shard " + std::to_string(part) + "/4 -o " + parts.back());
    EXPECT_TRUE(done.code == 0 || done.code == 5 || done.code == 1) << done.err;
  }
  EXPECT_EQ(Json::parse(slurp(parts[1]))["samples"][1]["index"], 5);
  EXPECT_EQ(Json::parse(slurp(parts[1]))["shard"], "2/4");
  const std::string all = (folder_ / "all.json").string();
  const std::string four = parts[2] + " " + parts[0] + " " + parts[3] + " " + parts[1];
  const Outcome merged = run("merge " + four + " -o " + all);
  ASSERT_EQ(merged.code, 0) << merged.err;
  EXPECT_EQ(without_seconds(Json::parse(slurp(all))), without_seconds(whole));
  EXPECT_EQ(run("report " + all + " -o " + (folder_ / "all.html").string()).code, 0);
  // Twice, not at all, another question, something else.
  expect_failure("merge " + four + " " + parts[0], 3, "sample 0 is in");
  expect_failure("merge " + parts[0] + " " + parts[2], 3, "first 1, 3, 5");
  const Json some = Json::parse(run("merge --json --partial " + parts[0] + " " + parts[2]).out);
  EXPECT_EQ(some["missing"], 10);
  EXPECT_EQ(some["count"], 11);
  const std::string other = (folder_ / "other.json").string();
  run(call + " --json --norm inf --shard 2/4 -o " + other);
  expect_failure("merge " + parts[0] + " " + other, 2, "norm differs");
  run(call + " --json --parts 3 --shard 2/4 -o " + other);
  expect_failure("merge " + parts[0] + " " + other, 2, "options differs");
  run(call + " --json --limit 20 --shard 2/4 -o " + other);
  expect_failure("merge " + parts[0] + " " + other, 2, "data.limit differs");
  run(call + " --json --radii 3 --shard 2/4 -o " + other);
  expect_failure("merge " + parts[0] + " " + other, 2, "radii differ");
  // Rows that contradict themselves.
  Json changed = whole;
  changed["samples"][9]["attack_radius"] = 0.5 * changed["samples"][9]["radius"].get<double>();
  expect_failure("merge " + file("attacked.json", changed.dump()), 3, "within its radius");
  changed = whole;
  changed["samples"][5]["radius"] = 0.1;
  expect_failure("merge " + file("wrong.json", changed.dump()), 3, "sample 5 has a radius");
  expect_failure("merge " + parts[0] + " " + file("no.json", "{}"), 3, "can be merged");
  expect_failure("merge " + parts[0] + " nowhere.json", 3, "nowhere.json");
  expect_failure("merge " + four + " -o " + parts[0], 2, "overwrite");
}

TEST_F(CertifyCli, ShardsAreCountedFromOne) {
  const std::string call = "certify --effort 1/20 " + model() + small() + " --shard ";
  for (const std::string bad :
       {"0/4", "5/4", "1", "1/", "/4", "a/b", "1/0", "-1/4", "1/4/2", "1.5/4"})
    expect_failure(call + bad, 2, "--shard");
  expect_failure(call + "5/5", 2, "has none");  // of four samples
}

// Ctrl-C as a user types it, as soon as some samples are done.
TEST_F(CertifyCli, CtrlCKeepsWhatIsDoneAndTheRestFollows) {
  constexpr Index kCount = 1500;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  ModelWriter writer;
  writer.input("x", {-1, 6});
  const auto weights = [&](const std::string& name, Index in, Index out) {
    std::vector<float> entries(static_cast<std::size_t>(in * out));
    for (float& e : entries) e = static_cast<float>(normal(random));
    writer.weight(name, {in, out}, entries);
  };
  weights("a", 6, 12);
  weights("b", 12, 3);
  writer.node("MatMul", {"x", "a"}, {"h"});
  writer.node("Relu", {"h"}, {"r"});
  writer.node("MatMul", {"r", "b"}, {"y"});
  writer.output("y");
  std::vector<double> x(6 * kCount);
  for (double& e : x) e = normal(random);
  const fs::path log = folder_ / "keep.jsonl", answer = folder_ / "answer.json";
  const std::string call =
      "certify " + file("net.onnx", writer.bytes()) + " --data " +
      array("many.npy", Tensor(ElementType::kFloat64, {kCount, 6}, std::move(x))) + " --labels " +
      labels("many_y.npy", std::vector<Index>(kCount, 1)) +
      " --scope local --attack --json --quiet --time 200 --resume ";
  const Json whole =
      Json::parse(run(call + (folder_ / "other.jsonl").string()).out);  // not interrupted

  // Samples that are done.
  const auto lines = [&] {
    const std::string text = slurp(log), done = "\"complete\":true";
    int count = 0;
    for (std::size_t at = 0; (at = text.find(done, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const std::string command = "exec " + std::string(LIPSCOPE_PROGRAM) + " " + call + log.string() +
                              " -o " + answer.string() + " 2>/dev/null";
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  for (int wait = 0; wait < 20'000 && lines() < 5; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const auto done = lines();
  EXPECT_GE(done, 5);
  EXPECT_LT(done, whole["clean_accuracy"].get<double>() * kCount);
  // What was printed is a whole document, and all its radii hold.
  const Json partial = Json::parse(slurp(answer));
  EXPECT_EQ(partial["outcome"], "interrupted");
  ASSERT_EQ(partial["samples"].size(), static_cast<std::size_t>(kCount));
  for (const Json& sample : whole["samples"]) {
    if (sample["attack_radius"].is_null()) continue;
    EXPECT_LE(partial["samples"][sample["index"].get<std::size_t>()]["radius"],
              sample["attack_radius"]);
  }
  const Outcome rest = run(call + log.string());
  EXPECT_EQ(rest.code, 0) << rest.err;
  const Json end = Json::parse(rest.out);
  EXPECT_EQ(end["outcome"], "finished");
  for (std::size_t s = 0; s < kCount; ++s) {
    EXPECT_EQ(end["samples"][s]["complete"], true);
    const double radius = whole["samples"][s]["radius"];
    EXPECT_NEAR(end["samples"][s]["radius"].get<double>(), radius, 0.05 * radius);
  }
}

TEST_F(CertifyCli, FashionIsCertifiedOnBothScopes) {
  const Json global = Json::parse(run("certify --json --effort 2/5 --radii 0.01 " + kFashion).out);
  EXPECT_EQ(global["clean_accuracy"], 0.904);
  EXPECT_GE(global["images"]["samples"].size(), 16U);
  EXPECT_LE(global["images"]["samples"].size(), 24U);
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
