// SPDX-License-Identifier: Apache-2.0
// One head of self-attention at a point: o_i = sum_j P_ij v_j with P = softmax(q k' + mask),
// q = X Q + b, k = X K + c, v = X V + e. Theory: docs/theory/attention.md.
//
//   const HeadAt at(head, tokens);
//   at.covariance_bound()                 // proved upper bound of the Jacobian's l2 norm
//   at.stretch_down(at.direction())       // proved lower bound
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attention/interval_matrix.h"
#include "lipscope/norm.h"

namespace lipscope {

// Enclosures. The weights of different tokens may be different members [attention-1]; the scale of
// the scores belongs to the query.
struct HeadWeights {
  Index tokens = 1, width = 1, key_width = 1, value_width = 1;
  IntervalMatrix query, key, value;  // width x key_width, the same, width x value_width
  std::vector<Interval> query_bias, key_bias, value_bias;  // empty: none
  std::vector<Interval> mask;                              // tokens x tokens, added; empty: none
};

// A bound of a head or block, as the program prints it.
struct AttentionBound {
  std::string name, norm;  // "2:2", or "token-max": the largest length of a token
  double value = 0;
  Guarantee guarantee = Guarantee::kProved;
  std::string theorem;
};

struct JacobianNorm {
  double lower = 0, upper = 0;
};

// The Jacobian of the head at tokens that are exactly these doubles.
class HeadAt {
 public:
  // `tokens`: row-major, one row per token. Borrows the head.
  HeadAt(const HeadWeights& head, std::vector<double> tokens);

  [[nodiscard]] const HeadWeights& head() const { return head_; }
  [[nodiscard]] const std::vector<double>& tokens() const { return tokens_; }
  [[nodiscard]] const IntervalMatrix& scores() const { return scores_; }
  [[nodiscard]] const IntervalMatrix& shares() const { return shares_; }
  [[nodiscard]] const IntervalMatrix& values() const { return v_; }
  [[nodiscard]] const IntervalMatrix& mixed() const { return o_; }
  // Q k_j and K q_i, one row per token: a change d of token i moves score (i, j) by d . Q k_j, one
  // of token j by d . K q_i.
  [[nodiscard]] const IntervalMatrix& query_rates() const { return qk_; }
  [[nodiscard]] const IntervalMatrix& key_rates() const { return kq_; }

  // Upper bounds of the norm of the Jacobian, proved.
  [[nodiscard]] double covariance_bound() const;  // [attention-3]
  [[nodiscard]] double block_bound() const;       // [attention-4]
  [[nodiscard]] double token_max_bound() const;   // [attention-5], in the token-max norm
  // The Jacobian entry by entry [attention-2]; [0, inf] where it has more than `most` entries.
  [[nodiscard]] JacobianNorm explicit_norm(Index most) const;

  // A direction the Jacobian stretches much, by Lanczos in plain arithmetic, and what is proved of
  // the stretch.
  [[nodiscard]] std::vector<double> direction(double tolerance = 1e-10, int steps = 200) const;
  [[nodiscard]] double stretch_down(std::span<const double> direction) const;
  // The same in the token-max norm: a direction with tokens of length one, by alternation.
  [[nodiscard]] std::vector<double> token_max_direction() const;
  [[nodiscard]] double token_max_stretch_down(std::span<const double> direction) const;

  // The Jacobian and its transpose in plain arithmetic.
  [[nodiscard]] std::vector<double> push(std::span<const double> direction) const;
  [[nodiscard]] std::vector<double> pull(std::span<const double> weights) const;

 private:
  void find_query_parts();
  // The Jacobian times a direction in intervals, one row per token.
  [[nodiscard]] IntervalMatrix pushed(std::span<const double> direction) const;
  // Block (i, j) of the Jacobian, rows `stride` apart.
  void write_block(Index i, Index j, double* middle, double* radius, Index stride) const;
  [[nodiscard]] std::vector<double> block_norms() const;

  const HeadWeights& head_;
  std::vector<double> tokens_;
  IntervalMatrix q_, k_, v_, scores_, shares_, o_, qk_, kq_;
  CentredMatrix value_turned_, key_rates_;  // V' and kq_
  std::vector<CentredMatrix> query_parts_;  // C_i Q'
};

// Ranges of shares from a box of scores, row by row [softmax-11].
[[nodiscard]] IntervalMatrix share_ranges(const IntervalMatrix& scores);

// v_j - o_i, one row per j.
[[nodiscard]] IntervalMatrix deviations(const IntervalMatrix& values, const IntervalMatrix& mixed,
                                        Index i);
// Each row times a number.
[[nodiscard]] IntervalMatrix scaled_rows(IntervalMatrix a, std::span<const Interval> factors);

}  // namespace lipscope
