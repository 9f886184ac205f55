// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "estimate/counted_for_test.h"
#include "lipscope/bound.h"
#include "lipscope/certificate.h"
#include "lipscope/error.h"
#include "net/unit_network.h"
#include "tests/support/model_writer.h"
#include "tests/support/resealed.h"

namespace lipscope {
namespace {

using testing_support::check_resealed;
using testing_support::ModelWriter;
using testing_support::resealed;

ModelWriter small_net() {
  ModelWriter w;
  w.input("x", {-1, 3});
  w.weight("A", {3, 4}, {1, -2, 0.5F, 3, 0.25F, 1, -1, 0, 2, 2, 1, -0.5F});
  w.weight("a", {4}, {0.1F, 0, -0.3F, 1});
  w.weight("B", {4, 2}, {1, 0.5F, -1, 2, 0.75F, 0, 1, 1});
  w.node("Gemm", {"x", "A", "a"}, {"h"}, "first");
  w.node("Relu", {"h"}, {"r"}, "relu");
  w.node("MatMul", {"r", "B"}, {"y"}, "second");
  w.output("y");
  return w;
}

struct Case {
  OnnxModel model;
  Json certificate;
};

Case solved(const std::string& norm, Domain domain = {}) {
  OnnxModel model = small_net().read();
  const Selected selected = select(model.graph(), {});
  const Query query{&selected.graph, parse_norms(norm), domain};
  const Answer answer =
      find_bracket(query, {.time = std::chrono::duration<double>(0.5)}, counted());
  Json certificate = Json::parse(write_certificate({.model_sha256 = model.sha256(),
                                                    .selection = {},
                                                    .from = "",
                                                    .norms = query.norms,
                                                    .domain = domain},
                                                   answer));
  return {std::move(model), std::move(certificate)};
}

CheckResult check(const Case& c) { return check_certificate(c.model, to_text(c.certificate)); }

Domain small_box() {
  Domain domain;
  domain.box = Box{Tensor::vector({-1, 0, 0.5}), Tensor::vector({0, 1, 0.75})};
  return domain;
}

TEST(Checker, AcceptsWhatWasProved) {
  for (const char* norm : {"2", "1", "inf", "1:inf", "2:inf", "3", "inf:1"}) {
    const CheckResult result = check(solved(norm));
    EXPECT_TRUE(result.valid) << norm << ": " << result.reason;
  }
  const CheckResult local = check(solved("2", small_box()));
  EXPECT_TRUE(local.valid) << local.reason;
  Domain ball;
  ball.ball = Ball{Tensor::vector({0, 0, 0}), 0.5, Norm(2)};
  EXPECT_TRUE(check(solved("2", ball)).valid);
}

TEST(Checker, AnyChangedByteBreaksTheDigest) {
  const Case c = solved("2");
  const std::string text = to_text(c.certificate);
  std::mt19937_64 rng(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::string changed = text;
    char& byte = changed[rng() % changed.size()];
    const char before = byte;
    while (byte == before) byte = static_cast<char>(' ' + rng() % 95);
    try {
      const CheckResult result = check_certificate(c.model, changed);
      // Spelling a number in another way, or moving white space, leaves the document what it was.
      const bool same = Json::parse(changed) == c.certificate;
      EXPECT_TRUE(!result.valid || same) << changed;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadFile);
    }
  }
}

// With the digest made to fit, the mathematics alone has to notice.
TEST(Checker, RejectsAThousandFalseCertificates) {
  const std::vector<Case> cases{solved("2"), solved("inf"), solved("1:inf"),
                                solved("2", small_box())};
  std::mt19937_64 rng(11);
  std::uniform_real_distribution<double> uniform;
  int rejected = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Case c = cases[rng() % cases.size()];
    const double factor =
        1 - std::pow(10.0, -6 * uniform(rng) - 1);  // lowered by 10 % down to 1e-7
    switch (rng() % 4) {
      case 0: {
        double& value = c.certificate["claim"]["upper"]["value"].get_ref<double&>();
        // Less room than the claim of a computed bound has.
        if (c.certificate["proof"][0]["kind"] == "recomputed") value /= 1 + 0x1p-19;
        value *= factor;
        break;
      }
      case 1: {
        double& value = c.certificate["claim"]["lower"]["value"].get_ref<double&>();
        value /= factor;
        break;
      }
      case 2: {
        // A dense layer's gain lowered, and the claim with it, so that only the gain is wrong.
        Json& proof = c.certificate["proof"][0];
        if (proof["kind"] == "multipliers") {
          Json& chain = proof["chains"][0];
          // Below what any multipliers can prove, with a claim to match.
          const double less = 0.99 - 0.5 * uniform(rng);
          chain["rho"].get_ref<double&>() *= less;
          c.certificate["claim"]["upper"]["value"].get_ref<double&>() *= 0.999 * std::sqrt(less);
          for (Json& layer : chain["multipliers"]) {
            for (Json& t : layer) t = t.get<double>() * (rng() % 2 == 0 ? 1.0 : less);
          }
          break;
        }
        Json& gains = proof["gains"];
        std::vector<std::size_t> dense;
        for (std::size_t i = 0; i < gains.size(); ++i) {
          if (gains[i]["node"] != "relu" && gains[i]["value"].is_number_float()) dense.push_back(i);
        }
        if (dense.empty()) {
          --trial;
          continue;
        }
        gains[dense[rng() % dense.size()]]["value"].get_ref<double&>() *= factor;
        break;
      }
      default: {
        // Another function, domain or model.
        if (rng() % 2 == 0) {
          c.certificate["model"]["sha256"] = std::string(64, '0');
        } else {
          c.certificate["proof"][1]["x"][0] = c.certificate["proof"][1]["y"][0].get<double>() + 1e3;
        }
      }
    }
    const CheckResult result = check_resealed(c.model, c.certificate);
    EXPECT_FALSE(result.valid) << to_text(c.certificate);
    rejected += result.valid ? 0 : 1;
  }
  EXPECT_EQ(rejected, 1000);
}

