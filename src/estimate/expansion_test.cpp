// SPDX-License-Identifier: Apache-2.0
#include "attention/expansion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "attention/attention_graphs_for_test.h"
#include "attention/find.h"
#include "base/json.h"
#include "estimate/chain_for_test.h"
#include "estimate/counted_for_test.h"
#include "lipscope/bound.h"
#include "lipscope/certificate.h"
#include "lipscope/select.h"
#include "passes/pass.h"
#include "tests/support/model_writer.h"
#include "tests/support/resealed.h"

namespace lipscope {
namespace {

using namespace testing_support;

Domain ball_around(const std::vector<double>& centre, double radius) {
  Domain domain;
  domain.ball = Ball{Tensor::vector(centre), radius, Norm(2)};
  return domain;
}

std::vector<double> some_point(Rng& rng, const Graph& graph, double size = 1) {
  std::vector<double> x;
  for (const ValueId id : graph.inputs()) {
    const Tensor part = random_tensor(rng, graph.value(id).type.shape, -size, size);
    x.insert(x.end(), part.doubles().begin(), part.doubles().end());
  }
  return x;
}

double upper_of(const Graph& graph, const Domain& domain) {
  return expansion_bound(graph, parse_norms("2"), domain, [] { return false; }).upper;
}

TEST(Expansion, OneFunction) {
  GraphMaker maker;
  const Graph graph = maker.finish(maker.add("Tanh", {maker.input({1})}));
  const double here = 1 - std::pow(std::tanh(0.7), 2);
  EXPECT_NEAR(upper_of(graph, ball_around({0.7}, 0)), here, 1e-14);
  EXPECT_GE(upper_of(graph, ball_around({0.7}, 0)), here - 1e-16);
  // The steepest point of [0.5, 0.9] is 0.5.
  const double steepest = 1 - std::pow(std::tanh(0.5), 2);
  EXPECT_NEAR(upper_of(graph, ball_around({0.7}, 0.2)), steepest, 1e-12);
}

// No quotient in the ball is above the bound; at small radii the bound is near the norm.
void expect_upper_bound(const Graph& graph, std::uint64_t seed) {
  Rng rng(seed);
  const std::vector<double> centre = some_point(rng, graph);
  const double at_centre = upper_of(graph, ball_around(centre, 0));
  ASSERT_TRUE(std::isfinite(at_centre));
  for (const double radius : {1e-6, 0.01, 0.1, 0.5}) {
    const Query query{&graph, parse_norms("2"), ball_around(centre, radius)};
    const double upper = upper_of(graph, query.domain);
    ASSERT_GE(upper, largest_quotient(query, rng)) << seed << " " << radius;
    if (radius == 1e-6) {
      ASSERT_LE(upper, at_centre * 1.01 + 1e-3) << seed;
    }
  }
}

// In other norms, on balls of other norms.
TEST(Expansion, OtherNorms) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Graph graph = attention_graph({.seed = static_cast<unsigned>(seed)});
    Rng rng(seed);
    const std::vector<double> centre = some_point(rng, graph);
    for (const char* norm : {"inf", "1", "3", "inf:2", "2:1", "1:inf"}) {
      for (const double radius : {1e-6, 0.01, 0.1}) {
        Query query{&graph, parse_norms(norm), ball_around(centre, radius)};
        query.domain.ball->norm = query.norms.in;
        const Expansion found =
            expansion_bound(graph, query.norms, query.domain, [] { return false; });
        ASSERT_TRUE(std::isfinite(found.upper)) << found.reason;
        ASSERT_GE(found.upper, largest_quotient(query, rng)) << seed << " " << norm;
      }
    }
  }
}

TEST(Expansion, AttentionInManySpellings) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto s = static_cast<unsigned>(seed);
    expect_upper_bound(attention_graph({.seed = s}), seed);
    expect_upper_bound(attention_graph({.scale_queries = true, .causal = true, .seed = s}), seed);
    expect_upper_bound(attention_graph({.tokens = 4, .bias = false, .output = false, .seed = s}),
                       seed);
  }
}

// x + attention, then a residual MLP, then a second attention.
Graph transformer(unsigned seed, const std::string& activation) {
  Rng rng(seed);
  GraphMaker m;
  const auto weights = [&](Shape shape) {
    return m.weights(random_tensor(rng, std::move(shape), -0.7, 0.7));
  };
  ValueId x = m.input({1, 3, 4});
  const auto attention = [&](ValueId t) {
    const ValueId q = m.add("MatMul", {t, weights({4, 4})}),
                  k = m.add("MatMul", {t, weights({4, 4})});
    const ValueId v = m.add("MatMul", {t, weights({4, 4})});
    const ValueId kt = m.add("Transpose", {k}, {{"perm", std::vector<Index>{0, 2, 1}}});
    const ValueId p = m.add("Softmax", {m.add("MatMul", {q, kt})}, {{"axis", Index{2}}});
    return m.add("Add", {t, m.add("MatMul", {p, v})});
  };
  x = attention(x);
  const ValueId hidden = m.add(activation, {m.add("MatMul", {x, weights({4, 6})})});
  x = m.add("Add", {x, m.add("MatMul", {hidden, weights({6, 4})})});
  return m.finish(attention(x));
}

