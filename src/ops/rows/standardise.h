// SPDX-License-Identifier: Apache-2.0
// The operator behind all normalisations: rows brought to mean 0 and variance 1, or to mean square
// 1, then scaled and shifted.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lipscope/op.h"

namespace lipscope {

// What distinguishes the members of the family.
struct Standardisation {
  std::string_view name;
  ValueType x;
  Index rows = 1, length = 1;  // of one sample
  double epsilon = 0;
  bool epsilon_outside = false;  // deviation + epsilon instead of sqrt(variance + epsilon)
  bool centred = true;           // else the mean stays, and squares replace the variance
  bool scale = false, bias = false;
  // Entry i of a sample takes entry (i / inner) % channels of scale and bias.
  Index inner = 1, channels = 1;
  std::vector<Index> places = {};            // where entry i of the rows lies in x; empty: at i
  std::optional<ValueType> statistics = {};  // mean and inverse deviation are outputs too
};

[[nodiscard]] std::shared_ptr<const Op> make_standardise(Standardisation s);

}  // namespace lipscope
