// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "linalg/conv/convolution.h"
#include "lipscope/op.h"
#include "ops/facets/machine_map.h"

namespace lipscope {

// Op::convolution. What a Conv or ConvTranspose does: W or W' of `shape`, and whether a bias is the
// third input.
struct ConvForm {
  ConvShape shape;
  bool transposed = false;
  bool has_bias = false;
};

// The facets of both operators.
[[nodiscard]] std::optional<std::vector<Box>> conv_range(const ConvForm& form, const Shape& out,
                                                         std::span<const Box> in);
[[nodiscard]] std::optional<Gain> conv_gain(const ConvForm& form, const GainQuery& query);

bool conv_matrix(const ConvForm& form, const MatrixQuery& query, const EntryVisitor& visit);

[[nodiscard]] std::unique_ptr<const MachineStep> conv_step(const ConvForm& form,
                                                           const Machine& machine);

}  // namespace lipscope
