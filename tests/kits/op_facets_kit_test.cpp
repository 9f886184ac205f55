// SPDX-License-Identifier: Apache-2.0
// Every facet of every operator is held against its values on some worked example: an operator that
// offers a facet which no example exercises fails. Prints who offers what, and how often it was
// compared.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "ops/facets.h"
#include "ops/rows/softmax_pairs.h"
#include "tests/kits/facet_checks.h"

namespace lipscope {
namespace {

using kits::Built;
using kits::FacetCase;
using kits::FacetCheck;

// Those of the first five rows have kits of their own, which look at every example for which the
// facet answers: op_kit, op_bounds_kit, op_relax_kit.
int has_range(const FacetCase& c) { return c.op().range(c.boxes(0)) ? 1 : 0; }
int has_lines(const FacetCase& c) { return c.op().relax(c.boxes(0)) ? 1 : 0; }
int has_slopes(const FacetCase& c) { return c.op().differentiable() ? 1 : 0; }
int has_gains(const FacetCase& c) {
  int count = 0;
  const std::vector<Box> boxes = c.boxes(0);
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    const GainQuery query{{Norm(2), Norm(2)}, boxes, static_cast<Index>(k)};
    count += c.moves(k) && c.op().gain(query) ? 1 : 0;
  }
  return count;
}
int has_matrices(const FacetCase& c) {
  int count = 0;
  const std::vector<Box> boxes = c.boxes(0);
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    for (std::size_t o = 0; o < c.node().outputs.size(); ++o) {
      const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
      count += c.moves(k) && c.op().matrix(query, [](Index, Index, double, double) {}) ? 1 : 0;
    }
  }
  return count;
}

const FacetCheck kFacetChecks[] = {{"derivative", has_slopes},
                                   {"range", has_range},
                                   {"gain", has_gains},
                                   {"matrix", has_matrices},
                                   {"relax", has_lines},
                                   {"disjoint", kits::check_disjoint},
                                   {"decides", kits::check_decides},
                                   {"extreme", kits::check_extreme},
                                   {"negative-scale", kits::check_negative_scale},
                                   {"elementwise", kits::check_elementwise},
                                   {"box-product", kits::check_box_product},
                                   {"adjoint", kits::check_adjoint},
                                   {"wide", kits::check_wide},
                                   {"rounding", kits::check_rounding},
                                   {"exact", kits::check_exact},
                                   {"windows", kits::check_windows},
                                   {"softmax", kits::check_softmax},
                                   {"index-map", kits::check_index_map},
                                   {"multilinear", kits::check_multilinear},
                                   {"convolution", kits::check_convolution}};

bool holds_numbers(const Tensor& values) {
  for (Index i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values.at(i))) return false;
  }
  return true;
}

class OpFacetsKit : public testing::TestWithParam<const OpKind*> {};

TEST_P(OpFacetsKit, WhatIsOfferedIsTrueAndExercised) {
  const OpKind& kind = *GetParam();
  Rng rng(20250402);
  std::map<std::string_view, int> compared;
  const std::vector<OpCase> cases = kind.cases(rng);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Built built = kits::build(kind, cases[i]);
    if (built.graph.nodes().empty())
      built = kits::build(kind, cases[i], kits::Constants::kAreInputs);
    if (built.graph.nodes().empty()) continue;
    const FacetCase c(cases[i], built, rng);
    if (!std::ranges::all_of(c.in, holds_numbers)) continue;
    for (const FacetCheck& check : kFacetChecks) {
      SCOPED_TRACE("case " + std::to_string(i) + " " + std::string(check.facet));
      compared[check.facet] += check.run(c);
      if (HasFailure()) return;
    }
  }
  std::string row = std::string(kind.name) + ":";
  const std::vector<std::string_view> offered = offered_facets(kind);
  for (const std::string_view facet : offered) {
    EXPECT_GT(compared[facet], 0) << "no worked example exercises " << facet;
    row += " " + std::string(facet) + " " + std::to_string(compared[facet]);
  }
  for (const auto& [facet, count] : compared) {
    EXPECT_TRUE(count == 0 || std::ranges::find(offered, facet) != offered.end())
        << facet << " is not listed";
  }
  std::printf("%s\n", row.c_str());
}

