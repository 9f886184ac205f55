// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/cli_fixture.h"

namespace {

using namespace lipscope::testing_support;

TEST_F(Cli, InspectSaysWhatItHasWhenTheTimeIsOver) {
  const std::string model = kModels + "fashion_mlp.onnx";
  const Json whole = Json::parse(run("inspect --json --time 60 " + model).out);
  EXPECT_EQ(whole["outcome"], "finished");
  // Enough to load the model, and not for every gain.
  std::string outcome;
  Json found;
  for (int effort = 1; effort < 4096 && outcome.empty(); effort *= 2) {
    const Outcome part = run("inspect --json --effort " + std::to_string(effort) + "e-5 " + model);
    if (part.code == 0) found = Json::parse(part.out), outcome = found["outcome"];
  }
  EXPECT_EQ(outcome, "time-limit");
  ASSERT_EQ(found["nodes"].size(), whole["nodes"].size());
  const std::string result = file("inspect.json", found.dump());
  EXPECT_EQ(run("report " + result + " --format markdown").code, 0);
  for (std::size_t n = 0; n < whole["nodes"].size(); ++n) {
    for (const char* norms : {"1:1", "2:2", "inf:inf"}) {
      const Json& early = found["nodes"][n]["gain"][norms];
      if (early.is_null()) continue;
      EXPECT_EQ(early["guarantee"], "proved");
      EXPECT_GE(early["value"], whole["nodes"][n]["gain"][norms]["value"]);
    }
  }
}

TEST_F(Cli, InspectWritesLinesAsTheyComeOnATerminal) {
  const std::string model = kModels + "fashion_mlp.onnx";
  const std::string plain = run("inspect --time 60 " + model).out;
  const fs::path typed = folder_ / "typed";
  const std::string command = std::string("script -qec '") + LIPSCOPE_PROGRAM +
                              " inspect --time 60 " + model + "' /dev/null </dev/null >" +
                              typed.string() + " 2>/dev/null";
  if (std::system("command -v script >/dev/null 2>&1") != 0) GTEST_SKIP() << "no script(1)";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string shown = slurp(typed);
  std::erase(shown, '\r');
  EXPECT_EQ(shown, plain);
}

TEST_F(Cli, InspectDescribesTheModel) {
  const Outcome human = run("inspect " + kModels + "fashion_mlp.onnx");
  EXPECT_EQ(human.code, 0) << human.err;
  EXPECT_NE(human.out.find("109 386 parameters"), std::string::npos) << human.out;
  const Json document = Json::parse(run("inspect --json " + kModels + "fashion_mlp.onnx").out);
  EXPECT_EQ(document["schema"], "lipscope.inspect/1");
  EXPECT_EQ(document["parameters"], 109386);
  EXPECT_EQ(document["outputs"][0]["shape"], Json({1, 10}));
  EXPECT_EQ(document["nodes"][1]["op"], "Gemm");
  EXPECT_EQ(document["nodes"][1]["supported"], true);
}

TEST_F(Cli, EvalAgreesWithPyTorchInBothPrecisions) {
  for (const std::string model : {"fashion_mlp", "fashion_cnn"}) {
    const std::string expected = kModels + model + ".expected.npz";
    for (const std::string precision : {"float64", "float32"}) {
      const Outcome result =
          run("eval " + kModels + model + ".onnx --json --input " + expected + " --reference " +
              expected + " --tolerance 1e-5 --precision " + precision);
      EXPECT_EQ(result.code, 0) << result.err << result.out.substr(0, 300);
      const Json document = Json::parse(result.out);
      EXPECT_EQ(document["schema"], "lipscope.eval/1");
      EXPECT_EQ(document["outputs"][0]["shape"], Json({3, 10}));
      EXPECT_EQ(document["outputs"][0]["data"].size(), 30U);
      EXPECT_LE(document["max_error"].get<double>(), 1e-5);
    }
  }
}

TEST_F(Cli, EvalClassifiesTheBundledImages) {
  const std::string labels = slurp(kModels + "fashion_test_labels.idx1.gz");
  ASSERT_FALSE(labels.empty());
  const Outcome result =
      run("eval " + kModels + "fashion_cnn.onnx --json --scale 1/255 --precision float32 --input " +
          kModels + "fashion_test_images.idx3.gz");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["outputs"][0]["shape"], Json({500, 10}));
}

TEST_F(Cli, EvalReportsADifferenceWithExitOne) {
  const std::string expected = kModels + "fashion_mlp.expected.npz";
  const Outcome result =
      run("eval " + kModels + "fashion_cnn.onnx --input " + expected + " --reference " + expected);
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.out.find("differs"), std::string::npos);
}

