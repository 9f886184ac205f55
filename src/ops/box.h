// SPDX-License-Identifier: Apache-2.0
// Small helpers for the range and gain facets.
#pragma once

#include <vector>

#include "base/interval.h"
#include "lipscope/norm.h"

namespace lipscope {

[[nodiscard]] inline bool holds_doubles(const Box& box) {
  return box.lower.storage() == Storage::kDouble && box.upper.storage() == Storage::kDouble;
}
[[nodiscard]] inline Interval entry(const Box& box, Index i) {
  const auto k = static_cast<std::size_t>(i);
  return {box.lower.doubles()[k], box.upper.doubles()[k]};
}
// Whatever the storage.
[[nodiscard]] inline bool is_point(const Box& box) {
  for (Index i = 0; i < box.lower.size(); ++i) {
    if (!(box.lower.at(i) == box.upper.at(i))) return false;
  }
  return true;
}
[[nodiscard]] inline Box make_box(const Shape& shape, std::vector<double> lower,
                                  std::vector<double> upper) {
  return {Tensor(ElementType::kFloat64, shape, std::move(lower)),
          Tensor(ElementType::kFloat64, shape, std::move(upper))};
}

}  // namespace lipscope
