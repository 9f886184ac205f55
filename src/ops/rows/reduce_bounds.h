// SPDX-License-Identifier: Apache-2.0
// Ranges and Lipschitz constants of scalar functions of a group of entries in a box [pointwise-4].
// Constants are from the p norm on the entries that move; there is at least one.
#pragma once

#include <span>

#include "ops/facets/entry_bounds.h"

namespace lipscope {

struct Group {
  std::span<const double> lower, upper;

  [[nodiscard]] std::size_t size() const noexcept { return lower.size(); }
  [[nodiscard]] Interval operator[](std::size_t i) const { return {lower[i], upper[i]}; }
  [[nodiscard]] bool moves(std::size_t i) const { return lower[i] != upper[i]; }
  [[nodiscard]] bool moves() const {
    for (std::size_t i = 0; i < size(); ++i) {
      if (moves(i)) return true;
    }
    return false;
  }
};

[[nodiscard]] Interval sum_range(const Group& x);
[[nodiscard]] Interval mean_range(const Group& x);
[[nodiscard]] Interval l1_range(const Group& x);
[[nodiscard]] Interval l2_range(const Group& x);
[[nodiscard]] Interval sum_square_range(const Group& x);
[[nodiscard]] Interval log_sum_range(const Group& x);
[[nodiscard]] Interval log_sum_exp_range(const Group& x);
[[nodiscard]] Interval product_range(const Group& x);
[[nodiscard]] Interval max_range(const Group& x);
[[nodiscard]] Interval min_range(const Group& x);

[[nodiscard]] double sum_gain(const Group& x, Norm p);
[[nodiscard]] double mean_gain(const Group& x, Norm p);
[[nodiscard]] double l1_gain(const Group& x, Norm p);
[[nodiscard]] double l2_gain(const Group& x, Norm p);
[[nodiscard]] double sum_square_gain(const Group& x, Norm p);
[[nodiscard]] double log_sum_gain(const Group& x, Norm p);
[[nodiscard]] double log_sum_exp_gain(const Group& x, Norm p);
[[nodiscard]] double product_gain(const Group& x, Norm p);
[[nodiscard]] double max_gain(const Group& x, Norm p);
[[nodiscard]] double min_gain(const Group& x, Norm p);

}  // namespace lipscope
