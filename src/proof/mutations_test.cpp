// SPDX-License-Identifier: Apache-2.0
// Certificates that were changed at random and signed again, about networks whose constants are
// known in closed form: what is still accepted is true.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "estimate/counted_for_test.h"
#include "lipscope/bound.h"
#include "lipscope/certificate.h"
#include "lipscope/error.h"
#include "tests/support/model_writer.h"
#include "tests/support/resealed.h"

namespace lipscope {
namespace {

constexpr double kRight[] = {3, 1}, kLeft[] = {2, 1.5};  // slopes of the two entries

// y_i is kRight[i] x_i for positive x_i and kLeft[i] x_i for negative ones.
OnnxModel two_slopes() {
  testing_support::ModelWriter w;
  w.input("x", {-1, 2});
  w.weight("A", {2, 4}, {1, 0, -1, 0, 0, 1, 0, -1});
  w.weight("B", {4, 2}, {3, 0, 0, 1, -2, 0, 0, -1.5F});
  w.node("MatMul", {"x", "A"}, {"h"}, "first");
  w.node("Relu", {"h"}, {"r"}, "relu");
  w.node("MatMul", {"r", "B"}, {"y"}, "second");
  w.output("y");
  return w.read();
}

// y_i = kRight[i] x_i, as a convolution with two groups.
OnnxModel two_factors() {
  testing_support::ModelWriter w;
  w.input("x", {-1, 2, 1});
  w.weight("W", {2, 2, 1}, {3, 0, 0, 1});
  w.node("Conv", {"x", "W"}, {"y"}, "conv");
  w.output("y");
  return w.read();
}

struct Base {
  const OnnxModel* model;
  bool kinks;
  Json certificate;
};

void add_base(std::vector<Base>& bases, const OnnxModel& model, bool kinks, const std::string& norm,
              const Domain& domain, std::vector<std::string> methods) {
  const Selected selected = select(model.graph(), {});
  const Query query{&selected.graph, parse_norms(norm), domain};
  methods.emplace_back("jacobian-ascent");
  const Answer answer =
      find_bracket(query, {.time = std::chrono::seconds(20), .methods = methods}, counted());
  ASSERT_TRUE(answer.bracket.upper(Guarantee::kProved)) << methods[0] << " " << norm;
  bases.push_back({&model, kinks,
                   Json::parse(write_certificate({.model_sha256 = model.sha256(),
                                                  .selection = {},
                                                  .from = "",
                                                  .norms = query.norms,
                                                  .domain = domain},
                                                 answer))});
}

// The constant a statement is about; nothing for one whose constant is not known here.
std::optional<double> constant_of(const Base& base, const Json& query) {
  if (!query["from"].is_null() || !query["to"].is_null() || !query["wrt"].is_null() ||
      query.contains("dims") || query.contains("shapes"))
    return std::nullopt;
  const double p = parse_norms(query["norm_in"].get<std::string>()).in.p();
  const double q = parse_norms(query["norm_out"].get<std::string>()).in.p();
  double slope[2];
  const Json& domain = query["domain"];
  for (std::size_t i = 0; i < 2; ++i) {
    double low = -HUGE_VAL, high = HUGE_VAL;
    if (domain.contains("radius")) {
      low = domain["center"][i].get<double>() - domain["radius"].get<double>();
      high = domain["center"][i].get<double>() + domain["radius"].get<double>();
    }
    const auto end = [](const Json& e) {
      return e.is_string() ? (e == "inf" ? HUGE_VAL : -HUGE_VAL) : e.get<double>();
    };
    if (domain.contains("lo")) {
      low = std::max(low, end(domain["lo"][i]));
      high = std::min(high, end(domain["hi"][i]));
    }
    if (!(low < high)) return std::nullopt;
    slope[i] = !base.kinks           ? kRight[i]
               : low < 0 && high > 0 ? std::max(kLeft[i], kRight[i])
               : high > 0            ? kRight[i]
                                     : kLeft[i];
  }
  // A corner of a ball is no point of it: both entries need not have their larger slope at once.
  const bool jointly = p > q || (query["output"].is_object() && query["output"].contains("margin"));
  if (base.kinks && domain.contains("radius") && (jointly || domain.contains("lo")))
    return std::nullopt;
  const auto together = [&](double r) {
    if (std::isinf(r)) return std::max(slope[0], slope[1]);
    return static_cast<double>(
        std::pow(std::pow(static_cast<long double>(slope[0]), static_cast<long double>(r)) +
                     std::pow(static_cast<long double>(slope[1]), static_cast<long double>(r)),
                 1 / static_cast<long double>(r)));
  };
  if (const Json& output = query["output"]; !output.is_null()) {
    if (output.contains("index")) return slope[output["index"].get<std::size_t>()];
    if (output["margin"][0] == output["margin"][1]) return 0;
    return together(p == 1 ? HUGE_VAL : std::isinf(p) ? 1 : p / (p - 1));
  }
  if (p <= q) return together(HUGE_VAL);
  return together(std::isinf(p) ? q : p * q / (p - q));
}

class Mutation {
 public:
  explicit Mutation(unsigned seed) : rng_(seed) {}

  void operator()(Json& document) {
    // Half of them also lower the claim: then something else has to make it look proved.
    if (pick(2) == 0) {
      Json& value = document["claim"]["upper"]["value"];
      value = value.get<double>() * (1 - std::pow(10.0, -1.0 - static_cast<double>(pick(9))));
    }
    for (std::size_t n = 1 + pick(3); n > 0; --n) change(somewhere(document));
  }

 private:
  std::size_t pick(std::size_t n) { return rng_() % n; }