TEST(Expansion, Transformers) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    for (const char* activation : {"Relu", "Gelu", "Tanh"}) {
      if (std::string(activation) == "Gelu" && find_op_kind("Gelu") == nullptr) continue;
      expect_upper_bound(transformer(seed, activation), seed);
    }
  }
}

// Blocks as exporters spell them: RMSNorm as powers, means and roots, SiLU as a product.
Graph rms_transformer(unsigned seed, bool reciprocal) {
  Rng rng(seed);
  GraphMaker m;
  const auto weights = [&](Shape shape) {
    return m.weights(random_tensor(rng, std::move(shape), -0.7, 0.7));
  };
  const auto norm = [&](ValueId x) {
    const ValueId squares = m.add("Pow", {x, m.weights({}, {2})});
    const ValueId mean = m.add("ReduceMean", {squares}, {{"axes", std::vector<Index>{-1}}});
    const ValueId root = m.add("Sqrt", {m.add("Add", {mean, m.weights({}, {1e-3})})});
    const ValueId z =
        reciprocal ? m.add("Mul", {x, m.add("Reciprocal", {root})}) : m.add("Div", {x, root});
    return m.add("Mul", {z, m.weights(random_tensor(rng, {4}, 0.5, 1.5))});
  };
  const ValueId x = m.input({1, 3, 4});
  const ValueId t = norm(x);
  const ValueId q = m.add("MatMul", {t, weights({4, 4})}),
                k = m.add("MatMul", {t, weights({4, 4})});
  const ValueId kt = m.add("Transpose", {k}, {{"perm", std::vector<Index>{0, 2, 1}}});
  const ValueId p = m.add("Softmax", {m.add("MatMul", {q, kt})}, {{"axis", Index{2}}});
  const ValueId mixed = m.add("MatMul", {p, m.add("MatMul", {t, weights({4, 4})})});
  const ValueId y = m.add("Add", {x, mixed});
  const ValueId hidden = m.add("MatMul", {norm(y), weights({4, 6})});
  const ValueId silu = m.add("Mul", {hidden, m.add("Sigmoid", {hidden})});
  return run_passes(m.finish(m.add("Add", {y, m.add("MatMul", {silu, weights({6, 4})})})));
}

TEST(Expansion, RmsNormAndSilu) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const Graph graph = rms_transformer(seed, seed % 2 == 0);
    const auto blocks = find_attention(graph);
    ASSERT_EQ(blocks.size(), 1U);
    EXPECT_EQ(blocks[0].kind, AttentionKind::kSelf);
    EXPECT_EQ(blocks[0].norm, "RMSNormalization");
    EXPECT_EQ(blocks[0].mlp, "Silu");
    EXPECT_TRUE(blocks[0].residual);
    expect_upper_bound(graph, seed);
    Rng rng(seed);
    const Query query{&graph, parse_norms("2"), ball_around(some_point(rng, graph), 1e-3)};
    const Answer answer = find_bracket(query, {.methods = {"expansion", "point"}}, counted());
    ASSERT_TRUE(answer.bracket.ratio());
    EXPECT_LE(*answer.bracket.ratio(), 1.5);
  }
}

// A ball holds its centre; quotients of short pairs are lost in rounding, the derivative is not.
TEST(Expansion, LowerBoundsOfBallsAreThoseOfTheCentreAtLeast) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Graph graph = transformer(seed, "Relu");
    Rng rng(seed);
    const std::vector<double> centre = some_point(rng, graph);
    Query query{&graph, parse_norms("2"), ball_around(centre, 0)};
    const auto lower = [&](std::vector<std::string> methods) {
      const Answer answer = find_bracket(
          query, {.time = std::chrono::duration<double>(0.5), .methods = std::move(methods)},
          counted());
      return answer.bracket.lower(Guarantee::kProved)->value;
    };
    const double at_centre = lower({"point"});
    EXPECT_NEAR(at_centre, upper_of(graph, query.domain), 1e-9);
    query.domain.ball->radius = 1e-9;
    const double on_ball = lower({"point", "jacobian-ascent"});
    EXPECT_GE(on_ball, at_centre * (1 - 1e-9));
    EXPECT_LE(on_ball, upper_of(graph, query.domain));
  }
}