TEST_F(Cli, OutputFileIsCompleteOrAbsent) {
  const std::string target = (folder_ / "result.json").string();
  EXPECT_EQ(run("inspect --json -o " + target + " " + kModels + "fashion_mlp.onnx").code, 0);
  EXPECT_EQ(Json::parse(slurp(target))["schema"], "lipscope.inspect/1");
  const std::string other = (folder_ / "other.json").string();
  EXPECT_EQ(run("inspect --json -o " + other + " nothing.onnx").code, 3);
  EXPECT_FALSE(fs::exists(other));
  EXPECT_EQ(run("inspect -o /nonexistent/folder/x.json " + kModels + "fashion_mlp.onnx").code, 3);
}

// The kernel of OpenBLAS: the processor's, unless the user says another.
TEST_F(Cli, RunsTheKernelsOfTheProcessor) {
  const auto version = [&](const std::string& before) {
    return Json::parse(run_with(before, "version --json --threads 1").out);
  };
  const Json own = version("env -u OPENBLAS_CORETYPE");
  EXPECT_FALSE(own["blas"]["kernel"].get<std::string>().empty());
  EXPECT_EQ(own["blas"]["kernel"], own["blas"]["recommended"]);
  EXPECT_EQ(own["threads"], 1);
  EXPECT_TRUE(own["processor"].is_string());
  const std::string config = own["blas"]["config"], number = own["blas"]["version"];
  EXPECT_NE(config.find(number), std::string::npos);
  if (config.find("DYNAMIC_ARCH") == std::string::npos)
    GTEST_SKIP() << "this OpenBLAS has the kernels of one processor";
  const Json chosen = version("env OPENBLAS_CORETYPE=Nehalem");
  EXPECT_EQ(chosen["blas"]["kernel"], "Nehalem");
  // Several kernels may be as good as the processor: the one that is told is one of them.
  const std::string better = chosen["blas"]["recommended"];
  const Json again = version("env OPENBLAS_CORETYPE=" + better);
  EXPECT_EQ(again["blas"]["kernel"], better);
  EXPECT_EQ(again["blas"]["recommended"], better);
  // Not for ever: where the variable does nothing, the program goes on with what it has.
  EXPECT_EQ(run_with("env -u OPENBLAS_CORETYPE LIPSCOPE_RESTARTED=1", "version").code, 0);
}

// What the program was given is there after it started itself again.
TEST_F(Cli, StartsAgainUnseen) {
  const std::string env = "env -u OPENBLAS_CORETYPE ";
  EXPECT_EQ(run_with(env, "bound nothing.onnx").code, 3);
  EXPECT_EQ(run_with(env, "bound --no-such-flag").code, 2);
  const Outcome rows = run_with("printf '1,2\\n' | " + env, "softmax /dev/stdin --json");
  ASSERT_EQ(rows.code, 0) << rows.err;
  EXPECT_EQ(rows.out, run_with("printf '1,2\\n' | env OPENBLAS_CORETYPE=Prescott ",
                               "softmax /dev/stdin --json")
                          .out);
  // Started by the loader, the program is not the file that runs.
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  if (fs::exists(loader)) {
    EXPECT_EQ(run_with(env + loader, "version").code, 0);
  }
}

