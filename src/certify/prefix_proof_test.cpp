// SPDX-License-Identifier: Apache-2.0
// Multipliers for the first part of a network, gains for the rest.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "certify/document.h"
#include "lipscope/certificate.h"
#include "tests/support/model_writer.h"

namespace lipscope {
namespace {

using testing_support::ModelWriter;

// (|x|, -|x|), then a softmax.
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

Json certificate_of(const OnnxModel& model, const std::string& norm) {
  const Selected selected = select(model.graph(), {});
  const Query query{&selected.graph, parse_norms(norm), {}};
  const Answer answer = find_bracket(query, {.methods = {"lipsdp", "jacobian-ascent"}}, {});
  return Json::parse(write_certificate({.model_sha256 = model.sha256(),
                                        .selection = {},
                                        .from = "",
                                        .norms = query.norms,
                                        .domain = {}},
                                       answer));
}

CheckResult check_resealed(const OnnxModel& model, Json certificate) {
  certificate["sha256"] = certificate_digest(certificate);
  return check_certificate(model, to_text(certificate));
}

TEST(PrefixProof, IsExactWhereThePartsAre) {
  const OnnxModel model = model_with_softmax();
  const Json certificate = certificate_of(model, "2");
  EXPECT_EQ(certificate["proof"][0]["at"], "w");
  const double root = std::sqrt(2.0) / 2;  // (|x|, -|x|) has slope sqrt(2), softmax 1/2
  EXPECT_GE(certificate["claim"]["upper"]["value"].get<double>(), root);
  EXPECT_LE(certificate["claim"]["upper"]["value"].get<double>(), root * 1.001);
  EXPECT_TRUE(check_resealed(model, certificate).valid);
  const CheckResult other = check_resealed(model, certificate_of(model, "2:inf"));
  EXPECT_TRUE(other.valid) << other.reason;
}

TEST(PrefixProof, IsRejectedWhenAPartIsFalse) {
  const OnnxModel model = model_with_softmax();
  const Json good = certificate_of(model, "2");
  Json changed = good;
  changed["claim"]["upper"]["value"] = 0.999 * good["claim"]["upper"]["value"].get<double>();
  EXPECT_FALSE(check_resealed(model, changed).valid);
  changed = good;
  changed["proof"][0]["rho"] = 0.9 * good["proof"][0]["rho"].get<double>();
  EXPECT_FALSE(check_resealed(model, changed).valid);
  for (const char* at : {"v", "u", "y", "nothing"}) {
    changed = good;
    changed["proof"][0]["at"] = at;
    EXPECT_FALSE(check_resealed(model, changed).valid) << at;
  }
  changed = good;
  changed["proof"][0].erase("at");
  EXPECT_FALSE(check_resealed(model, changed).valid);
  changed = good;
  for (Json& gain : changed["proof"][1]["gains"]) {
    if (gain["node"] == "softmax") gain["value"] = 0.49;
  }
  EXPECT_FALSE(check_resealed(model, changed).valid);
}

}  // namespace
}  // namespace lipscope
