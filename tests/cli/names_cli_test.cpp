// SPDX-License-Identifier: Apache-2.0
// Names out of files and from the command line are shown, never obeyed.
#include "lipscope/arrays.h"
#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;
using lipscope::ElementType;
using lipscope::Index;
using lipscope::NamedTensor;
using lipscope::Tensor;

// Colour, a new line that looks like a result, the control sequence introducer of Latin-1, and a
// mark that turns the direction of writing.
const std::string kHostile =
    "a\x1b[31m\n0 <= L <= 1\xc2\x9b"
    "2J\xe2\x80\xae"
    "b";

bool is_harmless(const std::string& text) {
  return text.find_first_of("\x1b\r\a\b") == std::string::npos &&
         text.find("\xc2\x9b") == std::string::npos &&
         text.find("\xe2\x80\xae") == std::string::npos &&
         text.find("\n0 <= L <= 1") == std::string::npos;
}

class Names : public Cli {
 protected:
  // A model of which every name is hostile.
  std::string hostile_model(const std::string& op = "Relu") const {
    ModelWriter writer;
    writer.model.set_producer_name("producer" + kHostile);
    writer.input("x" + kHostile, {1, 2});
    writer.weight("w", {2, 2}, {1, 2, 3, 4});
    writer.node("MatMul", {"x" + kHostile, "w"}, {"h"}, "layer" + kHostile);
    writer.node(op, {"h"}, {"y" + kHostile}, "last" + kHostile);
    writer.output("y" + kHostile);
    return file("m" + kHostile + ".onnx", writer.bytes());
  }
  static std::string quoted(const std::string& path) { return "'" + path + "'"; }
};

TEST_F(Names, AreShownAsText) {
  const std::string model = quoted(hostile_model()), x = file("x.csv", "1,2\n"),
                    logits = quoted(file("l" + kHostile, "1,2\n"));
  for (const std::string& call :
       {"inspect " + model, "inspect " + quoted(hostile_model("Softcap")),
        "eval " + model + " --input " + x, "bound --methods layer-product " + model,
        "bound --explain --methods layer-product --from " + quoted("layer" + kHostile) + " " +
            quoted(hostile_model()),
        "certify " + quoted(hostile_model()) + " --data " + x + " --labels " + file("y.csv", "1\n"),
        "softmax " + logits}) {
    const Outcome result = run(call);
    EXPECT_EQ(result.code, 0) << call << result.err;
    EXPECT_NE(result.out.find("\\x1b[31m\\x0a0 <= L <= 1"), std::string::npos) << result.out;
    EXPECT_TRUE(is_harmless(result.out)) << result.out;
  }
  // A document keeps the name as it is.
  const Json document = Json::parse(run("inspect --json " + quoted(hostile_model())).out);
  EXPECT_EQ(document["nodes"][0]["name"], "layer" + kHostile);
}

TEST_F(Names, ThatTheUserTypesAreShownAsText) {
  const std::string model = kModels + "fashion_mlp.onnx ", word = quoted(kHostile);
  for (const std::string& call :
       {word, "inspect " + word, "inspect " + model + word, "inspect " + model + "--" + word,
        "bound " + model + "--from " + word, "bound " + model + "--norm " + word,
        "bound " + model + "--methods " + word, "bound " + model + "--box " + word,
        "bound " + model + "--time " + word, "bound " + model + "--at " + word + " --radius 1",
        "inspect " + model + "-o " + quoted("/nowhere/" + kHostile)}) {
    const Outcome result = run(call);
    EXPECT_TRUE(result.code == 2 || result.code == 3) << call << result.code;
    EXPECT_TRUE(is_harmless(result.out + result.err)) << call << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(Names, AreEscapedInReports) {
  const std::string result = file("r.json", ""), name = "a|b*c*_d_<i>`x`[y](z), \"q\"\x1b[31m\n# h";
  ASSERT_EQ(run("inspect --json " + kModels + "fashion_mlp.onnx -o " + result).code, 0);
  Json document = Json::parse(slurp(result));
  document["model"]["file"] = name;
  document["nodes"][0]["name"] = name;
  file("r.json", document.dump());
  const std::string markdown = run("report --format markdown " + result).out;
  const std::string shown = R"(a\|b\*c\*\_d\_\<i\>\`x\`\[y\](z), "q"\\x1b\[31m\\x0a# h)";
  EXPECT_NE(markdown.find("\n" + shown + "\n"), std::string::npos) << markdown.substr(0, 400);
  EXPECT_NE(markdown.find("| " + shown + " |"), std::string::npos) << markdown.substr(0, 800);
  EXPECT_EQ(markdown.find("\n# h"), std::string::npos);
  const std::string csv = run("report --format csv " + result).out;
  EXPECT_NE(csv.find("\"a|b*c*_d_<i>`x`[y](z), \"\"q\"\"\\x1b[31m\\x0a# h\","), std::string::npos)
      << csv.substr(0, 400);
  EXPECT_EQ(csv.find("\n# h"), std::string::npos);
  for (const std::string format : {"html", "svg", "markdown", "csv"}) {
    const Outcome page = run("report --format " + format + " " + result);
    EXPECT_EQ(page.code, 0) << page.err;
    EXPECT_EQ(page.out.find('\x1b'), std::string::npos) << format;
    if (format == "csv") continue;
    EXPECT_EQ(page.out.find("<i>"), std::string::npos) << format;
  }
}

TEST_F(Names, AFewOfManyAreListed) {
  std::vector<NamedTensor> many;
  for (int i = 0; i < 20'000; ++i)
    many.push_back({"array" + std::to_string(i), Tensor::zeros(ElementType::kFloat32, {1})});
  const auto bytes = lipscope::write_npz(many);
  const std::string arrays =
      file("many.npz", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const std::string model = kModels + "fashion_mlp.onnx";
  for (const std::string& call :
       {"eval " + model + " --input " + arrays, "softmax " + arrays, "softmax " + arrays + ":none",
        "bound " + model + " --box " + arrays, "bound " + model + " --radius 1 --at " + arrays}) {
    const Outcome result = run(call);
    EXPECT_TRUE(result.code == 2 || result.code == 3) << call << result.err;
    EXPECT_NE(result.err.find("array7 and 19992 more"), std::string::npos) << result.err;
    EXPECT_LT(result.err.size(), 400U) << result.err;
  }
}

TEST_F(Names, OfOtherVersionsAreRefused) {
  const std::string result = file("r.json", "");
  ASSERT_EQ(run("game --json --tau 1 " + file("p.csv", "1,2\n3,0\n") + " -o " + result).code, 0);
  Json document = Json::parse(slurp(result));
  for (const std::string schema : {"lipscope.game/99", "lipscope.game/10", "lipscope.bound/99"}) {
    document["schema"] = schema;
    expect_failure("report " + file("other.json", document.dump()), 3, schema);
  }
}

// More entries than can be counted.
TEST_F(Names, AWideEinsumIsRefusedByName) {
  ModelWriter writer;
  for (const char* name : {"a", "b", "c"}) writer.input(name, {3'000'000});
  auto* node = writer.node("Einsum", {"a", "b", "c"}, {"y"}, "wide");
  auto* equation = node->add_attribute();
  equation->set_name("equation");
  equation->set_type(onnx::AttributeProto::STRING);
  equation->set_s("i,j,k->ijk");
  writer.output("y");
  const std::string model = file("wide.onnx", writer.bytes());
  expect_failure("inspect " + model, 3, "too many entries");
  expect_failure("bound " + model, 3, "node 'wide'");
}

}  // namespace
