// SPDX-License-Identifier: Apache-2.0
// Certificates from one kind of machine checked on others: budgets of time, numbers of threads and
// the kernels that the BLAS has for different processors. With LIPSCOPE_CERTIFICATE_NETS=FOLDER all
// networks below the folder are tried, too; LIPSCOPE_OTHER_PROGRAM=FILE is a second program, such
// as that of the sanitized build, that has to agree. For each network every two values of time,
// threads, kernel and program meet in a certificate, and each certificate is checked with every
// kernel and program.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>

#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"
#include "tests/support/resealed.h"

namespace lipscope {
namespace {

using namespace testing_support;
using Json = nlohmann::json;

class RandomWeights : public ModelWriter {
 public:
  explicit RandomWeights(unsigned seed) : ModelWriter(13), rng_(seed) {}
  void random(const std::string& name, const std::vector<Index>& shape) {
    Index size = 1, rows = shape[0];
    for (const Index d : shape) size *= d;
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(size / rows)));
    std::vector<float> entries(static_cast<std::size_t>(size));
    for (float& e : entries) e = normal(rng_);
    weight(name, shape, entries);
  }
  void conv(const std::string& from, const std::string& to, Index outs, Index ins, Index size) {
    random(to + "w", {outs, ins, size, size});
    auto* made = node("Conv", {from, to + "w"}, {to}, to);
    auto* pads = made->add_attribute();
    pads->set_name("pads");
    pads->set_type(onnx::AttributeProto::INTS);
    for (int i = 0; i < 4; ++i) pads->add_ints(size / 2);
  }

 private:
  std::mt19937 rng_;
};

// Convolutions as in detectors: a budget of work decides between the theorems, and the one for
// small budgets gives the better number for the second convolution.
std::string detector() {
  RandomWeights w(1);
  w.input("x", {1, 3, 40, 40});
  w.conv("x", "a", 8, 3, 3);
  w.node("LeakyRelu", {"a"}, {"b"}, "b");
  w.conv("b", "c", 2, 8, 1);
  w.output("c");
  return w.bytes();
}

// Dense maps that are too large for all digits.
std::string residual() {
  RandomWeights w(2);
  w.input("x", {1, 300});
  w.random("A", {300, 320});
  w.random("B", {320, 300});
  w.random("C", {300, 10});
  w.node("MatMul", {"x", "A"}, {"a"}, "a");
  w.node("Relu", {"a"}, {"b"}, "b");
  w.node("MatMul", {"b", "B"}, {"c"}, "c");
  w.node("Add", {"c", "x"}, {"d"}, "d");
  w.node("Relu", {"d"}, {"e"}, "e");
  w.node("MatMul", {"e", "C"}, {"y"}, "y");
  w.output("y");
  return w.bytes();
}

std::string dense(const std::string& activation) {
  RandomWeights w(3);
  w.input("x", {1, 4});
  w.random("A", {4, 12});
  w.random("a", {12});
  w.random("B", {12, 10});
  w.random("C", {10, 3});
  w.node("Gemm", {"x", "A", "a"}, {"h"}, "first");
  w.node(activation, {"h"}, {"r"}, "units");
  w.node("MatMul", {"r", "B"}, {"s"}, "second");
  w.node(activation, {"s"}, {"t"}, "more");
  w.node("MatMul", {"t", "C"}, {"y"}, "last");
  w.output("y");
  return w.bytes();
}

bool processor_has(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) == 0)
      return (line + " ").find(" " + flag + " ") != std::string::npos;
  }
  return false;
}

std::vector<std::string> blas_kernels() {
  std::vector<std::string> kernels;
  for (const auto& [name, flag] : std::vector<std::pair<std::string, std::string>>{
           {"Prescott", "pni"}, {"Haswell", "avx2"}, {"SkylakeX", "avx512f"}}) {
    if (processor_has(flag)) {
      kernels.push_back(name);
    } else {
      std::cout << "skipped: the processor has no " << name << " kernel (" << flag << ")\n";
    }
  }
  return kernels;
}

