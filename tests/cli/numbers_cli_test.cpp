// SPDX-License-Identifier: Apache-2.0
// Every option that takes a number takes fractions, and refuses what is no number.
#include <map>
#include <set>
#include <sstream>

#include "tests/cli/cli_fixture.h"

namespace {

using namespace lipscope::testing_support;

// How a number is written into the value of an option of each kind that --help shows; whole numbers
// are those of which a fraction has to be one, too.
struct NumberKind {
  std::string before, after;
  bool whole = false;
};
const std::map<std::string, NumberKind> kNumberKinds = {
    {"N", {"", "", true}}, {"INT", {"", "", true}},   {"UINT", {"", "", true}},
    {"I", {"", "", true}}, {"I,J", {"0,", "", true}}, {"NAME=SIZE", {"size=", "", true}},
    {"FLOAT", {"", ""}},   {"SECONDS", {"", ""}},     {"GB", {"", ""}},
    {"R", {"", ""}},       {"R,...", {"1,", ""}},     {"EPS,...", {"1,", ""}},
    {"M,...", {"1,", ""}}, {"S,...", {"1,", ""}},     {"F", {"", ""}},
    {"T", {"", ""}},       {"P", {"", ""}},           {"P[:Q]", {"2:", ""}},
    {"BOX", {"-9,", ""}},  {"R:A%", {"", ":50%"}},    {"E", {"", ""}},
};
const std::set<std::string> kOtherKinds = {"FILE",
                                           "MODEL",
                                           "CERTIFICATE",
                                           "RESULT.json",
                                           "NODE",
                                           "INPUT",
                                           "a,b",
                                           "auto|json",
                                           "FORMAT",
                                           "TEXT",
                                           "2|token-max",
                                           "global|local",
                                           "float32|float16|bfloat16",
                                           "html|markdown|csv|svg",
                                           "I/N"};

struct NumberOption {
  std::string name;
  NumberKind kind;
};

// "--limit N:INT in [1 - 9]=4 ..." has the kind N; "P[:Q]=2" the kind P[:Q].
std::string kind_in(std::string word) {
  if (word.starts_with("P[:Q]")) return "P[:Q]";
  if (word.starts_with("R:A%")) return "R:A%";
  if (word.starts_with("NAME=SIZE")) return "NAME=SIZE";
  return word.substr(0, word.find_first_of(":="));
}

class Numbers : public Cli {
 protected:
  // The options of a command that take numbers.
  std::vector<NumberOption> number_options(const std::string& command) const {
    std::vector<NumberOption> found;
    const std::string help = run(command + " --help").out;
    std::istringstream lines(help.substr(0, help.find("Examples:")));
    for (std::string line; std::getline(lines, line);) {
      std::string name, word;
      if (!line.starts_with("  -") || !(std::istringstream(line) >> name >> word)) continue;
      const std::size_t gap = line.find(word, line.find(name) + name.size());
      if (gap != line.find(name) + name.size() + 1) continue;  // a flag: the word describes it
      if (word.find('{') != std::string::npos) continue;       // one of a few words
      const std::string kind = kind_in(word);
      if (kNumberKinds.contains(kind)) {
        found.push_back({name.substr(name.rfind(',') + 1), kNumberKinds.at(kind)});
      } else {
        EXPECT_TRUE(kOtherKinds.contains(kind))
            << command << " " << name << " takes a " << kind << ": is that a number?";
      }
    }
    return found;
  }
};

// What each command needs to come to the option, and little work to do with it.
std::string arguments_of(const std::string& command, const std::string& logits) {
  const std::string mlp = kModels + "fashion_mlp.onnx", image = kModels + "fashion_image.npy",
                    three = kModels + "fashion_mlp.expected.npz";
  const std::map<std::string, std::string> all = {
      {"inspect", mlp},
      {"eval", mlp + " --input " + image},
      {"bound", mlp + " --methods layer-product --effort 1/1000"},
      {"check", mlp + " " + image},
      {"certify", mlp + " --data " + kModels + "fashion_test_images.idx3.gz --labels " + kModels +
                      "fashion_test_labels.idx1.gz --limit 1 --scale 1 --effort 1/1000"},
      {"softmax", logits + " --effort 1/1000"},
      {"attention", mlp + " --input " + three + " --effort 1/1000"},
      {"game", logits + " --tau 1 --effort 1/1000"},
      {"report", image}};
  return command + " " + all.at(command);
}

std::string without(std::string arguments, const std::string& option) {
  const std::size_t given = arguments.find(" " + option + " ");
  if (given == std::string::npos) return arguments;
  const std::size_t end = arguments.find(' ', given + option.size() + 2);
  return arguments.erase(given, end == std::string::npos ? end : end - given);
}

class NumbersOf : public Numbers, public testing::WithParamInterface<std::string> {};

TEST_P(NumbersOf, AreDecimalsOrFractions) {
  const std::string command = GetParam(), image = kModels + "fashion_image.npy",
                    call = arguments_of(command, file("l.csv", "1,2\n3,0\n"));
  const std::set<std::string> common = {"--threads", "--time", "--effort", "--memory", "--seed"};
  for (const NumberOption& option : number_options(command)) {
    if (common.contains(option.name) && command != "game") continue;  // declared once for all
    std::string arguments = without(call, option.name);
    if (option.name == "--time") arguments = without(arguments, "--effort");
    if (option.name == "--radius" && command == "bound") arguments += " --at " + image;
    if (option.name == "--ball") arguments += " --radius 1 --at " + image;
    const auto with = [&](const std::string& number) {
      return run(arguments + " '" + option.name + "=" + option.kind.before + number +
                 option.kind.after + "'");
    };
    const bool whole = option.kind.whole;
    for (const std::string number : {whole ? "510/255" : "3/2", whole ? "+2" : "1.5"}) {
      const Outcome result = with(number);
      EXPECT_NE(result.code, 2) << option.name << " " << number << "\n" << result.err;
    }
    std::vector<std::string> words = {"1/0", "0/0", "1//2", "1/2/3", "nan", "2x", "2/inf", ""};
    if (option.kind.before == "1,") words.insert(words.end(), {",2", "2,"});
    if (whole) words.insert(words.end(), {"3/2", "-1", "1.5"});
    for (const std::string& word : words) {
      const Outcome result = with(word);
      EXPECT_EQ(result.code, 2) << option.name << " '" << word << "'\n" << result.err;
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, NumbersOf,
                         testing::Values("inspect", "eval", "bound", "check", "certify", "softmax",
                                         "attention", "game", "report"),
                         [](const auto& of) { return of.param; });

TEST_F(Numbers, FractionsMeanTheirValue) {
  const auto game = [&](const std::string& tau) {
    return Json::parse(run("game --json " + file("p.csv", "1,2\n3,0\n") + " --tau " + tau).out);
  };
  EXPECT_EQ(game("36/255")["tau"], 36.0 / 255.0);
  EXPECT_EQ(game("1/3")["x"], game("0.3333333333333333")["x"]);
  const std::string softmax =
      "softmax --json " + file("l.csv", "1,2,3\n") + " --empirical 1/10,1/5 ";
  EXPECT_EQ(run(softmax + "--seed 7").out, run(softmax + "--seed 14/2").out);
  EXPECT_EQ(run(softmax + "--seed 18446744073709551615").code, 0);
  const std::string plain = "softmax " + file("l.csv", "1,2,3\n");
  expect_failure(plain + " --seed 18446744073709551616", 2, "--seed");
  expect_failure(plain + " --seed -1", 2, "--seed");
  const Json certify = Json::parse(run("certify --json " + kModels + "fashion_mlp.onnx --data " +
                                       kModels + "fashion_test_images.idx3.gz --labels " + kModels +
                                       "fashion_test_labels.idx1.gz --scale 1/255 --limit 12/4 "
                                       "--radii 8/255,36/255 --effort 1/20")
                                       .out);
  EXPECT_EQ(certify["count"], 3);
  EXPECT_EQ(certify["certified"][0]["radius"], 8.0 / 255.0);
  EXPECT_EQ(certify["certified"][1]["radius"], 36.0 / 255.0);
}

}  // namespace
