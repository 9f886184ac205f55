// SPDX-License-Identifier: Apache-2.0
// Norms of the Jacobian lambda (diag(s) - s s') of softmax: over all logits, and at one row.
// Theory: docs/theory/softmax.md. Every number is proved, rounded outward.
//
//   softmax_global_norm(parse_norms("2"), 1000, 1).hi          // 1/2
//   const SoftmaxNorm local(parse_norms("3"));
//   local(SoftmaxRow(logits, 1))                               // a bracket, in O(n)
#pragma once

#include <vector>

#include "linalg/norm/operator_norm.h"
#include "softmax/interpolation.h"
#include "softmax/row.h"

namespace lipscope {

// The Lipschitz constant |lambda| 2^(1/q - 1/p - 1) of softmax on rows of n entries, p -> q; 0 for
// n < 2 [softmax-3]. The ends differ by rounding only.
[[nodiscard]] Interval softmax_global_norm(const NormPair& norms, Index n, double lambda);

// Upper bound of the norm of f -> f - mean(f) on L^p of any probability space [softmax-8]. Within
// about 1e-4, relatively.
[[nodiscard]] double centring_norm_up(Norm p);

// Prepared for one pair of norms; then any number of rows. Thread safety: const calls.
class SoftmaxNorm {
 public:
  explicit SoftmaxNorm(const NormPair& norms);

  // `how` names the theorem behind the upper bound. Rows without entries have norm 0.
  [[nodiscard]] NormBracket operator()(const SoftmaxRow& row) const;
  // A vector, one entry per weight of the row, that the Jacobian stretches most, as far as found:
  // exact for 2 -> 2, 1 -> q and p -> inf.
  [[nodiscard]] std::vector<double> worst_direction(const SoftmaxRow& row) const;
  [[nodiscard]] const NormPair& norms() const noexcept { return norms_; }

 private:
  // An exponent between 1 and 2 at which norms are bounded, to interpolate from there.
  struct Station {
    double p;
    Interval inverse;  // 1/p, reflected into [1/2, 1]
    double centring;   // centring_norm_up(p)
    bool schur;        // worth an iteration for each row
  };
  [[nodiscard]] NormBracket at_weights(const SoftmaxRow& row) const;
  [[nodiscard]] NormBracket interpolated(const SoftmaxRow& row) const;

  NormPair norms_;
  SquarePlace place_;
  std::vector<Station> stations_;
};

// Lower bound of |J v|_q / |v|_p, one entry of v per weight [softmax-7]. 0 for v = 0.
[[nodiscard]] double softmax_quotient_down(const SoftmaxRow& row, std::span<const double> v,
                                           const NormPair& norms);

}  // namespace lipscope