INSTANTIATE_TEST_SUITE_P(AllOperators, OpFacetsKit, testing::ValuesIn(kits::all_kinds()),
                         [](const auto& kind) { return std::string(kind.param->name); });

// Slopes of several entries are offered by no operator of ONNX: the next test is about those.
TEST(OpFacets, EachHasACheck) {
  std::set<std::string_view> named, checked{"joint-slopes"};
  for (const Facet& facet : all_facets()) named.insert(facet.name);
  for (const FacetCheck& check : kFacetChecks) checked.insert(check.facet);
  EXPECT_EQ(named, checked);
}

TEST(OpFacets, JointSlopesHoldThoseOfSoftmax) {
  Rng rng(7);
  for (const bool log : {false, true}) {
    const Index classes = 4;
    std::vector<SoftmaxPair> pairs;
    for (Index i = 0; i < classes; ++i) {
      for (Index j = log ? 0 : i + 1; j < classes; ++j) {
        if (i != j) pairs.push_back({i, j});
      }
    }
    const auto op = make_softmax_pairs(log, classes, pairs);
    const JointSlopes& joint = *op->joint_slopes();
    ASSERT_EQ(joint.units(), pairs.size());
    for (int trial = 0; trial < 200; ++trial) {
      // Ranges of the differences around those of a point, which is inside.
      const Tensor z = random_tensor(rng, {classes}, -3, 3);
      const double width = trial % 3 == 0 ? 0 : kits::uniform(rng);
      std::vector<double> share, weights;
      double total = 0;
      for (const double x : z.doubles()) total += std::exp(x);
      for (const double x : z.doubles()) share.push_back(std::exp(x) / total);
      std::vector<Interval> values, slopes(pairs.size(), Interval{0, 1});
      std::vector<double> exact;
      double sum = 0;
      for (const auto& [plus, minus] : pairs) {
        const double difference = z.at(plus) - z.at(minus);
        values.push_back({difference - width * kits::uniform(rng) - 1e-12,
                          difference + width * kits::uniform(rng) + 1e-12});
        const auto p = static_cast<std::size_t>(plus), m = static_cast<std::size_t>(minus);
        exact.push_back(log ? share[p] : share[p] * share[m]);
        weights.push_back(kits::uniform(rng));
        sum += weights.back() * exact.back();
      }
      joint.narrow(values, slopes);
      for (std::size_t u = 0; u < pairs.size(); ++u) {
        EXPECT_GE(exact[u], slopes[u].lo - 1e-12);
        EXPECT_LE(exact[u], slopes[u].hi + 1e-12);
      }
      EXPECT_LE(sum, joint.most(values, weights) + 1e-12);
    }
  }
}

// Those without which no transformer passes.
TEST(OpFacets, NobodyHasForgottenTheirWideNumbers) {
  for (const char* name : {"Add",
                           "BatchNormalization",
                           "Concat",
                           "Conv",
                           "Cos",
                           "Div",
                           "Erf",
                           "Exp",
                           "Gelu",
                           "Gemm",
                           "InstanceNormalization",
                           "LayerNormalization",
                           "MatMul",
                           "Mul",
                           "Neg",
                           "ReduceMean",
                           "Relu",
                           "Reshape",
                           "Sigmoid",
                           "Slice",
                           "Softmax",
                           "Sqrt",
                           "Sub",
                           "Tanh",
                           "Transpose",
                           "Where"}) {
    const auto offered = offered_facets(*find_op_kind(name));
    EXPECT_TRUE(std::ranges::find(offered, "wide") != offered.end()) << name;
  }
}

}  // namespace
}  // namespace lipscope
