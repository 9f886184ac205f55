// SPDX-License-Identifier: Apache-2.0
#include "linalg/tensor/wide_product.h"

#include <gtest/gtest.h>

#include <random>

namespace lipscope {
namespace {

using Numbers = std::vector<Wide>;

// rows x inner times inner x cols, the slow obvious way and as a map of doubles.
ProductMap matrix_product(Index rows, Index inner, Index cols) {
  return {.a_size = rows * inner,
          .b_size = inner * cols,
          .out_size = rows * cols,
          .terms = inner,
          .apply = [=](Index count, const double* a, const double* b, double* out) {
            for (Index i = 0; i < count * rows; ++i) {
              for (Index j = 0; j < cols; ++j) {
                double sum = 0;
                for (Index k = 0; k < inner; ++k) sum += a[i * inner + k] * b[k * cols + j];
                out[i * cols + j] = sum;
              }
            }
          }};
}

Numbers slow_product(const Numbers& a, const Numbers& b, std::size_t rows, std::size_t inner,
                     std::size_t cols) {
  Numbers out(rows * cols);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      for (std::size_t k = 0; k < inner; ++k)
        out[i * cols + j] += a[i * inner + k] * b[k * cols + j];
    }
  }
  return out;
}

Numbers random_numbers(std::mt19937_64& rng, std::size_t n, bool thin) {
  std::uniform_real_distribution<double> mantissa(-1, 1);
  Numbers out;
  for (std::size_t i = 0; i < n; ++i) {
    const Wide coarse(std::ldexp(mantissa(rng), static_cast<int>(rng() % 12) - 6));
    const Wide fine = over(Wide(mantissa(rng)), rng() % 1000 + 3);
    out.push_back(thin ? Wide((coarse * fine).middle(), 0) : (coarse * fine).widened(0x1p-180));
  }
  return out;
}

TEST(WideProduct, HoldsWhatEntryByEntryGives) {
  std::mt19937_64 rng(4);
  for (int trial = 0; trial < 40; ++trial) {
    const std::size_t rows = rng() % 5 + 1, inner = rng() % 40 + 1, cols = rng() % 5 + 1;
    const bool thin = trial % 2 == 0;
    const Numbers a = random_numbers(rng, rows * inner, thin);
    const Numbers other = random_numbers(rng, rows * inner, thin);
    const Numbers b = random_numbers(rng, inner * cols, thin);
    const ProductMap map = matrix_product(static_cast<Index>(rows), static_cast<Index>(inner),
                                          static_cast<Index>(cols));
    const std::vector<std::span<const Wide>> several{a, other};
    const auto found = wide_products(map, several, b);
    for (std::size_t s = 0; s < 2; ++s) {
      const Numbers slow = slow_product(s == 0 ? a : other, b, rows, inner, cols);
      for (std::size_t e = 0; e < slow.size(); ++e) {
        const Wide gap = Wide(found[s][e].middle(), 0) - Wide(slow[e].middle(), 0);
        // Thin operands: both are near the same number. Others: the middles are, too.
        EXPECT_LE(gap.size_up(), 0x1p-248);
        EXPECT_GE(found[s][e].off(), thin ? Wide::kUnit : 0.5 * slow[e].off());
        EXPECT_LE(found[s][e].off(), thin ? 0x1p-250 : 1.01 * slow[e].off());
      }
    }
  }
}

TEST(WideProduct, WhatIsNotKnownStaysSo) {
  const ProductMap map = matrix_product(1, 2, 1);
  const Numbers a{Wide(1), Wide::unknown()}, b{Wide(1), Wide(0)};
  EXPECT_FALSE(wide_products(map, std::vector<std::span<const Wide>>{a}, b)[0][0].known());
  EXPECT_FALSE(wide_products(map, std::vector<std::span<const Wide>>{b}, a)[0][0].known());
  ProductMap many = map;
  many.terms = Index{1} << 20;
  EXPECT_FALSE(wide_products(many, std::vector<std::span<const Wide>>{b}, b)[0][0].known());
  const Numbers large{Wide(0x1p50), Wide(0)};
  EXPECT_FALSE(wide_products(map, std::vector<std::span<const Wide>>{large}, large)[0][0].known());
}

}  // namespace
}  // namespace lipscope