TEST(Expansion, Networks) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    const Graph graph = seed % 2 == 0 ? random_chain(rng) : random_residual(rng);
    const std::vector<double> centre = some_point(rng, graph);
    for (const double radius : {0.0, 0.01, 1.0}) {
      const Query query{&graph, parse_norms("2"), ball_around(centre, radius)};
      const double upper = upper_of(graph, query.domain);
      if (radius > 0) {
        EXPECT_GE(upper, largest_quotient(query, rng)) << seed;
      }
    }
  }
}

TEST(Expansion, RowsAndNormalisations) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    GraphMaker m;
    const ValueId x = m.input({2, 5});
    const Tensor scale = random_tensor(rng, {5}, 0.5, 2), bias = random_tensor(rng, {5});
    const ValueId norm =
        m.add("LayerNormalization", {x, m.weights(scale), m.weights(bias)}, {}, 17);
    const ValueId y = m.add("MatMul", {norm, m.weights(random_tensor(rng, {5, 4}))});
    expect_upper_bound(m.finish(m.add(seed % 2 == 0 ? "Softmax" : "LogSoftmax", {y})), seed);
  }
}

// A normalisation alone, near rows that are almost constant: where it is steepest.
TEST(Expansion, NormalisationOfFlatRows) {
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  const ValueId norm =
      m.add("LayerNormalization", {x, m.weights({3}, {1, 1, 1})}, {{"epsilon", 0.01}}, 17);
  const Graph graph = m.finish(norm);
  Rng rng(3);
  for (const double radius : {0.001, 0.01, 0.1, 1.0}) {
    const Query query{&graph, parse_norms("2"), ball_around({0.1, 0.12, 0.09}, radius)};
    const double upper = upper_of(graph, query.domain);
    EXPECT_GE(upper, largest_quotient(query, rng));
    EXPECT_LE(upper, 31);  // 10 at most anywhere, and its change
  }
}

TEST(Expansion, SaysWhyNot) {
  GraphMaker maker;
  const ValueId x = maker.input({2, 3});
  const Graph graph = maker.finish(maker.add("Mul", {x, x}));
  const Expansion found = expansion_bound(
      graph, parse_norms("2"), ball_around(std::vector<double>(6, 0.1), 0.1), [] { return false; });
  EXPECT_EQ(found.upper, kInf);
  EXPECT_NE(found.reason.find("Mul"), std::string::npos);
  EXPECT_FALSE(expansion_unsupported(graph, {}).empty());
}

TEST(Expansion, CertificatesAreCheckedByComputingAnew) {
  ModelWriter w;
  w.input("x", {1, 3});
  w.weight("A", {3, 4}, {1, -2, 0.5F, 3, 0.25F, 1, -1, 0, 2, 2, 1, -0.5F});
  w.weight("C", {4, 2}, {1, -1, 0.5F, 1, 2, 0.25F, 0.5F, 1});
  w.node("MatMul", {"x", "A"}, {"u"}, "first");
  w.node("Tanh", {"u"}, {"v"}, "tanh");
  w.node("MatMul", {"v", "C"}, {"y"}, "second");
  w.output("y");
  const OnnxModel model = w.read();
  const Selected selected = select(model.graph(), {});
  const Query query{&selected.graph, parse_norms("2"), ball_around({0.1, 0.2, 0.3}, 0.05)};
  const Answer answer = find_bracket(query, {.methods = {"expansion"}}, counted());
  const auto upper = answer.bracket.upper(Guarantee::kProved);
  ASSERT_TRUE(upper);
  EXPECT_EQ(upper->method, "expansion");
  const std::string text = write_certificate({.model_sha256 = model.sha256(),
                                              .selection = {},
                                              .from = "",
                                              .norms = query.norms,
                                              .domain = query.domain},
                                             answer);
  EXPECT_TRUE(check_certificate(model, text).valid) << check_certificate(model, text).reason;
  // What has no witness is not claimed, what has one is.
  const Answer both =
      find_bracket(query, {.methods = {"expansion", "point", "jacobian-ascent"}}, counted());
  ASSERT_TRUE(both.witness && both.witnessed);
  EXPECT_LE(both.witnessed->value, both.bracket.lower(Guarantee::kProved)->value);
  const std::string with_lower = write_certificate({.model_sha256 = model.sha256(),
                                                    .selection = {},
                                                    .from = "",
                                                    .norms = query.norms,
                                                    .domain = query.domain},
                                                   both);
  EXPECT_TRUE(check_certificate(model, with_lower).valid);
  EXPECT_EQ(Json::parse(with_lower)["claim"]["lower"]["value"], both.witnessed->value);
  Json lowered = Json::parse(text);
  lowered["claim"]["upper"]["value"] = upper->value * 0.999;
  EXPECT_FALSE(testing_support::check_resealed(model, lowered).valid);
  Json wider = Json::parse(text);
  wider["query"]["domain"]["radius"] = 0.5;
  EXPECT_FALSE(testing_support::check_resealed(model, wider).valid);
}

}  // namespace
}  // namespace lipscope