// Rows of values of factors, given how many each has: any two values of two factors meet in a row.
// A full product of a network's certificates would take hours for a folder of networks.
std::vector<std::vector<std::size_t>> covering_design(const std::vector<std::size_t>& counts) {
  std::vector<std::vector<std::size_t>> product{{}}, rows;
  for (const std::size_t count : counts) {
    std::vector<std::vector<std::size_t>> longer;
    for (const auto& row : product) {
      for (std::size_t value = 0; value < count; ++value) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    }
    product = std::move(longer);
  }
  std::set<std::array<std::size_t, 4>> met;
  const auto pairs = [](const std::vector<std::size_t>& row) {
    std::set<std::array<std::size_t, 4>> found;
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) found.insert({i, row[i], j, row[j]});
    }
    return found;
  };
  for (;;) {
    std::size_t most = 0;
    const std::vector<std::size_t>* best = nullptr;
    for (const auto& row : product) {
      const auto found = pairs(row);
      const auto fresh = static_cast<std::size_t>(
          std::ranges::count_if(found, [&](const auto& pair) { return !met.contains(pair); }));
      if (fresh > most) {
        most = fresh;
        best = &row;
      }
    }
    if (best == nullptr) return rows;
    met.merge(pairs(*best));
    rows.push_back(*best);
  }
}

TEST(CoveringDesign, MeetsEveryPairOfValues) {
  const auto rows = covering_design({3, 2, 2, 2});
  EXPECT_LT(rows.size(), 10U);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::set<std::pair<std::size_t, std::size_t>> met;
      for (const auto& row : rows) met.emplace(row[i], row[j]);
      EXPECT_EQ(met.size(), j == 0 ? 6U : 4U) << i << " " << j;
    }
  }
}

