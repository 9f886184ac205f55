// SPDX-License-Identifier: Apache-2.0
// Parts of spelled-out normalisations.
#pragma once

#include <optional>

#include "passes/match.h"

namespace lipscope {

// What is normalised, over all axes from the first one on.
struct Normalised {
  ValueId x;
  Index axis = 0;
  double epsilon = 0;
};

// The ReduceMean in mean(y) + epsilon, epsilon not negative.
struct MeanWithEpsilon {
  const Node* node;
  double epsilon;
};
inline std::optional<MeanWithEpsilon> mean_with_epsilon(const Matcher& match, ValueId id) {
  const Node* add = match.made_by(id, "Add");
  const auto sum = add != nullptr ? match.with_scalar(*add) : std::nullopt;
  const Node* mean = sum ? match.made_by(sum->first, "ReduceMean") : nullptr;
  if (mean == nullptr || sum->second < 0) return std::nullopt;
  return MeanWithEpsilon{mean, sum->second};
}

// ReduceMean with keepdims over a trailing block of dimensions: the first of them.
inline std::optional<Index> trailing_mean_axis(const Matcher& match, const Node& mean) {
  const Shape& from = match.value(mean.inputs[0]).type.shape;
  const Shape& to = match.value(mean.outputs[0]).type.shape;
  if (from.size() != to.size()) return std::nullopt;
  std::size_t axis = 0;
  while (axis < from.size() && from[axis] == to[axis]) ++axis;
  if (axis == from.size()) return std::nullopt;
  for (std::size_t i = axis; i < from.size(); ++i) {
    if (to[i] != 1 || from[i] == 1) return std::nullopt;
  }
  return static_cast<Index>(axis);
}

// The square's base, for Pow(y, 2) and Mul(y, y).
inline std::optional<ValueId> squared(const Matcher& match, ValueId id) {
  if (const Node* pow = match.made_by(id, "Pow");
      pow != nullptr && match.scalar_at(*pow, 1) == 2.0) {
    return pow->inputs[0];
  }
  if (const Node* mul = match.made_by(id, "Mul");
      mul != nullptr && mul->inputs[0] == mul->inputs[1]) {
    return mul->inputs[0];
  }
  return std::nullopt;
}

}  // namespace lipscope
