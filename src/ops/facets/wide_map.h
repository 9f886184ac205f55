// SPDX-License-Identifier: Apache-2.0
// Values and derivatives of operators in wide numbers, where intervals of doubles would grow too
// wide [attention-21].
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "base/wide.h"
#include "lipscope/op.h"

namespace lipscope {

// The entries of a value at a point, and their derivatives in one direction.
struct WideTensor {
  std::vector<Wide> value;
  std::vector<Wide> tangent;  // empty: zero

  [[nodiscard]] bool moves() const noexcept { return !tangent.empty(); }
  [[nodiscard]] WideDual at(std::size_t i) const {
    return {value[i], moves() ? tangent[i] : Wide()};
  }
  void set(std::size_t i, const WideDual& x) {
    value[i] = x.value;
    if (moves()) tangent[i] = x.tangent;
  }
  void resize(std::size_t n, bool moving) {
    value.resize(n);
    tangent.resize(moving ? n : 0);
  }
};

// Op::wide_map.
class WideMap {
 public:
  virtual ~WideMap() = default;
  // The outputs; integers, which never move, come as numbers too. False when the operator cannot
  // tell.
  [[nodiscard]] virtual bool push_wide(std::span<const WideTensor* const> in,
                                       std::span<WideTensor> out) const = 0;
};

// body(entry) side by side.
template <class Body>
void for_each_wide(std::size_t count, Body&& body) {
  parallel_for(static_cast<Index>(count), 64, [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) body(i);
  });
}

// A function with this value and slope.
inline WideDual chained(const Wide& value, const Wide& slope, const WideDual& x) {
  return {value, slope * x.tangent};
}

}  // namespace lipscope