  Json& somewhere(Json& from) {
    Json* at = &from;
    while (at->is_structured() && !at->empty() && pick(12) != 0) {
      auto entry = at->begin();
      std::advance(entry, static_cast<std::ptrdiff_t>(pick(at->size())));
      at = &*entry;
    }
    return *at;
  }

  void change(Json& value) {
    static const std::vector<Json> kOther{Json(nullptr),
                                          true,
                                          0,
                                          -1,
                                          1,
                                          2,
                                          1e308,
                                          -1e308,
                                          5e-324,
                                          -0.0,
                                          1e-9,
                                          "inf",
                                          "-inf",
                                          "1",
                                          "2",
                                          "3",
                                          "1.5",
                                          "composition",
                                          "multipliers",
                                          "cases",
                                          "recomputed",
                                          "quotient",
                                          "fast-lip",
                                          "gram-l2",
                                          "recur-jac",
                                          "seqlip",
                                          "loop-transform",
                                          "everywhere",
                                          "box",
                                          "relu",
                                          "second",
                                          "norms-1",
                                          "Cholesky factorisation [norms-7]",
                                          "row norms [norms-3]",
                                          "Schur test [norms-4]",
                                          Json::array(),
                                          Json::object(),
                                          Json{{"index", 1}},
                                          Json{{"margin", {0, 1}}}};
    if (value.is_number() && pick(3) != 0) {
      const double number = value.get<double>();
      const double step = std::pow(10.0, -static_cast<double>(pick(16)));
      switch (pick(5)) {
        case 0: value = number * (1 - step); break;
        case 1: value = number * (1 + step); break;
        case 2: value = -number; break;
        case 3: value = number + (pick(2) == 0 ? 1 : -1); break;
        default: value = value.is_number_integer() ? Json(number * 2) : Json(std::floor(number));
      }
    } else if (value.is_array() && !value.empty() && pick(2) == 0) {
      const std::size_t at = pick(value.size());
      switch (pick(3)) {
        case 0: value.erase(at); break;
        case 1: value.push_back(Json(value[at])); break;
        default: std::swap(value[at], value[pick(value.size())]);
      }
    } else if (value.is_object() && !value.empty() && pick(2) == 0) {
      auto entry = value.begin();
      std::advance(entry, static_cast<std::ptrdiff_t>(pick(value.size())));
      value.erase(entry.key());
    } else {
      value = kOther[pick(kOther.size())];
    }
  }

  std::mt19937_64 rng_;
};

TEST(Mutations, WhatIsAcceptedIsTrue) {
  const char* wanted = std::getenv("LIPSCOPE_MUTATIONS");
  const int count = wanted != nullptr ? std::atoi(wanted) : 3000;
  const OnnxModel kinked = two_slopes(), linear = two_factors();
  const Domain box{.box = Box{Tensor::vector(std::vector<double>{-0.5, 0.25}),
                              Tensor::vector(std::vector<double>{1, 2})}};
  const Domain ball{.ball = Ball{Tensor::vector(std::vector<double>{0, 0}), 0.5, Norm(2)}};
  std::vector<Base> bases;
  for (const char* norm : {"2", "1", "inf", "inf:1", "3:2"}) {
    add_base(bases, linear, false, norm, {}, {"layer-product", "dag"});
    add_base(bases, kinked, true, norm, {}, {"layer-product", "dag"});
  }
  for (const char* method : {"lipsdp", "exact-global", "seqlip", "loop-transform"})
    add_base(bases, kinked, true, "2", {}, {method});
  for (const Domain* domain : {&box, &ball}) {
    for (const char* method : {"exact-local", "local-lipsdp", "gram-l2", "linear-jacobian"})
      add_base(bases, kinked, true, "2", *domain, {method});
  }
  add_base(bases, kinked, true, "inf", {}, {"exact-global"});
  add_base(bases, kinked, true, "1", box, {"exact-local"});
  std::map<std::string, int> kinds;
  for (const Base& base : bases) {
    const CheckResult result = check_certificate(*base.model, to_text(base.certificate));
    EXPECT_TRUE(result.valid) << result.reason << to_text(base.certificate);
    ++kinds[result.kinds.at(0)];
  }
  EXPECT_EQ(kinds.size(), 4U);

  Mutation mutate(20);
  int accepted = 0, refused = 0;
  for (int trial = 0; trial < count; ++trial) {
    const Base& base = bases[static_cast<std::size_t>(trial) % bases.size()];
    Json changed = base.certificate;
    mutate(changed);
    if (changed.is_object()) changed = testing_support::resealed(changed);
    const std::string text = to_text(changed);
    CheckResult result;
    try {
      result = check_certificate(*base.model, text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadFile) << error.what() << "\n" << text;
      ++refused;
      continue;
    }
    if (!result.valid) continue;
    ++accepted;
    const auto constant = constant_of(base, Json::parse(result.statement)["query"]);
    if (!constant) continue;
    const Json claim = Json::parse(result.claim);
    const auto number = [](const Json& bound) {
      if (!bound["value"].is_string()) return bound["value"].get<double>();
      return bound["value"] == "-inf" ? -HUGE_VAL : HUGE_VAL;
    };
    EXPECT_GE(number(claim["upper"]), *constant * (1 - 1e-15)) << text;
    if (!claim["lower"].is_null()) {
      EXPECT_LE(number(claim["lower"]), *constant * (1 + 1e-15)) << text;
    }
  }
  // Most changes matter, and some do not.
  EXPECT_GT(accepted, count / 100);
  EXPECT_LT(accepted, count / 2);
  EXPECT_GT(refused, count / 10);
}

}  // namespace
}  // namespace lipscope
