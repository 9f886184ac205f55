// SPDX-License-Identifier: Apache-2.0
// Certificates whose proof is a tree of cases.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "base/rounding.h"
#include "estimate/counted_for_test.h"
#include "lipscope/bound.h"
#include "lipscope/certificate.h"
#include "lipscope/error.h"
#include "tests/support/model_writer.h"
#include "tests/support/resealed.h"

namespace lipscope {
namespace {

using testing_support::check_resealed;

// A writer of models with weights from a normal distribution.
class RandomModel : public testing_support::ModelWriter {
 public:
  explicit RandomModel(unsigned seed, float size = 1) : rng_(seed), normal_(0, size) {}
  void random(const std::string& name, const Shape& shape) {
    std::vector<float> entries(static_cast<std::size_t>(element_count(shape)));
    for (float& e : entries) e = normal_(rng_);
    weight(name, shape, entries);
  }

 private:
  std::mt19937 rng_;
  std::normal_distribution<float> normal_;
};

// `elsewhere`: kinks that are not at zero.
OnnxModel piecewise_model(bool elsewhere = false, const std::string& squash = "Identity") {
  RandomModel w(4);
  w.input("x", {-1, 3});
  w.random("A", {3, 7});
  w.random("a", {7});
  w.random("B", {7, 5});
  w.random("b", {5});
  w.random("C", {5, 2});
  w.node("Gemm", {"x", "A", "a"}, {"u"}, "first");
  if (elsewhere) {
    w.weight("low", {}, {-0.6F});
    w.weight("high", {}, {0.7F});
    w.node("Clip", {"u", "low", "high"}, {"v"}, "clip");
  } else {
    w.node("Relu", {"u"}, {"v"}, "relu");
  }
  w.node("Gemm", {"v", "B", "b"}, {"w"}, "second");
  w.node(elsewhere ? "HardSigmoid" : "LeakyRelu", {"w"}, {"z"}, "last");
  w.node("MatMul", {"z", "C"}, {"logits"}, "third");
  w.node(squash, {"logits"}, {"y"}, "squash");
  w.output("y");
  return w.read();
}

Domain box_of_cases() {
  return {.box = Box{Tensor::vector(std::vector<double>(3, -0.4)),
                     Tensor::vector(std::vector<double>(3, 0.6))}};
}

Json cases_certificate(const OnnxModel& model, const std::string& norm, const Domain& domain,
                       const std::vector<std::string>& methods = {"exact-global", "exact-local"},
                       double seconds = 60) {
  const Selected selected = select(model.graph(), {});
  const Query query{&selected.graph, parse_norms(norm), domain};
  const Answer answer = find_bracket(
      query, {.time = std::chrono::duration<double>(seconds), .methods = methods}, counted());
  if (methods.size() == 2) {
    EXPECT_LT(*answer.bracket.ratio(), 1 + 1e-6) << norm;
  }
  return Json::parse(write_certificate({.model_sha256 = model.sha256(),
                                        .selection = {},
                                        .from = "",
                                        .norms = query.norms,
                                        .domain = domain},
                                       answer));
}

void expect_no_lower_claim(const OnnxModel& model, const Json& whole,
                           std::initializer_list<double> factors) {
  for (const double factor : factors) {
    Json changed = whole;
    Json& value = changed["claim"]["upper"]["value"];
    value = value.get<double>() * factor;
    EXPECT_FALSE(check_resealed(model, changed).valid) << factor;
  }
}

struct CasesCase {
  const char* norm;
  bool bounded, elsewhere = false;
};

class CasesProof : public testing::TestWithParam<CasesCase> {
 protected:
  OnnxModel model = piecewise_model(GetParam().elsewhere);
  Json whole =
      cases_certificate(model, GetParam().norm, GetParam().bounded ? box_of_cases() : Domain{});
  Json changed = whole;
  Json& nodes() { return changed["proof"][0]["nodes"]; }
  bool accepted() { return check_resealed(model, changed).valid; }
};

TEST_P(CasesProof, IsAccepted) {
  EXPECT_EQ(whole["proof"][0]["kind"], "cases");
  EXPECT_GT(whole["proof"][0]["nodes"].size(), 2U);
  const CheckResult result = check_resealed(model, whole);
  EXPECT_TRUE(result.valid) << result.reason;
}

TEST_P(CasesProof, IsRejectedWhenTheClaimIsLower) {
  expect_no_lower_claim(model, whole, {1 - 1e-8, 0.99, 0.0, -1.0});
}

TEST_P(CasesProof, IsRejectedWhenACaseIsMissing) {
  std::size_t splits = 0;
  for (std::size_t i = 0; i < whole["proof"][0]["nodes"].size(); ++i) {
    if (!whole["proof"][0]["nodes"][i].contains("split") || splits == 20) continue;
    ++splits;
    changed = whole;
    nodes()[i]["below"] = nodes()[i]["above"];
    EXPECT_FALSE(accepted()) << i;
    changed = whole;
    nodes()[i]["split"][0] = 99;
    EXPECT_FALSE(accepted()) << i;
    if (GetParam().bounded) continue;  // a split elsewhere may still prove the claim
    changed = whole;
    nodes()[i]["at"] = 5.0;
    EXPECT_FALSE(accepted()) << i;
  }
  EXPECT_GT(splits, 0U);
  changed = whole;
  nodes().erase(nodes().size() - 1);
  EXPECT_FALSE(accepted());
  nodes() = Json::array();
  EXPECT_FALSE(accepted());
}

TEST_P(CasesProof, IsRejectedWhenSomethingNonEmptyIsCalledEmpty) {
  // The claim is lowered to what would hold if the largest leaves were empty.
  Json& value = changed["claim"]["upper"]["value"];
  value = value.get<double>() * 0.9;
  changed["claim"]["lower"] = nullptr;
  changed["proof"].erase(1);
  for (Json& node : nodes()) {
    if (!node.contains("multipliers")) continue;
    node = {{"empty", {{0, 0, 1.0}, {0, 1, 1.0}, {1, 0, 1.0}}}, {"constant", true}};
  }
  EXPECT_FALSE(accepted());
}

TEST_P(CasesProof, IsRejectedForALargerDomain) {
  if (!GetParam().bounded) return;
  changed["query"]["domain"]["hi"] = {3.0, 3.0, 3.0};
  changed["query"]["domain"]["lo"] = {-3.0, -3.0, -3.0};
  EXPECT_FALSE(accepted());
  changed["query"]["domain"] = {{"kind", "everywhere"}};
  EXPECT_FALSE(accepted());
}

INSTANTIATE_TEST_SUITE_P(AllNorms, CasesProof,
                         testing::Values(CasesCase{"2", false}, CasesCase{"inf", false},
                                         CasesCase{"1", false}, CasesCase{"2:inf", false},
                                         CasesCase{"2", true}, CasesCase{"inf", true},
                                         CasesCase{"1", true}, CasesCase{"1:2", true},
                                         CasesCase{"inf:1", true}, CasesCase{"2:1", true},
                                         CasesCase{"inf:2", false}));
INSTANTIATE_TEST_SUITE_P(KinksElsewhere, CasesProof,
                         testing::Values(CasesCase{"2", false, true}, CasesCase{"inf", false, true},
                                         CasesCase{"2", true, true}, CasesCase{"inf", true, true},
                                         CasesCase{"1", true, true},
                                         CasesCase{"inf:1", true, true}));

struct LocalProofCase {
  const char *method, *norm, *squash = "Identity";
  friend std::ostream& operator<<(std::ostream& out, const LocalProofCase& of) {
    return out << of.method << ' ' << of.norm << ' ' << of.squash;
  }
};

class LocalProof : public testing::TestWithParam<LocalProofCase> {
 protected:
  OnnxModel model = piecewise_model(false, GetParam().squash);
  Json whole = cases_certificate(model, GetParam().norm, box_of_cases(), {GetParam().method});
  Json changed = whole;
  bool accepted() { return check_resealed(model, changed).valid; }
};

TEST_P(LocalProof, IsAcceptedAndRejectedWhenTheClaimIsLower) {
  EXPECT_EQ(whole["claim"]["upper"]["method"], GetParam().method);
  const CheckResult result = check_resealed(model, whole);
  EXPECT_TRUE(result.valid) << result.reason;
  expect_no_lower_claim(model, whole, {1 - 1e-5, 0.5, 0.0, -1.0});
}

TEST_P(LocalProof, IsRejectedForAnotherQuestion) {
  changed["query"]["domain"]["hi"] = {3.0, 3.0, 3.0};
  changed["query"]["domain"]["lo"] = {-3.0, -3.0, -3.0};
  EXPECT_FALSE(accepted());
  changed["query"]["domain"] = {{"kind", "everywhere"}};
  EXPECT_FALSE(accepted());
  changed = whole;
  changed["query"]["norm_in"] = "inf";
  changed["query"]["norm_out"] = "1";
  EXPECT_FALSE(accepted());
  if (!changed["proof"][0].contains("bound")) return;
  changed = whole;
  changed["proof"][0]["bound"] = "no-such-bound";
  EXPECT_FALSE(accepted());
  const std::string bound = whole["proof"][0]["bound"];
  if (bound == "fast-lip" || bound == "recur-jac") return;
  changed["proof"][0]["bound"] = "fast-lip";
  EXPECT_FALSE(accepted());  // a looser bound
}

INSTANTIATE_TEST_SUITE_P(
    AllMethods, LocalProof,
    testing::Values(LocalProofCase{"fast-lip", "inf"}, LocalProofCase{"fast-lip", "3:2"},
                    LocalProofCase{"recur-jac", "inf"}, LocalProofCase{"linear-jacobian", "inf"},
                    LocalProofCase{"linear-jacobian", "1"},
                    LocalProofCase{"linear-jacobian", "3:2"}, LocalProofCase{"gram-l2", "2"},
                    LocalProofCase{"gram-l2", "2:inf"}, LocalProofCase{"gram-l2", "1:2"},
                    LocalProofCase{"local-lipsdp", "2"}, LocalProofCase{"local-lipsdp", "1:2"},
                    LocalProofCase{"fast-lip", "inf", "Softmax"},
                    LocalProofCase{"linear-jacobian", "1", "LogSoftmax"},
                    LocalProofCase{"gram-l2", "2", "Softmax"},
                    LocalProofCase{"local-lipsdp", "2", "LogSoftmax"},
                    LocalProofCase{"exact-local", "inf", "Softmax"}));

OnnxModel deep_model() {
  constexpr Index kWidth = 60;
  RandomModel w(6, 0.13F);
  w.input("x", {-1, kWidth});
  std::string last = "x";
  for (int k = 0; k < 16; ++k) {
    const std::string name = "w" + std::to_string(k);
    w.random(name, {kWidth, kWidth});
    w.random(name + "b", {kWidth});
    w.node("Gemm", {last, name, name + "b"}, {name + "z"}, name + "n");
    w.node("Relu", {name + "z"}, {name + "y"}, name + "r");
    last = name + "y";
  }
  w.output(last);
  return w.read();
}

// Ranges that the semidefinite bound narrowed are part of the proof.
TEST(NarrowedProof, NeedsAllItsRounds) {
  const OnnxModel model = deep_model();
  int narrowed = 0;
  for (const double radius : {0.12, 0.16}) {
    const Domain ball{.ball = Ball{Tensor::vector(std::vector<double>(60, 0.1)), radius, Norm(2)}};
    const Json whole = cases_certificate(model, "2", ball, {"local-lipsdp"});
    EXPECT_TRUE(check_resealed(model, whole).valid);
    if (!whole["proof"][0].contains("narrowing")) continue;
    ++narrowed;
    Json changed = whole;
    changed["proof"][0].erase("narrowing");
    EXPECT_FALSE(check_resealed(model, changed).valid);
    changed = whole;
    changed["proof"][0]["narrowing"][0].erase(0);  // a layer
    EXPECT_FALSE(check_resealed(model, changed).valid);
    changed = whole;
    for (Json& layer : changed["proof"][0]["narrowing"][0]) {
      for (Json& entry : layer) entry = -1.0;
    }
    EXPECT_FALSE(check_resealed(model, changed).valid);
    changed = whole;
    changed["query"]["domain"]["radius"] = 2 * radius;
    EXPECT_FALSE(check_resealed(model, changed).valid);
  }
  EXPECT_GT(narrowed, 0);
}

// Lines chosen for ends of ranges are part of the proof.
TEST(SharpenedProof, NeedsItsLines) {
  RandomModel w(8);
  w.input("x", {-1, 3});
  std::string last = "x";
  for (int k = 0; k < 4; ++k) {
    const std::string name = "w" + std::to_string(k);
    w.random(name, {k == 0 ? 3 : 5, 5});
    w.random(name + "b", {5});
    w.node("Gemm", {last, name, name + "b"}, {name + "z"}, name + "n");
    w.node("Tanh", {name + "z"}, {name + "y"}, name + "r");
    last = name + "y";
  }
  w.output(last);
  const OnnxModel model = w.read();
  const Json whole = cases_certificate(model, "inf", box_of_cases(), {"exact-local"}, 2);
  EXPECT_TRUE(check_resealed(model, whole).valid);
  ASSERT_TRUE(whole["proof"][0].contains("ranges"));
  Json changed = whole;
  changed["proof"][0].erase("ranges");
  EXPECT_FALSE(check_resealed(model, changed).valid);
  for (const std::string lines : {"", "00ff"}) {
    changed = whole;
    changed["proof"][0]["ranges"][0]["lines"] = lines;
    EXPECT_FALSE(check_resealed(model, changed).valid) << lines;
  }
  changed = whole;
  changed["proof"][0]["ranges"][0]["lines"] = "no digits";
  EXPECT_THROW((void)check_resealed(model, changed), Error);
  changed = whole;
  changed["proof"][0]["ranges"][0]["unit"] = {9, 0};
  EXPECT_FALSE(check_resealed(model, changed).valid);
  expect_no_lower_claim(model, whole, {0.9});
}

// A convolution on a large picture: 40 million weights as a dense layer.
OnnxModel picture_model() {
  RandomModel w(6);
  w.input("x", {1, 1, 80, 80});
  w.random("A", {1, 1, 3, 3});
  w.random("a", {1});
  w.random("B", {6084, 1});
  w.node("Conv", {"x", "A", "a"}, {"u"}, "first");
  w.node("Relu", {"u"}, {"v"}, "relu");
  w.node("Flatten", {"v"}, {"f"}, "flatten");
  w.node("MatMul", {"f", "B"}, {"y"}, "second");
  w.output("y");
  return w.read();
}

// Such a network is reduced to the units that are open on the domain, and the list of them is part
// of the proof.
TEST(ReducedProof, NeedsAllItsOpenUnits) {
  const OnnxModel model = picture_model();
  std::mt19937 rng(7);
  std::normal_distribution<double> normal;
  std::vector<double> center(6400);
  for (double& e : center) e = normal(rng);
  for (const auto& methods :
       {std::vector<std::string>{"exact-local", "jacobian-ascent"}, {"linear-jacobian"}}) {
    const Domain ball{.ball = Ball{Tensor::vector(center), 1e-3, Norm(kInf)}};
    const Json whole = cases_certificate(model, "inf", ball, methods);
    const std::size_t count = whole["proof"][0]["open_units"].size();
    EXPECT_GT(count, 0U);
    EXPECT_LT(count, 40U);
    const CheckResult result = check_resealed(model, whole);
    EXPECT_TRUE(result.valid) << result.reason;
    Json changed = whole;
    changed["proof"][0]["open_units"].erase(count / 2);
    EXPECT_FALSE(check_resealed(model, changed).valid);
    changed = whole;
    changed["proof"][0].erase("open_units");
    EXPECT_FALSE(check_resealed(model, changed).valid);
    changed = whole;
    changed["query"]["domain"]["radius"] = 2e-3;
    EXPECT_FALSE(check_resealed(model, changed).valid);
    changed = whole;
    changed["proof"][0]["open_units"] = "all";
    EXPECT_THROW((void)check_resealed(model, changed), Error);
  }
}

}  // namespace
}  // namespace lipscope