TEST_F(Cli, ListsAndVersions) {
  EXPECT_NE(run("ops").out.find("Gemm"), std::string::npos);
  EXPECT_NE(run("ops").out.find("products with all Jacobians on a box"), std::string::npos);
  const Json ops = Json::parse(run("ops --json").out);
  EXPECT_GE(ops["ops"].size(), 100U);
  std::set<std::string> named;
  for (const Json& row : ops["facets"]) named.insert(row["facet"].get<std::string>());
  for (const Json& row : ops["ops"]) {
    const auto facets = row["facets"].get<std::set<std::string>>();
    EXPECT_TRUE(std::ranges::includes(named, facets)) << row["op"];
    EXPECT_TRUE(facets.contains("derivative") || row["derivative"] == false) << row["op"];
    if (row["op"] == "Softmax") {
      EXPECT_TRUE(facets.contains("box-product") && !facets.contains("elementwise"));
    }
    if (row["op"] == "Relu") {
      EXPECT_TRUE(facets.contains("elementwise") && facets.contains("rounding"));
    }
  }
  EXPECT_NE(run("activations").out.find("1.12890414518"), std::string::npos);
  const Json activations = Json::parse(run("activations --json").out);
  for (const Json& row : activations["activations"]) {
    EXPECT_TRUE(row["name"] != "Softplus" || row["lipschitz"]["value"] == 1.0);
    EXPECT_TRUE(row["name"] != "Floor" || row["lipschitz"]["value"] == "inf");
  }
  EXPECT_EQ(Json::parse(run("version --json").out)["schema"], "lipscope.version/1");
  EXPECT_EQ(run("--help").code, 0);
  for (const std::string command : {"inspect", "eval", "ops", "activations", "version"}) {
    const Outcome help = run(command + " --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("Examples"), std::string::npos);
  }
}

TEST_F(Cli, WrongUsageSuggestsTheRightWord) {
  expect_failure("inspekt x.onnx", 2, "inspect");
  expect_failure("eval " + kModels + "fashion_mlp.onnx --inptu x.npy", 2, "--input");
  expect_failure("inspect", 2, "model");
  expect_failure("eval " + kModels + "fashion_mlp.onnx", 2, "--input");
  expect_failure("eval " + kModels + "fashion_mlp.onnx --input x.npy --scale a/b", 3, "x.npy");
  expect_failure("eval " + kModels + "fashion_mlp.onnx --input " + kModels +
                     "fashion_mlp.expected.npz --scale a/b",
                 2, "--scale");
  expect_failure("inspect " + kModels + "fashion_mlp.onnx --dim batch", 2, "NAME=SIZE");
  EXPECT_EQ(run("").code, 2);
}

TEST_F(Cli, NumbersMayBeFractionsAndNothingElse) {
  const std::string mlp = kModels + "fashion_mlp.onnx ", payoff = file("p.csv", "1,2\n3,0\n"),
                    logits = file("l.csv", "1,2,3\n");
  for (const std::string& call :
       {"bound --methods layer-product --box 0,1/2 " + mlp,
        "bound --methods layer-product --box=-inf,1 " + mlp,
        "bound --methods layer-product --norm 3/2:4/2 --time 3/2 " + mlp,
        "bound --methods layer-product --margin 0,1 --memory 8/1 --time inf " + mlp,
        "game --tau 1/2 " + payoff, "game --tau +0.5 " + payoff,
        "softmax --lambda=-1/2 --empirical 1/10,1 " + logits}) {
    const Outcome result = run(call);
    EXPECT_EQ(result.code, 0) << call << "\n" << result.err;
  }
  EXPECT_EQ(run("game --json --time 9 --tau 1/2 " + payoff).out.substr(0, 40),
            run("game --json --time 9 --tau 0.5 " + payoff).out.substr(0, 40));
  for (const std::string word : {"1x", "nan", "inf", "1/0", "1/2/3", "/2", "1e999", "0x1p3", "''"})
    expect_failure("game " + payoff + " --tau " + word, 2, "--tau");
  for (const std::string word : {"0,1x", "0", "0,1,2", "nan,1", "0,1/0", "1,0"})
    expect_failure("bound " + mlp + "--box " + word, 2, "--box");
  for (const std::string word : {"1e300,0", "0.0,1", "0", "0,1,2", "x,y", "0, 1"})
    expect_failure("bound " + mlp + "--margin '" + word + "'", 2, "--margin");
  for (const std::string word : {"0.5", "2x", "2:", ":2", "2:2:2", "nan", "1/2"})
    expect_failure("bound " + mlp + "--norm " + word, 2, "norm");
  const std::string image = kModels + "fashion_image.npy ";
  expect_failure("bound " + mlp + "--at " + image + "--radius 1 --ball 2:3", 2, "--ball");
  expect_failure("bound " + mlp + "--at " + image + "--radius 1 --scale 1e308/1e-308", 2,
                 "--scale");
  for (const std::string word : {"5s", "-1", "nan"})
    expect_failure("bound " + mlp + "--time=" + word, 2, "--time");
}

TEST_F(Cli, BadModelsGiveOneClearLine) {
  expect_failure("inspect no_such_file.onnx", 3, "no_such_file.onnx");
  expect_failure("inspect " + folder_.string(), 3, "directory");
  expect_failure("inspect " + file("empty.onnx", ""), 3, "empty");
  expect_failure("inspect " + file("text.onnx", "hello\n"), 3, "text");
  const std::string whole = slurp(kModels + "fashion_mlp.onnx");
  expect_failure("inspect " + file("short.onnx", whole.substr(0, whole.size() / 2)), 3,
                 "truncated");
  expect_failure("inspect " + file("torch.pt", "PK\x03\x04 archive/data.pkl"), 3,
                 "torch.onnx.export");
  expect_failure("inspect " + file("keras.h5", "\x89HDF\r\n\x1a\n"), 3, "tf2onnx");
}

TEST_F(Cli, BadArraysGiveOneClearLine) {
  const std::string eval = "eval " + kModels + "fashion_mlp.onnx --input ";
  expect_failure(eval + "no_such.npy", 3, "no_such.npy");
  expect_failure(eval + file("bad.npy", "\x93NUMPY\x01"), 3, "bad.npy");
  expect_failure(eval + file("small.csv", "1,2,3\n"), 3, "784");
  expect_failure(eval + file("ragged.csv", "1,2\n3\n"), 3, "ragged.csv");
}

}  // namespace
