// SPDX-License-Identifier: Apache-2.0
// report as a user calls it.
#include "tests/cli/cli_fixture.h"

namespace {

using namespace lipscope::testing_support;

class ReportCli : public Cli {
 protected:
  // A result with `count` samples, made up.
  std::string certify_result(int count) const {
    Json samples = Json::array();
    for (int s = 0; s < count; ++s) {
      samples.push_back({{"index", s},
                         {"label", s % 3},
                         {"predicted", s % 5 == 0 ? (s + 1) % 3 : s % 3},
                         {"radius", s % 5 == 0 ? 0.0 : 0.001 * s},
                         {"method", "global-constants"},
                         {"attack_radius", s % 5 == 0 ? Json(nullptr) : Json(0.002 * s)}});
    }
    const Json document{
        {"schema", "lipscope.certify/1"},
        {"model", {{"file", "a<b>&\"c\".onnx"}}},
        {"norm", "2"},
        {"scope", "local"},
        {"count", count},
        {"clean_accuracy", 0.8},
        {"certified", {{{"radius", 0.1}, {"accuracy", 0.5}, {"attacked_accuracy", 0.75}}}},
        {"samples", samples}};
    return file("certify.json", document.dump());
  }
};

TEST_F(ReportCli, APageHasTheNumbersAndNothingFromElsewhere) {
  const Outcome page = run("report " + certify_result(100));
  ASSERT_EQ(page.code, 0) << page.err;
  EXPECT_EQ(page.out.find("http"), std::string::npos);
  EXPECT_NE(page.out.find("a&lt;b&gt;&amp;&quot;c&quot;.onnx"), std::string::npos);
  EXPECT_EQ(page.out.find("<b>&\"c\""), std::string::npos);
  for (const std::string word : {"80.00 %", "50.00 %", "75.00 %", "0.007", "0.014", "proved"})
    EXPECT_NE(page.out.find(word), std::string::npos) << word;
}

// Upper bounds, rounded up, in what a cell has room for; a class without samples has no accuracy.
TEST_F(ReportCli, CellsAreShortAndHonest) {
  Json document = Json::parse(slurp(certify_result(3)));
  document["norm"] = "inf";
  document["margins"] = {
      {{"margin", {0, 1}}, {"upper", {{"value", 14123.4}, {"guarantee", "proved"}}}},
      {{"margin", {0, 2}}, {"upper", {{"value", 2.5001}, {"guarantee", "proved"}}}},
      {{"margin", {1, 2}}, {"upper", {{"value", 0.0000123}, {"guarantee", "proved"}}}}};
  document["classes"] = {{{"class", 0}, {"count", 0}, {"clean_accuracy", 0}, {"median_radius", 0}}};
  const Outcome page = run("report " + file("cells.json", document.dump()));
  ASSERT_EQ(page.code, 0) << page.err;
  for (const std::string text : {">1.5e4<", ">2.51<", ">1.3e-5<", "ℓ∞"})
    EXPECT_NE(page.out.find(text), std::string::npos) << text;
  EXPECT_EQ(page.out.find(">0.00 %"), std::string::npos);
}

TEST_F(ReportCli, TenThousandSamplesFitInTwoMegabytes) {
  const Outcome page = run("report " + certify_result(10'000));
  EXPECT_EQ(page.code, 0);
  EXPECT_LT(page.out.size(), 2'000'000U);
  EXPECT_NE(page.out.find("The first 1000 of 10000"), std::string::npos);
}

TEST_F(ReportCli, OtherFormats) {
  const std::string result = certify_result(20);
  const Outcome markdown = run("report --format markdown " + result);
  EXPECT_NE(markdown.out.find("| 0.1 | 50.00 % (proved) | 75.00 % (proved) |"), std::string::npos)
      << markdown.out;
  const Outcome csv = run("report --format csv " + result);
  EXPECT_NE(csv.out.find("0.1,0.5,0.75,proved"), std::string::npos) << csv.out;
  EXPECT_NE(csv.out.find("7,1,1,0.007,0.014,global-constants,proved"), std::string::npos)
      << csv.out;
  const Outcome svg = run("report --format svg " + result);
  EXPECT_EQ(svg.out.find("<svg xmlns"), 0U);
  EXPECT_NE(svg.out.find("Accuracy against radius"), std::string::npos);
  EXPECT_NE(svg.out.find(">attacked</text>"), std::string::npos);  // which curve is which
  const Outcome json = run("report --json --format csv " + result);
  EXPECT_EQ(Json::parse(json.out)["text"], csv.out);
}

TEST_F(ReportCli, EveryResultOfTheProgramHasAPage) {
  const std::string mlp = kModels + "fashion_mlp.onnx", result = (folder_ / "r.json").string();
  const std::string logits = file("logits.csv", "1,2,3\n0,0,1\n"),
                    payoff = file("p.csv", "1,2\n3,0\n");
  for (const std::string& call :
       {"bound --effort 1/20 " + mlp,
        "bound --effort 1/20 --margin all --methods layer-product " + mlp, "inspect " + mlp,
        "softmax " + logits + " --empirical 0.1,1", "game --tau 0.5 " + payoff,
        std::string("methods"), std::string("ops"), std::string("activations"),
        std::string("version"), "eval " + mlp + " --input " + kModels + "fashion_image.npy"}) {
    ASSERT_EQ(run(call + " --json -o " + result).code, 0) << call;
    for (const std::string format : {"html", "markdown", "csv", "svg"}) {
      const Outcome report = run("report --format " + format + " " + result);
      EXPECT_EQ(report.code, 0) << call << report.err;
      EXPECT_FALSE(report.out.empty()) << call << " " << format;
    }
  }
}

// A bound that does not exist leaves the colour of the other side as it is, and says why.
TEST_F(ReportCli, ALowerBoundAloneKeepsItsColourAndTheReason) {
  const Json document{
      {"schema", "lipscope.bound/1"},
      {"query", {{"norm_in", "2"}, {"norm_out", "2"}, {"domain", {{"kind", "everywhere"}}}}},
      {"no_bound", "node 'scores': why"},
      {"methods",
       {{{"method", "dag"}, {"side", "upper"}, {"value", "inf"}, {"guarantee", "proved"}},
        {{"method", "up"}, {"side", "lower"}, {"value", 3.0}, {"guarantee", "proved"}},
        {{"method", "guess"}, {"side", "upper"}, {"value", 4.0}, {"guarantee", "estimate"}}}}};
  const Outcome page = run("report " + file("bound.json", document.dump()));
  ASSERT_EQ(page.code, 0) << page.err;
  for (const char* text : {"No finite upper bound: node &#39;scores&#39;: why.",
                           "<i style=\"background:var(--s1)\"></i>lower bound, proved",
                           "<i style=\"background:var(--s3)\"></i>upper, not proved"})
    EXPECT_NE(page.out.find(text), std::string::npos) << text;
  EXPECT_EQ(page.out.find("upper bound, proved</li>"), std::string::npos);
}

TEST_F(ReportCli, OtherDocumentsAreRefused) {
  expect_failure("report " + file("a.json", "{\"x\":1}"), 3, "not a result of this program");
  expect_failure("report " + file("b.json", "[1,2]"), 3, "not a result of this program");
  expect_failure("report " + file("c.json", "{\"schema\":"), 3, "c.json: truncated");
  expect_failure("report " + file("c.json", "schema: x"), 3, "c.json: not JSON: line 1, column 1");
  expect_failure("report " + file("d.json", "{\"schema\":\"other/1\"}"), 3, "not a result");
  expect_failure("report " + file("e.json", R"({"schema":"lipscope.certify/1","norm":"2"})"), 3,
                 "e.json: there is no field 'certified'");
  expect_failure("report " + file("f.json", R"({"schema":"lipscope.bound/1","query":{}})"), 3,
                 "f.json: query: there is no field 'norm_in'");
  expect_failure("report " + file("g.json", R"({"schema":"lipscope.bound/2"})"), 3,
                 "'lipscope.bound/2' is another version; this program reads lipscope.bound/1");
  expect_failure("report " + file("h.json", R"({"schema":"lipscope.certificate/1"})"), 3,
                 "no result");
  expect_failure("report " + folder_.string(), 3, "directory");
  expect_failure("report nowhere.json", 3, "nowhere.json");
  expect_failure("report --format pdf " + certify_result(1), 2, "--format");
  const std::string result = certify_result(1);
  expect_failure("report " + result + " -o " + result, 2, "overwrite");
}

// Fields of other types than expected are refused, not taken for missing.
TEST_F(ReportCli, DamagedResultsAreRefused) {
  const Json good = Json::parse(slurp(certify_result(3)));
  for (const auto& [key, value] : good.items()) {
    if (key == "schema") continue;
    for (const Json& other :
         {Json(nullptr), Json("text"), Json(5), Json::array({1, "x"}), Json::object()}) {
      Json damaged = good;
      damaged[key] = other;
      const Outcome page = run("report " + file("damaged.json", damaged.dump()));
      const bool same = other.type() == value.type() || (other.is_number() && value.is_number());
      EXPECT_TRUE(page.code == 3 || (same && page.code == 0)) << key << " " << other << page.err;
    }
  }
  const auto refused = [&](const char* pointer, const Json& value, const std::string& word) {
    Json damaged = good;
    damaged[Json::json_pointer(pointer)] = value;
    expect_failure("report " + file("damaged.json", damaged.dump()), 3, word);
  };
  refused("/samples/1/radius", "0.1", "damaged.json: samples[1].radius: '0.1' is no number");
  refused("/samples/1/radius", -1, "samples[1].radius: expected a number of at least 0");
  refused("/samples/2/label", 1.5, "samples[2].label: expected a whole number");
  refused("/samples/0/index", 1e300, "samples[0].index: expected a whole number");
  refused("/certified/0/surprise", 1, "certified[0]: unknown field 'surprise'");
  refused("/seconds", Json::array(), "seconds: expected a number");
  refused("/images", {{"channels", 2}, {"height", 1}, {"width", 1}, {"samples", Json::array()}},
          "images.channels");
  const std::string text = good.dump(), again = ",\"norm\":\"1\"}";
  expect_failure("report " + file("twice.json", text.substr(0, text.size() - 1) + again), 3,
                 "the field 'norm' is there twice");
}

TEST_F(ReportCli, HostileFilesAreRefusedOnOneLine) {
  expect_failure("report " + file("deep.json", std::string(300'000, '[')), 3,
                 "more than 32 brackets in each other");
  const std::string big = file("big.json", "{}");
  fs::resize_file(big, std::uintmax_t{1} << 40U);  // a hole
  expect_failure("report " + big, 3, "1099511627776 bytes");
}

// Far from zero, the steps of an axis are too small to get anywhere.
TEST_F(ReportCli, AnAxisFarFromZeroEnds) {
  Json document = Json::parse(slurp(certify_result(3)));
  for (int s = 0; s < 3; ++s) document["samples"][s]["predicted"] = s;
  document["samples"][1]["radius"] = 1e16;
  const Json bound{{"value", 1e16}, {"guarantee", "estimate"}, {"method", "m"}};
  const Json series{{{"radius", 1e16}, {"lower", bound}, {"upper", bound}},
                    {{"radius", 1e16 + 2}, {"lower", bound}, {"upper", bound}}};
  const Json constant{
      {"schema", "lipscope.bound/1"},
      {"query", {{"norm_in", "2"}, {"norm_out", "2"}, {"domain", {{"kind", "everywhere"}}}}},
      {"series", series},
      {"methods", Json::array()}};
  EXPECT_EQ(run("report " + file("far.json", document.dump())).code, 0);
  EXPECT_EQ(run("report " + file("far.json", constant.dump())).code, 0);
}

}  // namespace
