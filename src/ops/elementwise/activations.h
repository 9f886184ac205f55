// SPDX-License-Identifier: Apache-2.0
// Activations that models often spell out in several nodes. The recognition passes make them, with
// the constants of the file: float32(1/6) is not 1/6, and a proof is about the file.
#pragma once

#include <memory>
#include <optional>

#include "lipscope/op.h"

namespace lipscope {

// factor * x * (1 + erf(x * multiply / divide)); GELU is factor 1/2, divide sqrt(2).
struct GeluErf {
  double factor, multiply, divide;
  bool exact_root = false;  // sqrt(2) is meant where `divide` is the double next to it
};
[[nodiscard]] std::shared_ptr<const Op> make_gelu(const GeluErf& parameters);

// factor * x * (1 + tanh(scale * (x + cubic * x^3))).
struct GeluTanh {
  double factor, scale, cubic;
};
[[nodiscard]] std::shared_ptr<const Op> make_gelu(const GeluTanh& parameters);

// x * sigmoid(alpha * x); alpha = 1 is SiLU.
[[nodiscard]] std::shared_ptr<const Op> make_silu(double alpha);

// x * clamp(multiply * x / divide + shift, 0, 1); HardSwish is (1, 6, 1/2).
struct HardGate {
  double multiply, divide, shift;
};
[[nodiscard]] std::shared_ptr<const Op> make_hard_swish(const HardGate& parameters);

// Parameters of an operator that is a Clip or a HardSigmoid; nothing for any other.
struct ClipBounds {
  double lower, upper;
};
[[nodiscard]] std::optional<ClipBounds> as_clip(const Op& op);
struct HardSigmoidLine {
  double alpha, beta;
};
[[nodiscard]] std::optional<HardSigmoidLine> as_hard_sigmoid(const Op& op);

}  // namespace lipscope
