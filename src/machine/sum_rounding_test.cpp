// SPDX-License-Identifier: Apache-2.0
#include "machine/sum_rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/emulator.h"

namespace lipscope {
namespace {

using namespace testing_support;
using Type = ElementType;

double between(Rng& rng, double low, double high) {
  return static_cast<float>(std::uniform_real_distribution<double>(low, high)(rng));
}

// The sum of the terms by a product with ones.
double summed(const Habits& habits, const Reals& terms) {
  EmulatedMaker m;
  const auto n = static_cast<Index>(terms.size());
  const ValueId x = m.input({1, n});
  const auto net = m.done(m.node("MatMul", {x, m.weights({n, 1}, Reals(terms.size(), 1))}));
  return emulate(net, terms, habits)[0];
}

// Sums as bad as they get: a large term first, then many that are lost or rounded away from zero.
TEST(SumRounding, HoldsForAnyOrder) {
  Rng rng(5);
  for (const Type format : {Type::kFloat16, Type::kBFloat16}) {
    const double unit = format == Type::kFloat16 ? 0x1p-11 : 0x1p-8;
    double closest = 0;
    for (int t = 0; t < 300; ++t) {
      const int count = 2 + t % 300;
      Reals terms;
      SumTerms known;
      double exact = 0;
      for (int j = 0; j < count; ++j) {
        double term = between(rng, -1, 1) * std::ldexp(1, -static_cast<int>(rng() % 14));
        if (t % 3 == 0) term = j == 0 ? 1 : unit * (t % 2 == 0 ? 0.99 : 1.01);
        term = round_to(format, term);
        terms.push_back(term);
        exact += term;
        known.sizes.push_back(std::fabs(term));
        (term > 0 ? known.plus : known.minus) += std::fabs(term);
      }
      const double bound = sum_rounding(known, unit);
      for (const Habits& habits : all_habits({format, format})) {
        const double seen = summed(habits, terms);
        ASSERT_LE(std::fabs(seen - exact), bound);
        if (count > 20) closest = std::max(closest, std::fabs(seen - exact) / bound);
      }
    }
    EXPECT_GT(closest, 0.3);
  }
  EXPECT_EQ(sum_rounding({.sizes = {5}, .plus = 5}, 0x1p-8), 0);
  // What is flushed counts on top.
  EXPECT_GE(sum_rounding({.sizes = {1, 1}, .plus = 2, .flushed = 3}, 0x1p-8), 3);
}

}  // namespace
}  // namespace lipscope
