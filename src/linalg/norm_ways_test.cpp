// SPDX-License-Identifier: Apache-2.0
// Steps that prove a norm: whoever follows them proves the claim as it stands, and nothing below
// the norm.
#include "linalg/norm_ways.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "linalg/padded_conv_norm.h"

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
