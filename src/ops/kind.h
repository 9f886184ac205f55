// SPDX-License-Identifier: Apache-2.0
// One row per operator kind. A file of this folder gives its rows from one function,
// `std::vector<OpKind> op_<file>()`, and its name stands in the list of CMakeLists.txt.
#pragma once

#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "ops/onnx_node.h"

namespace lipscope {

using Rng = std::mt19937_64;

// One worked example: the kit imports it, runs it, and checks every facet against samples.
// Floating inputs that are not constant are varied; keep them away from kinks (by 0.01 or more).
struct OpCase {
  struct Input {
    Tensor value;
    bool constant = false;
  };
  std::vector<Input> inputs;
  Attributes attributes = {};
  int opset = 13;
  Index outputs = 1;  // asked for
};

struct OpKind {
  std::string_view name;  // ONNX operator type
  Imported (*import)(const OnnxNode& node);
  std::vector<OpCase> (*cases)(Rng& rng);
};

// All kinds, in the order of the list.
[[nodiscard]] std::span<const OpKind> op_kinds();
// Null when there is no such operator.
[[nodiscard]] const OpKind* find_op_kind(std::string_view name);

// The operator of a worked example.
[[nodiscard]] Imported import_case(const OpKind& kind, const OpCase& op_case);

// Whether the operator offers jvp and vjp (asked of its first worked example).
[[nodiscard]] bool has_derivative(const OpKind& kind);

// A constant 1-d input of int64 entries: a shape, axes, pads.
[[nodiscard]] inline OpCase::Input fixed_ints(std::vector<Index> entries) {
  const auto n = static_cast<Index>(entries.size());
  return {Tensor::integers({n}, std::move(entries)), true};
}

// Entries uniform in [low, high], as float64 values of element type float32.
[[nodiscard]] Tensor random_tensor(Rng& rng, Shape shape, double low = -2, double high = 2);
// The same, but with every entry at least `distance` away from each of `kinks`.
[[nodiscard]] Tensor random_tensor_avoiding(Rng& rng, Shape shape, std::vector<double> kinks,
                                            double low = -2, double high = 2);

}  // namespace lipscope
