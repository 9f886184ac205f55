// SPDX-License-Identifier: Apache-2.0
// Bounds of attention from the literature, in corrected form, for comparison: norms in them are
// rounded upward, the theorems are their authors'. Theory: docs/theory/attention.md.
#pragma once

#include <optional>

#include "attention/head_ball.h"

namespace lipscope {

// Yudin et al. 2025, with the term of a query bias; at the point, or on a ball of all tokens
// [attention-10].
[[nodiscard]] double yudin_bound(const HeadAt& at);
[[nodiscard]] double yudin_bound(const HeadAt& at, const HeadBall& ball, double radius);
// Castin et al. 2024 on tokens no longer than those given plus the radius [attention-11]. Nothing
// with a query bias, which the theorem does not cover.
[[nodiscard]] std::optional<double> castin_bound(const HeadAt& at, double radius);
// Hu et al. 2024, corrected [attention-12]. Nothing with a query bias.
[[nodiscard]] std::optional<double> hu_bound(const HeadAt& at, double radius);

// LambertW((n - 1) / e), rounded up: the largest x with x exp(x + 1) = n - 1.
[[nodiscard]] double inverse_phi_up(Index n);
// One head of L2 attention with tied weights, logits -|(x_i - x_j) W|^2 / c and values
// X W W' / c W_V, from upper bounds of |W| and |W_V|: Kim et al. 2021, corrected [attention-13],
// and ours [attention-14].
[[nodiscard]] double kim_bound(Index tokens, double weight, double value, double c);
[[nodiscard]] double distance_bound(Index tokens, double weight, double value, double c);
// Scaled cosine attention nu softmax(tau q k') v with rows divided by sqrt(|.|^2 + epsilon): Qi et
// al. 2023 [attention-15], and ours [attention-16], without a mask.
struct CosineAttention {
  Index tokens = 1;
  double query = 0, key = 0, value = 0;  // norms of the weights
  double nu = 1, tau = 1, epsilon = 1;
};
[[nodiscard]] double qi_bound(const CosineAttention& head);
[[nodiscard]] double cosine_bound(const CosineAttention& head, TokenNorm norm);

}  // namespace lipscope
