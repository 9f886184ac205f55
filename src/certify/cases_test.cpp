// SPDX-License-Identifier: Apache-2.0
// Certificates whose proof is a tree of cases.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "certify/document.h"
#include "lipscope/certificate.h"
#include "tests/support/model_writer.h"

namespace lipscope {
namespace {

using testing_support::ModelWriter;

OnnxModel piecewise_model() {
  std::mt19937 rng(4);
  std::normal_distribution<float> normal;
  ModelWriter w;
  const auto weight = [&](const std::string& name, const Shape& shape, std::size_t size) {
    std::vector<float> entries(size);
    for (float& e : entries) e = normal(rng);
    w.weight(name, shape, entries);
  };
  w.input("x", {-1, 3});
  weight("A", {3, 7}, 21);
  weight("a", {7}, 7);
  weight("B", {7, 5}, 35);
  weight("b", {5}, 5);
  weight("C", {5, 2}, 10);
  w.node("Gemm", {"x", "A", "a"}, {"u"}, "first");
  w.node("Relu", {"u"}, {"v"}, "relu");
  w.node("Gemm", {"v", "B", "b"}, {"w"}, "second");
  w.node("LeakyRelu", {"w"}, {"z"}, "leaky");
  w.node("MatMul", {"z", "C"}, {"y"}, "third");
  w.output("y");
  return w.read();
}

Domain box_of_cases() {
  return {.box = Box{Tensor::vector(std::vector<double>(3, -0.4)),
                     Tensor::vector(std::vector<double>(3, 0.6))}};
}

Json cases_certificate(const OnnxModel& model, const std::string& norm, const Domain& domain) {
  const Selected selected = select(model.graph(), {});
  const Query query{&selected.graph, parse_norms(norm), domain};
  const Answer answer = find_bracket(query, {.methods = {"exact-global", "exact-local"}}, {});
  EXPECT_LT(*answer.bracket.ratio(), 1 + 1e-6) << norm;
  return Json::parse(write_certificate({.model_sha256 = model.sha256(),
                                        .selection = {},
                                        .from = "",
                                        .norms = query.norms,
                                        .domain = domain},
                                       answer));
}

CheckResult check_resealed_cases(const OnnxModel& model, Json certificate) {
  certificate["sha256"] = certificate_digest(certificate);
  return check_certificate(model, to_text(certificate));
}

class CasesProof : public testing::TestWithParam<std::pair<const char*, bool>> {
 protected:
  OnnxModel model = piecewise_model();
  Json whole =
      cases_certificate(model, GetParam().first, GetParam().second ? box_of_cases() : Domain{});
  Json changed = whole;
  Json& nodes() { return changed["proof"][0]["nodes"]; }
  bool accepted() { return check_resealed_cases(model, changed).valid; }
};

TEST_P(CasesProof, IsAccepted) {
  EXPECT_EQ(whole["proof"][0]["kind"], "cases");
  EXPECT_GT(whole["proof"][0]["nodes"].size(), 2U);
  const CheckResult result = check_resealed_cases(model, whole);
  EXPECT_TRUE(result.valid) << result.reason;
}

TEST_P(CasesProof, IsRejectedWhenTheClaimIsLower) {
  for (const double factor : {1 - 1e-8, 0.99, 0.0, -1.0}) {
    changed = whole;
    Json& value = changed["claim"]["upper"]["value"];
    value = value.get<double>() * factor;
    EXPECT_FALSE(accepted()) << factor;
  }
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
    if (GetParam().second) continue;  // a split elsewhere may still prove the claim
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
  for (Json& node : nodes()) {
    if (!node.contains("multipliers")) continue;
    node = {{"empty", {{0, 0, 1.0}, {0, 1, 1.0}, {1, 0, 1.0}}}, {"constant", true}};
  }
  EXPECT_FALSE(accepted());
}

TEST_P(CasesProof, IsRejectedForALargerDomain) {
  if (!GetParam().second) return;
  changed["query"]["domain"]["hi"] = {3.0, 3.0, 3.0};
  changed["query"]["domain"]["lo"] = {-3.0, -3.0, -3.0};
  EXPECT_FALSE(accepted());
  changed["query"]["domain"] = {{"kind", "everywhere"}};
  EXPECT_FALSE(accepted());
}

INSTANTIATE_TEST_SUITE_P(AllNorms, CasesProof,
                         testing::Values(std::pair{"2", false}, std::pair{"inf", false},
                                         std::pair{"1", false}, std::pair{"2:inf", false},
                                         std::pair{"2", true}, std::pair{"inf", true},
                                         std::pair{"1", true}, std::pair{"1:2", true}));

}  // namespace
}  // namespace lipscope
