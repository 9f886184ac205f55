// SPDX-License-Identifier: Apache-2.0
// Files that are read and written: which may be which, what they may be, and that they stay whole.
#include <sys/stat.h>

#include <map>
#include <set>
#include <sstream>

#include "lipscope/arrays.h"
#include "tests/cli/cli_fixture.h"
#include "tests/cli/running_program.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;
using lipscope::Index;
using lipscope::Tensor;

const std::string kImages = kModels + "fashion_test_images.idx3.gz",
                  kLabels = kModels + "fashion_test_labels.idx1.gz";

class Files : public Cli {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string copy(const std::string& name, const std::string& from) const {
    return file(name, slurp(from));
  }
  // Refused before anything is done: the message names both files, and all of them stay as they
  // are.
  void expect_refused(const std::string& arguments, const std::string& first,
                      const std::string& second) const {
    std::map<std::string, std::string> before;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.is_regular_file() && entry.path().filename().string().find("std") != 0)
        before[entry.path()] = slurp(entry.path());
    }
    expect_failure(arguments, 2, first);
    expect_failure(arguments, 2, second);
    for (const auto& [name, contents] : before) EXPECT_EQ(slurp(name), contents) << arguments;
  }
  // Names in the folder that are not among these or the test's own.
  std::vector<std::string> others(const std::set<std::string>& known) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (!known.contains(name) && name != "stdout" && name != "stderr") names.push_back(name);
    }
    return names;
  }

  std::string small_model() const {
    ModelWriter writer;
    writer.input("x", {1, 2});
    writer.weight("w", {2, 2}, {1, 2, 3, 4});
    writer.node("MatMul", {"x", "w"}, {"y"}, "layer");
    writer.output("y");
    return writer.bytes();
  }
};

TEST_F(Files, OutputsNeverReplaceInputs) {
  const std::string model = file("m.onnx", small_model());
  fs::create_symlink(model, path("link.onnx"));
  fs::create_hard_link(model, path("hard.onnx"));
  fs::create_directory(path("sub"));
  expect_refused("bound " + model + " -o " + model, "-o", model);
  expect_refused("inspect " + model + " -o " + model, "-o", model);
  expect_refused("bound " + model + " --certificate " + model, "--certificate", "model");
  for (const std::string name : {"link.onnx", "hard.onnx", "sub/../m.onnx"}) {
    expect_refused("bound " + model + " -o " + path(name), path(name), model);
    expect_refused("bound " + path(name) + " -o " + model, path(name), model);
  }
  const std::string x = file("x.csv", "1,2\n");
  expect_refused("bound " + model + " --radius 1 --at " + x + " -o " + x, "--at", x);
  expect_refused("eval " + model + " --input " + x + " -o " + x, "--input", x);
  expect_refused("softmax " + x + " -o " + x, "-o", x);
  expect_refused("game " + x + " --tau 1 -o " + x, "-o", x);
  const std::string arrays = copy("a.npz", kModels + "fashion_mlp.expected.npz");
  expect_refused("softmax " + arrays + ":output_0 -o " + arrays, arrays, "output_0");
  expect_refused("eval " + model + " --input " + x + " --reference " + arrays + " -o " + arrays,
                 "--reference", arrays);
}

TEST_F(Files, OutputsNeverReplaceOneAnother) {
  const std::string model = file("m.onnx", small_model()), same = path("c.json");
  expect_refused("bound " + model + " -o " + same + " --certificate " + same, "-o " + same,
                 "--certificate " + same);
  EXPECT_FALSE(fs::exists(same));
  fs::create_symlink(same, path("to_c.json"));
  expect_refused("bound " + model + " -o " + same + " --certificate " + path("to_c.json"),
                 path("to_c.json"), "--certificate");
  fs::create_directory(path("sub"));
  expect_refused("bound " + model + " -o " + same + " --certificate " + path("sub/../c.json"),
                 "sub/../c.json", "-o");
}

