// SPDX-License-Identifier: Apache-2.0
// Certificates of the bounds that follow from a network of affine maps and slopes.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "lipscope/bound.h"
#include "lipscope/certificate.h"
#include "tests/support/model_writer.h"
#include "tests/support/resealed.h"

namespace lipscope {
namespace {

using testing_support::check_resealed;
using testing_support::ModelWriter;

OnnxModel chain_model() {
  ModelWriter w;
  w.input("x", {-1, 3});
  w.weight("A", {3, 4}, {1, -2, 0.5F, 3, 0.25F, 1, -1, 0, 2, 2, 1, -0.5F});
  w.weight("B", {4, 3}, {1, 0.5F, -1, 2, 0.75F, 0, 1, 1, -0.5F, 0.25F, -1, 2});
  w.weight("C", {3, 2}, {1, -1, 0.5F, 1, 2, 0.25F});
  w.node("MatMul", {"x", "A"}, {"u"}, "first");
  w.node("Relu", {"u"}, {"v"}, "relu");
  w.node("MatMul", {"v", "B"}, {"w"}, "second");
  w.node("Tanh", {"w"}, {"z"}, "tanh");
  w.node("MatMul", {"z", "C"}, {"y"}, "third");
  w.output("y");
  return w.read();
}

Json certificate_of(const OnnxModel& model, const std::string& method, const std::string& norm) {
  const Selected selected = select(model.graph(), {});
  const Query query{&selected.graph, parse_norms(norm), {}};
  const Answer answer = find_bracket(query, {.methods = {method, "jacobian-ascent"}}, {});
  return Json::parse(write_certificate({.model_sha256 = model.sha256(),
                                        .selection = {},
                                        .from = "",
                                        .norms = query.norms,
                                        .domain = {}},
                                       answer));
}

const std::pair<const char*, const char*> kCases[] = {
    {"eclipse-fast", "2"},       {"loop-transform", "2"}, {"loop-transform", "inf"},
    {"loop-transform", "1:inf"}, {"loop-transform", "1"}, {"seqlip", "2"},
};

TEST(ChainProofs, AreAccepted) {
  const OnnxModel model = chain_model();
  for (const auto& [method, norm] : kCases) {
    const Json certificate = certificate_of(model, method, norm);
    EXPECT_EQ(certificate["claim"]["upper"]["method"], method);
    const CheckResult result = check_resealed(model, certificate);
    EXPECT_TRUE(result.valid) << method << " " << norm << ": " << result.reason;
  }
}

TEST(ChainProofs, AreRejectedWhenTheClaimIsLower) {
  const OnnxModel model = chain_model();
  for (const auto& [method, norm] : kCases) {
    const Json whole = certificate_of(model, method, norm);
    for (const double factor : {1 - 1e-5, 0.99, 0.5, 0.0, -1.0}) {
      Json changed = whole;
      Json& value = changed["claim"]["upper"]["value"];
      value = value.get<double>() * factor;
      Json& proof = changed["proof"][0];
      if (proof["kind"] == "multipliers") {
        Json& rho = proof["chains"][0]["rho"];
        rho = rho.get<double>() * factor * factor;
      }
      EXPECT_FALSE(check_resealed(model, changed).valid) << method << " " << norm << " " << factor;
    }
  }
}

TEST(ChainProofs, AreRejectedForAnotherQuestion) {
  const OnnxModel model = chain_model();
  const Json whole = certificate_of(model, "loop-transform", "2");
  Json wider = whole;  // the constant from linf is larger
  wider["query"]["norm_in"] = "inf";
  EXPECT_FALSE(check_resealed(model, wider).valid);
  for (const char* name : {"", "magic", "lipsdp", "loop_transform"}) {
    Json other = whole;
    other["proof"][0]["bound"] = name;
    EXPECT_FALSE(check_resealed(model, other).valid) << name;
  }
  Json odd = whole;
  odd["proof"][0]["bound"] = 7;
  EXPECT_ANY_THROW((void)check_resealed(model, odd));
  Json other_model = whole;
  other_model["model"]["sha256"] = std::string(64, '0');
  EXPECT_FALSE(check_resealed(model, other_model).valid);
}

// Multipliers for the first part of a network, gains for the rest: (|x|, -|x|), then a softmax.
OnnxModel model_with_softmax() {
  ModelWriter w;
  w.input("x", {-1, 1});
  w.weight("A", {1, 2}, {1, -1});
  w.weight("B", {2, 2}, {1, -1, 1, -1});
  w.node("MatMul", {"x", "A"}, {"u"}, "first");
  w.node("Relu", {"u"}, {"v"}, "relu");
  w.node("MatMul", {"v", "B"}, {"w"}, "second");
  w.node("Softmax", {"w"}, {"y"}, "softmax");
  w.output("y");
  return w.read();
}

TEST(PrefixProof, IsExactWhereThePartsAre) {
  const OnnxModel model = model_with_softmax();
  const Json certificate = certificate_of(model, "lipsdp", "2");
  EXPECT_EQ(certificate["proof"][0]["chains"][0]["to"], "w");
  const double root = std::sqrt(2.0) / 2;  // (|x|, -|x|) has slope sqrt(2), softmax 1/2
  EXPECT_GE(certificate["claim"]["upper"]["value"].get<double>(), root);
  EXPECT_LE(certificate["claim"]["upper"]["value"].get<double>(), root * 1.001);
  EXPECT_TRUE(check_resealed(model, certificate).valid);
  const CheckResult other = check_resealed(model, certificate_of(model, "lipsdp", "2:inf"));
  EXPECT_TRUE(other.valid) << other.reason;
}

TEST(PrefixProof, IsRejectedWhenAPartIsFalse) {
  const OnnxModel model = model_with_softmax();
  const Json good = certificate_of(model, "lipsdp", "2");
  Json changed = good;
  changed["claim"]["upper"]["value"] = 0.999 * good["claim"]["upper"]["value"].get<double>();
  EXPECT_FALSE(check_resealed(model, changed).valid);
  changed = good;
  changed["proof"][0]["chains"][0]["rho"] =
      0.9 * good["proof"][0]["chains"][0]["rho"].get<double>();
  EXPECT_FALSE(check_resealed(model, changed).valid);
  for (const char* at : {"v", "u", "y", "nothing"}) {
    changed = good;
    changed["proof"][0]["chains"][0]["to"] = at;
    EXPECT_FALSE(check_resealed(model, changed).valid) << at;
  }
  changed = good;
  changed["proof"][0]["chains"][0].erase("to");
  EXPECT_FALSE(check_resealed(model, changed).valid);
  changed = good;
  for (Json& gain : changed["proof"][0]["gains"]) {
    if (gain["node"] == "softmax") gain["value"] = 0.49;
  }
  EXPECT_FALSE(check_resealed(model, changed).valid);
}

// (|x|, -|x|), a softmax, then y -> (|y_0 - y_1|, |y_0 - y_1|).
OnnxModel model_around_a_softmax() {
  ModelWriter w;
  w.input("x", {-1, 1});
  w.weight("A", {1, 2}, {1, -1});
  w.weight("B", {2, 2}, {1, -1, 1, -1});
  w.weight("C", {2, 2}, {1, -1, -1, 1});
  w.weight("D", {2, 2}, {1, 1, 1, 1});
  w.node("MatMul", {"x", "A"}, {"u"}, "first");
  w.node("Relu", {"u"}, {"v"}, "relu");
  w.node("MatMul", {"v", "B"}, {"w"}, "second");
  w.node("Softmax", {"w"}, {"s"}, "softmax");
  w.node("MatMul", {"s", "C"}, {"p"}, "third");
  w.node("Relu", {"p"}, {"q"}, "another");
  w.node("MatMul", {"q", "D"}, {"y"}, "last");
  w.output("y");
  return w.read();
}

TEST(SegmentProof, IsExactWhereThePartsAre) {
  const OnnxModel model = model_around_a_softmax();
  const Json certificate = certificate_of(model, "lipsdp", "2");
  const Json& chains = certificate["proof"][0]["chains"];
  ASSERT_EQ(chains.size(), 2U);
  EXPECT_FALSE(chains[0].contains("from"));
  EXPECT_EQ(chains[0]["to"], "w");
  EXPECT_EQ(chains[1]["from"], "s");
  EXPECT_EQ(chains[1]["to"], "y");
  EXPECT_GE(certificate["proof"][0]["gains"].size(), 1U);
  const double product = std::sqrt(2.0) * 0.5 * 2;
  EXPECT_GE(certificate["claim"]["upper"]["value"].get<double>(), product);
  EXPECT_LE(certificate["claim"]["upper"]["value"].get<double>(), product * 1.001);
  const CheckResult result = check_resealed(model, certificate);
  EXPECT_TRUE(result.valid) << result.reason;
}

TEST(SegmentProof, IsRejectedWhenAPartIsFalse) {
  const OnnxModel model = model_around_a_softmax();
  const Json good = certificate_of(model, "lipsdp", "2");
  for (const std::size_t part : {0U, 1U}) {
    Json changed = good;
    Json& rho = changed["proof"][0]["chains"][part]["rho"];
    rho = 0.9 * rho.get<double>();
    EXPECT_FALSE(check_resealed(model, changed).valid) << part;
    changed = good;
    changed["proof"][0]["chains"].erase(part);
    EXPECT_FALSE(check_resealed(model, changed).valid) << part;
  }
  for (const char* from : {"u", "v", "w", "p", "q", "y", "A", "nothing"}) {
    Json changed = good;
    changed["proof"][0]["chains"][1]["from"] = from;
    EXPECT_FALSE(check_resealed(model, changed).valid) << from;
  }
  Json changed = good;
  changed["proof"][0]["chains"][1].erase("from");
  EXPECT_FALSE(check_resealed(model, changed).valid);
}

// A part from a value that another way leads around would leave that way out.
TEST(SegmentProof, IsRejectedWhereAnotherWayLeadsAround) {
  ModelWriter w;
  w.input("x", {-1, 2});
  w.weight("A", {2, 2}, {1, 0.5, -1, 2});
  w.weight("B", {2, 2}, {1, 0, 0.5, 1});
  w.node("MatMul", {"x", "A"}, {"a"}, "first");
  w.node("Relu", {"a"}, {"b"}, "relu");
  w.node("MatMul", {"b", "B"}, {"c"}, "second");
  w.node("Add", {"c", "x"}, {"y"}, "sum");
  w.output("y");
  const OnnxModel model = w.read();
  const Json good = certificate_of(model, "lipsdp", "2");
  EXPECT_FALSE(good["proof"][0]["chains"][0].contains("to"));
  EXPECT_TRUE(check_resealed(model, good).valid);
  Json changed = good;
  changed["proof"][0]["chains"][0]["from"] = "a";
  const CheckResult result = check_resealed(model, changed);
  EXPECT_FALSE(result.valid);
  EXPECT_NE(result.reason.find("alone"), std::string::npos) << result.reason;
}

}  // namespace
}  // namespace lipscope