class Certificates : public Cli {
 protected:
  int shell(const std::string& kernel, const std::string& program, const std::string& arguments,
            std::string* output = nullptr) const {
    const fs::path log = folder_ / "log";
    const int status = std::system(("OPENBLAS_CORETYPE=" + kernel + " " + program + " " +
                                    arguments + " >" + log.string() + " 2>&1")
                                       .c_str());
    if (output != nullptr) *output = slurp(log);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  // Writes certificates in several ways and checks each in all ways: in the program and with the
  // kernel that wrote it, and in every other.
  void expect_agreement(const std::string& model, const std::string& question) const {
    std::vector<std::string> programs{LIPSCOPE_PROGRAM};
    if (const char* other = std::getenv("LIPSCOPE_OTHER_PROGRAM")) programs.emplace_back(other);
    const std::vector<std::string> kernels = blas_kernels(), seconds{"1", "10"}, threads{"1", "2"};
    const std::string certificate = (folder_ / "certificate.json").string();
    int written = 0, checked = 0;
    for (const std::vector<std::size_t>& way :
         covering_design({kernels.size(), programs.size(), seconds.size(), threads.size()})) {
      fs::remove(certificate);
      const std::string& kernel = kernels[way[0]];
      const std::string& program = programs[way[1]];
      const std::string call = "bound " + model + " " + question + " --time " + seconds[way[2]] +
                               " --threads " + threads[way[3]] + " --certificate " + certificate;
      std::string said;
      const int code = shell(kernel, program, call, &said);
      if (code == 4) continue;  // no finite bound, or not for this kind of model
      ASSERT_EQ(code, 0) << kernel << " " << program << " " << call << "\n" << said;
      ++written;
      for (const std::string& other : kernels) {
        for (const std::string& checker : programs) {
          ++checked;
          EXPECT_EQ(shell(other, checker, "check " + model + " " + certificate, &said), 0)
              << "by " << kernel << " " << program << " " << call << ", checked by " << other << " "
              << checker << "\n"
              << said;
        }
      }
    }
    std::cout << model << ": " << written << " certificates, " << checked << " checks" << std::endl;
    // Attention has no finite constant everywhere.
    EXPECT_TRUE(written > 0 || question.empty()) << model;
  }
};

TEST_F(Certificates, OfConvolutionsHoldOnEveryMachine) {
  expect_agreement(file("detector.onnx", detector()), "--methods layer-product,dag");
}
TEST_F(Certificates, OfLargeMapsHoldOnEveryMachine) {
  expect_agreement(file("residual.onnx", residual()), "--methods layer-product,dag,eclipse-fast");
}
TEST_F(Certificates, OfSearchesHoldOnEveryMachine) {
  expect_agreement(file("relu.onnx", dense("Relu")), "--box -1,1");
}
TEST_F(Certificates, OfSemidefiniteBoundsHoldOnEveryMachine) {
  expect_agreement(file("tanh.onnx", dense("Tanh")),
                   "--methods layer-product,lipsdp,jacobian-ascent");
}

TEST_F(Certificates, AreCheckedWithTheirWholeStatement) {
  const std::string model = file("relu.onnx", dense("Relu"));
  const std::string proof = (folder_ / "proof.json").string();
  ASSERT_EQ(run("bound " + model +
                " --effort 1/4 --margin 0,2 --norm inf --box -1,0.5 --certificate " + proof)
                .code,
            0);
  const Outcome text = run("check " + model + " " + proof);
  EXPECT_EQ(text.code, 0) << text.out << text.err;
  for (const char* words :
       {"valid: ", "sha256 ", "inf to inf", "box from [-1,-1,-1,-1]", "the whole model",
        "entry 0 minus entry 2", "proof: cases", "proof: quotient"})
    EXPECT_NE(text.out.find(words), std::string::npos) << words << "\n" << text.out;
  const Json document = Json::parse(run("check --json " + model + " " + proof).out);
  EXPECT_EQ(document["schema"], "lipscope.check/1");
  EXPECT_EQ(document["valid"], true);
  EXPECT_EQ(document["query"]["output"]["margin"], Json::array({0, 2}));
  EXPECT_EQ(document["query"]["norm_in"], "inf");
  EXPECT_EQ(document["query"]["domain"]["kind"], "box");
  EXPECT_TRUE(document["claim"]["upper"]["value"].is_number());
  EXPECT_EQ(document["proof"], Json::array({"cases", "quotient"}));

  const auto whole = nlohmann::ordered_json::parse(slurp(proof));
  nlohmann::ordered_json other = whole;
  other["query"]["norm_in"] = "1";
  other["query"]["norm_out"] = "1";
  other["claim"]["upper"]["value"] = 1e-3;
  const Outcome rejected = run("check " + model + " " + file("other.json", resealed_text(other)));
  EXPECT_EQ(rejected.code, 1);
  EXPECT_NE(rejected.out.find("rejected: "), std::string::npos) << rejected.out;

  const std::string pair =
      file("pair.json", to_text({{"schema", "lipscope.certificates/1"},
                                 {"certificates", {whole, nlohmann::ordered_json(whole)}}}));
  const Outcome both = run("check --json " + model + " " + pair);
  EXPECT_EQ(both.code, 0) << both.out << both.err;
  EXPECT_EQ(Json::parse(both.out)["certificates"].size(), 2U);

  nlohmann::ordered_json first = whole;
  first["schema"] = "lipscope.certificate/1";
  const std::string check = "check " + model + " ";
  expect_failure(check + file("first.json", resealed_text(first)), 3, "lipscope.certificate/1");
  expect_failure(check + file("cut.json", slurp(proof).substr(0, slurp(proof).size() / 2)), 3,
                 "cut.json");
  expect_failure(check + file("deep.json", std::string(300'000, '[')), 3, "deep.json");
  nlohmann::ordered_json unknown = whole;
  unknown["query"]["colour"] = "red";
  expect_failure(check + file("unknown.json", resealed_text(unknown)), 3, "colour");
  nlohmann::ordered_json typed = whole;
  typed["query"]["wrt"] = nlohmann::ordered_json::array();
  expect_failure(check + file("typed.json", resealed_text(typed)), 3, "wrt");
  nlohmann::ordered_json two = whole;
  two["query"]["output"]["index"] = 1;
  expect_failure(check + file("two.json", resealed_text(two)), 3, "output");
}

// Small networks first, so that a run that is cut has seen many; files with the same bytes once.
std::vector<fs::path> networks_below(const fs::path& folder) {
  std::vector<std::pair<std::uintmax_t, fs::path>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") files.emplace_back(entry.file_size(), entry.path());
  }
  std::ranges::sort(files);
  std::set<std::string> seen;
  std::vector<fs::path> networks;
  for (const auto& [size, path] : files) {
    if (seen.insert(slurp(path)).second) networks.push_back(path);
  }
  return networks;
}

TEST_F(Certificates, OfManyNetworksHoldOnEveryMachine) {
  const char* folder = std::getenv("LIPSCOPE_CERTIFICATE_NETS");
  if (folder == nullptr || !fs::is_directory(folder)) GTEST_SKIP() << "no folder of networks";
  for (const fs::path& network : networks_below(folder)) expect_agreement(network.string(), "");
}

}  // namespace
}  // namespace lipscope