TEST_F(Files, AFileToGoOnFromIsNoOtherFile) {
  const std::string model = copy("m.onnx", kModels + "fashion_mlp.onnx"),
                    data = copy("x.gz", kImages), labels = copy("y.gz", kLabels);
  const std::string call =
      "certify " + model + " --data " + data + " --labels " + labels + " --scale 1/255 --resume ";
  for (const std::string& other : {model, data, labels})
    expect_refused(call + other, "--resume", other);
  expect_refused(call + path("r.jsonl") + " -o " + path("r.jsonl"), "--resume", "-o");
}

TEST_F(Files, ExternalDataIsPartOfTheModel) {
  ModelWriter writer;
  writer.input("x", {1, 2});
  writer.weight("w", {2, 2}, {});
  auto* tensor = writer.model.mutable_graph()->mutable_initializer(0);
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = tensor->add_external_data();
  location->set_key("location");
  location->set_value("m.onnx.data");
  writer.node("MatMul", {"x", "w"}, {"y"}, "layer");
  writer.output("y");
  const std::string model = file("m.onnx", writer.bytes()),
                    data = file("m.onnx.data", std::string(16, '\1'));
  fs::create_hard_link(data, path("hard.data"));
  expect_refused("bound " + model + " -o " + data, "-o " + data, "external data");
  expect_refused("bound " + model + " --certificate " + path("hard.data"), path("hard.data"),
                 "m.onnx.data");
  EXPECT_EQ(run("bound " + model + " --methods layer-product -o " + path("b.json")).code, 0);
}

TEST_F(Files, AResultIsNotReplacedByItsReport) {
  const std::string result = path("b.json");
  ASSERT_EQ(run("game --json --tau 1 " + file("p.csv", "1,2\n3,0\n") + " -o " + result).code, 0);
  fs::create_hard_link(result, path("hard.json"));
  expect_refused("report " + result + " -o " + result, "-o", "result");
  expect_refused("report " + result + " -o " + path("hard.json"), path("hard.json"), result);
  const std::string before = slurp(result);
  EXPECT_EQ(run("report - -o " + result + " <" + result).code, 2);
  EXPECT_EQ(run("report /dev/stdin -o " + result + " <" + result).code, 2);
  EXPECT_EQ(slurp(result), before);
}

// Every option that --help shows with a file is known to the check above.
TEST_F(Files, EveryOptionThatTakesAFileIsKnown) {
  const std::set<std::string> kinds = {"FILE", "MODEL", "CERTIFICATE", "RESULT.json", "BOX"};
  const std::map<std::string, std::string> needed = {
      {"game", " --tau 1"}, {"certify", " --data x"}, {"attention", " --input x"}};
  const std::string same = file("same", "x");
  int found = 0;
  std::istringstream commands(run("--help").out);
  bool listed = false;
  for (std::string line; std::getline(commands, line);) {
    listed = listed || line.starts_with("Subcommands");
    std::string command, word, kind;
    if (!listed || !(std::istringstream(line) >> command) || !line.starts_with("  ")) continue;
    const std::string help = run(command + " --help").out;
    std::vector<std::string> positionals, options;
    std::istringstream lines(help.substr(0, help.find("Examples:")));
    for (bool before_options = true; std::getline(lines, line);) {
      before_options = before_options && !line.starts_with("Options:");
      if (!line.starts_with("  ") || line.starts_with("   ")) continue;
      std::istringstream words(line);
      words >> word >> kind;
      if (!line.starts_with("  -")) positionals.push_back(word);
      if (line.starts_with("  -") && kinds.contains(kind) && !word.starts_with("-o"))
        options.push_back(word);
    }
    const auto call = [&](std::size_t place) {
      std::string text = command + (needed.contains(command) ? needed.at(command) : "");
      for (std::size_t i = 0; i < positionals.size(); ++i)
        text += " " + (i == place ? same : path("other" + std::to_string(i)));
      return text;
    };
    for (std::size_t i = 0; i < positionals.size(); ++i, ++found) {
      const Outcome refused = run(call(i) + " -o " + same);
      EXPECT_EQ(refused.code, 2) << call(i) << refused.err;
      EXPECT_NE(refused.err.find("would overwrite"), std::string::npos) << call(i) << refused.err;
    }
    for (const std::string& option : options) {
      ++found;
      std::string arguments = call(positionals.size());
      const std::size_t given = arguments.find(" " + option + " x");
      if (given != std::string::npos) arguments.erase(given, option.size() + 3);
      const Outcome refused = run(arguments + " " + option + " " + same + " -o " + same);
      EXPECT_EQ(refused.code, 2) << arguments << " " << option << refused.err;
      EXPECT_NE(refused.err.find(same), std::string::npos) << option << refused.err;
    }
  }
  EXPECT_GE(found, 15);
  EXPECT_EQ(slurp(same), "x");
}

