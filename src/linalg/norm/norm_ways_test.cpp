// SPDX-License-Identifier: Apache-2.0
// Steps that prove a norm: whoever follows them proves the claim as it stands, and nothing below
// the norm.
#include "linalg/norm/norm_ways.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "linalg/conv/padded_conv_norm.h"

namespace lipscope {
namespace {

std::vector<double> normal_entries(Index count, unsigned seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<double> entries(static_cast<std::size_t>(count));
  for (double& e : entries) e = normal(rng);
  return entries;
}

// `norm`: a bracket for an effort.
template <class NormOf>
void expect_steps_prove(const NormOf& norm, const std::string& what) {
  const NormBracket plain = norm(NormEffort{});
  for (const double work : {2e11, 2e8, 1e5}) {
    ProofSteps steps;
    const double claim =
        norm(NormEffort{.want_lower = false, .max_work = work, .steps = &steps}).upper;
    EXPECT_GE(claim, plain.lower) << what;
    const auto follow = [&](const std::vector<ProofStep>& list) {
      ProofSteps given(list);
      return norm(NormEffort{.want_lower = false, .steps = &given}).upper;
    };
    EXPECT_EQ(follow(steps.list()), claim) << what << " " << work;
    for (std::size_t s = 0; s < steps.list().size(); ++s) {
      for (const double factor : {1 - 1e-3, 0.5, 0.0, -1.0, double(NAN)}) {
        auto changed = steps.list();
        changed[s].at_most *= factor;
        EXPECT_GE(follow(changed), plain.lower) << what << " " << changed[s].theorem;
      }
      auto changed = steps.list();
      changed[s].theorem = "no theorem";
      EXPECT_EQ(follow(changed), kInf) << what;
      changed = steps.list();
      changed.resize(s);
      EXPECT_EQ(follow(changed), kInf) << what;
    }
  }
}

const char* const kNormPairs[] = {"2", "3", "1.5", "2:4", "inf:2", "inf:1", "2:1", "3:1.5"};

TEST(ProofSteps, ProveNormsOfMatrices) {
  for (const char* norms : kNormPairs) {
    for (const auto& [rows, cols] : {std::pair<Index, Index>{7, 5}, {30, 40}, {300, 20}}) {
      const auto a = normal_entries(rows * cols, 5);
      const std::vector<double> radius(a.size(), 1e-9);
      for (const double* r : {static_cast<const double*>(nullptr), radius.data()}) {
        expect_steps_prove(
            [&, m = rows, n = cols](const NormEffort& effort) {
              return matrix_norm({m, n, a.data(), r}, parse_norms(norms), effort);
            },
            norms);
      }
    }
  }
}

// Finders widen ranges a little; the centre of what the checker has lies elsewhere.
TEST(ProofSteps, ProveNormsOfSetsInsideTheSet) {
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const Index rows = 2 + repeat % 5, cols = 3;
    const auto a = normal_entries(rows * cols, 100 + static_cast<unsigned>(repeat));
    std::vector<double> radius, inner, inner_radius;
    for (const double centre : a) {
      radius.push_back(0.3 * uniform(rng));
      const double margin = (std::fabs(centre) + radius.back()) * 0x1p-40;
      const double low = centre - radius.back() + margin * std::round(uniform(rng));
      const double high = centre + radius.back() - margin * std::round(uniform(rng));
      inner.push_back(0.5 * (low + high));
      inner_radius.push_back(0.5 * (high - low));
    }
    for (const char* norms : kNormPairs) {
      ProofSteps steps;
      const double claim = matrix_norm({rows, cols, a.data(), radius.data()}, parse_norms(norms),
                                       {.want_lower = false, .steps = &steps})
                               .upper;
      ProofSteps given(steps.list());
      const double proved = matrix_norm({rows, cols, inner.data(), inner_radius.data()},
                                        parse_norms(norms), {.want_lower = false, .steps = &given})
                                .upper;
      EXPECT_LE(proved, claim) << norms << " " << repeat;
    }
  }
}

TEST(ProofSteps, ProveNormsByRepeatedSquaring) {
  const auto a = normal_entries(40 * 50, 6);
  expect_steps_prove(
      [&](NormEffort effort) {
        effort.max_dense = 10;
        return matrix_norm({40, 50, a.data()}, parse_norms("2"), effort);
      },
      "squared");
}

TEST(ProofSteps, ProveNormsOfConvolutions) {
  for (const char* norms : {"2", "3", "inf:2"}) {
    for (const Index groups : {1, 2}) {
      ConvShape shape;
      shape.groups = groups;
      shape.in_channels = 4;
      shape.out_channels = 6;
      shape.input = shape.output = {1, 9, 8};
      shape.kernel = {1, 3, 3};
      shape.pad = {0, 1, 1};
      const auto w = normal_entries(shape.w_size(), 7);
      expect_steps_prove(
          [&](const NormEffort& effort) {
            return conv_norm(shape, w.data(), nullptr, parse_norms(norms), effort);
          },
          norms);
      for (const PaddingMode mode :
           {PaddingMode::kCircular, PaddingMode::kReflect, PaddingMode::kReplicate}) {
        expect_steps_prove(
            [&](const NormEffort& effort) {
              return padded_conv_norm({shape, mode}, w.data(), nullptr, parse_norms(norms), effort);
            },
            norms);
      }
    }
  }
}

TEST(ProofSteps, ProveNormsOfSparseMaps) {
  std::mt19937_64 rng(8);
  std::vector<Index> row, col;
  for (int i = 0; i < 60; ++i) {
    row.push_back(static_cast<Index>(rng() % 15));
    col.push_back(static_cast<Index>(rng() % 20));
  }
  const auto w = normal_entries(60, 9);
  for (const char* norms : kNormPairs) {
    expect_steps_prove(
        [&](const NormEffort& effort) {
          return sparse_norm({15, 20, row, col, w}, parse_norms(norms), effort);
        },
        norms);
  }
}

}  // namespace
}  // namespace lipscope
