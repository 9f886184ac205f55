// SPDX-License-Identifier: Apache-2.0
// The calculus of softmax and its relatives, in plain double arithmetic except for the constants,
// which are proved. Written for s = softmax(lambda x), given as probabilities. Theory:
// docs/theory/softmax.md.
#pragma once

#include <span>
#include <vector>

#include "base/interval.h"
#include "lipscope/norm.h"

namespace lipscope {

// J v for J = lambda (diag(s) - s s'), in O(n) [softmax-1]. J is symmetric: also v' J.
void softmax_jvp(std::span<const double> s, std::span<const double> v, double lambda,
                 std::span<double> out);
// J itself, row by row.
[[nodiscard]] std::vector<double> softmax_jacobian(std::span<const double> s, double lambda);

// The logits of s, up to a constant: those whose largest is 0 (smallest if lambda < 0). -inf where
// s is 0 (+inf if lambda < 0).
[[nodiscard]] std::vector<double> softmax_inverse(std::span<const double> s, double lambda);

// softmax(t x) from s = softmax(x): proportional to s^t.
[[nodiscard]] std::vector<double> softmax_power(std::span<const double> s, double t);
// softmax(sum a_k x_k) from s_k = softmax(x_k): proportional to the product of s_k^a_k.
[[nodiscard]] std::vector<double> softmax_blend(std::span<const std::vector<double>> s,
                                                std::span<const double> a);

// Two classes: the first probability, of the logits' difference; at most |lambda| / 4 steep.
[[nodiscard]] double softmax_logistic(double difference, double lambda);

// The limits for lambda -> +inf, 0, -inf: uniform on the largest entries, on all, on the smallest.
enum class LambdaLimit { kPlusInfinity, kZero, kMinusInfinity };
[[nodiscard]] std::vector<double> softmax_limit(std::span<const double> x, LambdaLimit limit);

// Derivatives of lambda x - log sum exp(lambda x): lambda (v - (s.v) 1) and lambda (g - (sum g) s).
void log_softmax_jvp(std::span<const double> s, std::span<const double> v, double lambda,
                     std::span<double> out);
void log_softmax_vjp(std::span<const double> s, std::span<const double> g, double lambda,
                     std::span<double> out);

// Lipschitz constants over all logits of rows of n entries; suprema, the ends differ by rounding.
// Log-softmax p -> p: |lambda| (1 + (n-1)^(1/(p-1)))^(1-1/p) [softmax-14]; 0 for n < 2.
[[nodiscard]] Interval log_softmax_global_norm(Norm p, Index n, double lambda);
// Cross-entropy -log s_y from p: |lambda| 2^(1-1/p) [softmax-15].
[[nodiscard]] Interval cross_entropy_global_norm(Norm p, Index n, double lambda);

// The largest c with (f(x) - f(y)).(x - y) >= c |f(x) - f(y)|^2 in the dual norm of p, f(x) =
// softmax(lambda x), lambda > 0, for all x and y, n >= 2: 2^(2/p) / lambda [softmax-16].
[[nodiscard]] Interval softmax_cocoercivity(Norm p, double lambda);
// The largest |lambda| for which softmax does not expand, p -> q: 2^(1 + 1/p - 1/q).
[[nodiscard]] Interval softmax_nonexpansive_lambda(const NormPair& norms);

}  // namespace lipscope