TEST_F(Files, NothingIsWrittenThroughALinkThatSomebodyLeft) {
  const std::string model = file("m.onnx", small_model()), victim = file("victim", "untouched"),
                    target = path("b.json");
  fs::create_symlink(victim, target + ".part");
  ASSERT_EQ(run("inspect --json " + model + " -o " + target).code, 0);
  EXPECT_EQ(slurp(victim), "untouched");
  EXPECT_TRUE(fs::is_symlink(target + ".part"));
  EXPECT_EQ(Json::parse(slurp(target))["schema"], "lipscope.inspect/1");
  EXPECT_EQ(others({"m.onnx", "victim", "b.json", "b.json.part"}), std::vector<std::string>{});
}

TEST_F(Files, OutputsKeepTheirPermissionsAndLinks) {
  const std::string model = file("m.onnx", small_model()), old = file("old.json", "x");
  chmod(old.c_str(), 0640);
  fs::create_symlink("old.json", path("to_old.json"));
  fs::create_symlink("new.json", path("to_new.json"));
  for (const std::string name : {"to_old.json", "to_new.json"}) {
    ASSERT_EQ(run("inspect --json " + model + " -o " + path(name)).code, 0);
    EXPECT_TRUE(fs::is_symlink(path(name)));
    EXPECT_EQ(Json::parse(slurp(path(name)))["schema"], "lipscope.inspect/1");
  }
  struct stat status {};
  ASSERT_EQ(stat(old.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
  const mode_t mask = umask(0);
  umask(mask);
  ASSERT_EQ(stat(path("new.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0666U & ~mask);
  EXPECT_EQ(run("inspect " + model + " -o /dev/full").code, 3);
  EXPECT_EQ(run("inspect " + model + " -o /dev/null").code, 0);
  EXPECT_NE(run("inspect " + model + " -o /dev/stdout").out, "");
}

TEST_F(Files, ManyWritersOfOneFileAllSucceed) {
  const std::string target = path("result.json");
  std::set<std::string> possible;
  std::string calls;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "m" + std::to_string(i) + ".onnx";
    const std::string inspect = "inspect --json " + file(name, small_model());
    possible.insert(run(inspect).out);
    calls += "for k in 1 2 3 4 5; do " LIPSCOPE_PROGRAM " " + inspect + " -o " + target +
             " || echo failed; done & ";
  }
  ASSERT_EQ(possible.size(), 4U);
  const int status = std::system(("{ " + calls + "wait; } >" + path("stdout") + " 2>&1").c_str());
  EXPECT_EQ(status, 0);
  EXPECT_EQ(slurp(path("stdout")), "");
  EXPECT_TRUE(possible.contains(slurp(target)));
  EXPECT_EQ(others({"m0.onnx", "m1.onnx", "m2.onnx", "m3.onnx", "result.json"}),
            std::vector<std::string>{});
}

TEST_F(Files, DevicesAndFoldersAreNoInputs) {
  const std::string model = file("m.onnx", small_model());
  for (const std::string device : {"/dev/zero", "/dev/null", "/dev/urandom"}) {
    expect_failure("inspect " + device, 3, "device");
    expect_failure("eval " + model + " --input " + device, 3, "device");
    expect_failure("report " + device, 3, "device");
  }
  expect_failure("eval " + model + " --input " + folder_.string(), 3, "directory");
  expect_failure("check " + model + " " + folder_.string(), 3, "directory");
  expect_failure("report " + folder_.string(), 3, "directory");
  expect_failure("inspect " + model + " -o " + folder_.string(), 3, folder_.string());
}

TEST_F(Files, PipesAreRead) {
  const std::string model = file("m.onnx", small_model()), x = file("x.csv", "1,2\n");
  const std::string wanted = run("eval " + model + " --json --input " + x).out;
  ASSERT_NE(wanted, "");
  EXPECT_EQ(run("eval - --json --input " + x + " <" + model).out, wanted);
  EXPECT_EQ(run("eval /dev/stdin --json --input " + x + " <" + model).out, wanted);
  const std::string program = LIPSCOPE_PROGRAM, out = path("stdout");
  for (const std::string& command :
       {"cat " + model + " | " + program + " eval - --json --input " + x,
        "cat " + x + " | " + program + " eval " + model + " --json --input /dev/stdin",
        program + " eval <(cat " + model + ") --json --input <(sleep 0.2; cat " + x + ")",
        "mkfifo " + path("p") + "; cat " + x + " >" + path("p") + " & " + program + " eval " +
            model + " --json --input " + path("p"),
        "{ sleep 0.2; cat " + x + " >" + path("p") + "; } & " + program + " eval " + model +
            " --json --input " + path("p")}) {
    EXPECT_EQ(std::system(("bash -c '{ " + command + "; } >" + out + "'").c_str()), 0) << command;
    EXPECT_EQ(slurp(out), wanted) << command;
  }
  const std::string ball = "bound --json --methods layer-product --radius 1 " + model + " --at ";
  EXPECT_EQ(Json::parse(run(ball + "- <" + x).out)["query"],
            Json::parse(run(ball + x).out)["query"]);
  EXPECT_EQ(std::system(("cat " + x + " | " + program + " eval - --input - >/dev/null 2>" +
                         path("stderr") + "; test $? -eq 2")
                            .c_str()),
            0);
  EXPECT_NE(slurp(path("stderr")).find("read once"), std::string::npos) << slurp(path("stderr"));
}

TEST_F(Files, APipeNobodyWritesToIsNotWaitedForBeyondTheTime) {
  const NamedPipe pipe(path("p"));
  for (const std::string& call :
       {"inspect " + pipe.path(), "report " + pipe.path(), "softmax " + pipe.path()})
    expect_failure(call + " --time 0.2", 3, "nobody writes");
}

TEST_F(Files, SignalsEndACommandWithWhatItHas) {
  std::string rows;
  for (int i = 0; i < 400; ++i) rows += "1,2,3,4,5,6\n";
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string name = std::to_string(signal), result = path("result" + name);
    NamedPipe pipe(path("p" + name));
    RunningProgram program("softmax --json --empirical 0.1 --directions 1000000 --time inf " +
                           pipe.path() + " -o " + result + " 2>/dev/null");
    pipe.open_end();
    pipe.write_all(rows);
    pipe.close_end();
    pipe.wait_until_read();
    program.signal(signal);
    EXPECT_EQ(program.wait(), 130);
    const Json document = Json::parse(slurp(result));
    EXPECT_EQ(document["outcome"], "interrupted");
    EXPECT_GE(document["rows_done"], 1);
  }
}

TEST_F(Files, SignalsEndACommandThatWaitsForItsInput) {
  for (const std::string command : {"report", "softmax", "bound", "inspect"}) {
    NamedPipe pipe(path("p_" + command));
    const std::string out = path("out"), err = path("err");
    RunningProgram program(command + " --json --time inf " + pipe.path() + " -o " + path("result") +
                           " >" + out + " 2>" + err);
    pipe.open_end();
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait(), 130) << command;
    const Json document = Json::parse(slurp(out));
    EXPECT_EQ(document["schema"], "lipscope.error/1");
    EXPECT_EQ(document["code"], "interrupted");
    EXPECT_FALSE(fs::exists(path("result")));
  }
}

}  // namespace
