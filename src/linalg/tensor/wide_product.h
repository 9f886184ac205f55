// SPDX-License-Identifier: Apache-2.0
// Sums of products of wide numbers at the speed of products of doubles [rounding-20].
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/wide.h"
#include "lipscope/tensor.h"

namespace lipscope {

// A map that is linear in each of two arrays of doubles: entries of the result are sums of products
// of an entry of `a` and one of `b`, formed as such in any order.
struct ProductMap {
  Index a_size = 0, b_size = 0, out_size = 0;
  Index terms = 0;  // most products that add up to an entry
  // out = the map of each of `count` arrays a, one after another, and one b.
  std::function<void(Index count, const double* a, const double* b, double* out)> apply;
};

// The map of each of the arrays `as` and b. Nothing is known of the result where something is not
// known of an operand, or where there are too many terms.
[[nodiscard]] std::vector<std::vector<Wide>> wide_products(
    const ProductMap& map, std::span<const std::span<const Wide>> as, std::span<const Wide> b);

}  // namespace lipscope