// sqrt(relu(x) - 1), proved on [2, 3] and claimed on [-2, -1], where no gain is larger.
TEST(Checker, NothingIsProvedWhereThereIsNoValue) {
  ModelWriter w;
  w.input("x", {1});
  w.weight("one", {1}, {1});
  w.node("Relu", {"x"}, {"r"}, "relu");
  w.node("Sub", {"r", "one"}, {"d"}, "minus");
  w.node("Sqrt", {"d"}, {"y"}, "root");
  w.output("y");
  const OnnxModel model = w.read();
  const Selected selected = select(model.graph(), {});
  Query query{&selected.graph, parse_norms("2"), {}};
  query.domain.box = Box{Tensor::vector({2}), Tensor::vector({3})};
  const Answer answer = find_bracket(query, {.methods = {"layer-product"}}, counted());
  Json certificate = Json::parse(write_certificate({.model_sha256 = model.sha256(),
                                                    .selection = {},
                                                    .from = "",
                                                    .norms = query.norms,
                                                    .domain = query.domain},
                                                   answer));
  EXPECT_TRUE(check_resealed(model, certificate).valid);
  certificate["query"]["domain"]["lo"] = {-2};
  certificate["query"]["domain"]["hi"] = {-1};
  const CheckResult moved = check_resealed(model, certificate);
  EXPECT_FALSE(moved.valid);
  EXPECT_NE(moved.reason.find("no value"), std::string::npos) << moved.reason;
}

TEST(Checker, RefusesOtherVersionsByName) {
  Case c = solved("2");
  c.certificate["schema"] = "lipscope.certificate/1";
  c.certificate = resealed(c.certificate);
  try {
    (void)check(c);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadFile);
    EXPECT_NE(std::string(error.what()).find("lipscope.certificate/1"), std::string::npos);
  }
}

TEST(Checker, ChecksAllCertificatesOfAFile) {
  const Case c = solved("2");
  Case bad = solved("inf");
  bad.certificate["claim"]["upper"]["value"] = 0.001;
  bad.certificate = resealed(bad.certificate);
  const auto several = [&](std::initializer_list<Json> list) {
    return to_text(Json{{"schema", "lipscope.certificates/1"}, {"certificates", list}});
  };
  const auto results =
      check_certificates(c.model, several({c.certificate, bad.certificate, c.certificate}));
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].valid && results[2].valid);
  EXPECT_FALSE(results[1].valid);
  EXPECT_THROW((void)check_certificates(c.model, several({})), Error);
  EXPECT_THROW((void)check_certificates(c.model, several({c.certificate, Json(3)})), Error);
}

TEST(Checker, StatesWhatIsProved) {
  const CheckResult result = check(solved("2", small_box()));
  ASSERT_TRUE(result.valid) << result.reason;
  const Json query = Json::parse(result.statement)["query"];
  EXPECT_EQ(query["norm_in"], "2");
  EXPECT_EQ(query["domain"]["kind"], "box");
  ASSERT_EQ(result.kinds.size(), 2U);
  EXPECT_EQ(result.kinds[1], "quotient");
}

TEST(Checker, RefusesWhatIsNoCertificate) {
  const OnnxModel model = small_net().read();
  EXPECT_THROW((void)check_certificate(model, "hello"), Error);
  EXPECT_THROW((void)check_certificate(model, "{}"), Error);
  EXPECT_THROW((void)check_certificate(model, R"({"schema":"lipscope.bound/1"})"), Error);
}

TEST(Checker, ReadsTheGraphOnce) {
  int with_units = 0;
  for (const char* norm : {"2", "inf", "1:inf"}) {
    for (const Domain& domain : {Domain{}, small_box()}) {
      const Case c = solved(norm, domain);
      const std::size_t before = networks_read();
      EXPECT_TRUE(check(c).valid);
      EXPECT_LE(networks_read(), before + 1);
      with_units += networks_read() > before ? 1 : 0;
    }
  }
  EXPECT_GT(with_units, 3);
}

}  // namespace
}  // namespace lipscope
