// SPDX-License-Identifier: Apache-2.0
#include "attention/published.h"

#include <algorithm>

#include "softmax/box.h"

namespace lipscope {
namespace {

double query_bias_rate_up(const HeadWeights& head) {
  if (head.query_bias.empty()) return 0;
  IntervalMatrix bias(1, head.key_width);
  bias.entries = head.query_bias;
  return length_up((bias * transposed(head.key)).entries);
}

double scores_norm_up(const HeadWeights& head) {
  return spectral_norm_up(head.query * transposed(head.key));
}

// The largest norm of a row's softmax Jacobian on a box of scores.
double steepest_row_up(const IntervalMatrix& scores) {
  double steepest = 0;
  std::vector<double> low(static_cast<std::size_t>(scores.cols)), high(low.size());
  for (Index i = 0; i < scores.rows; ++i) {
    for (Index j = 0; j < scores.cols; ++j) {
      low[static_cast<std::size_t>(j)] = scores(i, j).lo;
      high[static_cast<std::size_t>(j)] = scores(i, j).hi;
    }
    steepest = std::max(steepest, softmax_box_norm_up({low, high}, {Norm(2), Norm(2)}));
  }
  return steepest;
}

double longest_token_up(const HeadAt& at) {
  const IntervalMatrix x(at.head().tokens, at.head().width, at.tokens());
  double longest = 0;
  for (Index i = 0; i < x.rows; ++i) longest = std::max(longest, length_up(x.row(i)));
  return longest;
}

double yudin(const HeadAt& at, double mixing, double size, double steepest) {
  const HeadWeights& head = at.head();
  const double square = mul_up(mul_up(size, size), scores_norm_up(head));
  const double root = sqrt_up(static_cast<double>(head.tokens));
  const double bias = mul_up(mul_up(size, root), query_bias_rate_up(head));
  const double inner = add_up(mixing, mul_up(steepest, add_up(mul_up(2, square), bias)));
  return mul_up(spectral_norm_up(head.value), inner);
}

double tokens_norm_up(const HeadAt& at) {
  return spectral_norm_up(IntervalMatrix(at.head().tokens, at.head().width, at.tokens()));
}

}  // namespace

double yudin_bound(const HeadAt& at) {
  return yudin(at, spectral_norm_up(at.shares()), tokens_norm_up(at), steepest_row_up(at.scores()));
}

double yudin_bound(const HeadAt& at, const HeadBall& ball, double radius) {
  std::vector<double> high;
  for (const Interval& share : ball.shares().entries) high.push_back(share.hi);
  const IntervalMatrix largest(at.head().tokens, at.head().tokens, high);
  return yudin(at, spectral_norm_up(largest), add_up(tokens_norm_up(at), radius),
               steepest_row_up(ball.scores()));
}

std::optional<double> castin_bound(const HeadAt& at, double radius) {
  const HeadWeights& head = at.head();
  if (query_bias_rate_up(head) > 0) return std::nullopt;
  const double length = add_up(longest_token_up(at), radius), square = mul_up(length, length);
  const double scores = mul_up(scores_norm_up(head), square);
  const auto n = static_cast<double>(head.tokens);
  const double inner = add_up(mul_up(mul_up(scores, scores), 4 * n + 1), n);
  return mul_up(mul_up(sqrt_up(3), spectral_norm_up(head.value)), sqrt_up(inner));
}

std::optional<double> hu_bound(const HeadAt& at, double radius) {
  const HeadWeights& head = at.head();
  if (query_bias_rate_up(head) > 0) return std::nullopt;
  const double size = add_up(norm2_up(at.tokens()), radius), value = spectral_norm_up(head.value);
  const double weights = mul_up(spectral_norm_up(head.query), spectral_norm_up(head.key));
  const auto n = static_cast<double>(head.tokens);
  const double inner = add_up(mul_up(mul_up(size, size), weights), 1);
  return mul_up(n * (n + 1), mul_up(value, inner));
}

double inverse_phi_up(Index n) {
  if (n <= 1) return 0;
  const auto target = static_cast<double>(n - 1);
  double low = 0, high = std::log1p(target) + 1;  // phi(log(n) + 1) > n - 1
  for (int step = 0; step < 200 && low < high; ++step) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (mul_down(middle, exp_down(add_down(middle, 1))) >= target ? high : low) = middle;
  }
  return high;
}

double kim_bound(Index tokens, double weight, double value, double c) {
  const double phi = inverse_phi_up(tokens), n = static_cast<double>(tokens);
  const double scale = div_up(mul_up(mul_up(weight, weight), value), c);
  return mul_up(mul_up(scale, sqrt_up(n)), add_up(mul_up(4, phi), 1));
}

double distance_bound(Index tokens, double weight, double value, double c) {
  const double phi = inverse_phi_up(tokens), n = static_cast<double>(tokens);
  const double scale = div_up(mul_up(mul_up(weight, weight), value), c);
  const double least = std::min(phi, exp_up(-1));
  const double root = sqrt_up(mul_up(n, mul_up(phi, least)));
  return mul_up(scale, add_up(sqrt_up(n), mul_up(2, add_up(phi, root))));
}

double qi_bound(const CosineAttention& head) {
  const double n = static_cast<double>(head.tokens), root = div_up(1, sqrt_down(head.epsilon));
  const double keys = mul_up(2 * n * (n - 1), mul_up(head.tau, head.key));
  const double queries = mul_up(2 * (n - 1), mul_up(head.tau, head.query));
  const double inner = add_up(add_up(keys, queries), mul_up(2 * n, head.value));
  return mul_up(mul_up(head.nu, root), inner);
}

double cosine_bound(const CosineAttention& head, TokenNorm norm) {
  const double n = static_cast<double>(head.tokens), root = div_up(1, sqrt_down(head.epsilon));
  // A share is at most e^{2 tau} / (n - 1 + e^{2 tau}): all scores lie in [-tau, tau].
  const double large = exp_up(mul_up(2, head.tau));
  const double column =
      std::min(n, div_up(mul_up(n, large), add_down(n - 1, exp_down(2 * head.tau))));
  const double spread = norm == TokenNorm::kFrobenius ? sqrt_up(column) : 1;
  const double keys = add_up(mul_up(head.tau, head.key), head.value);
  return mul_up(mul_up(head.nu, root), add_up(mul_up(head.tau, head.query), mul_up(spread, keys)));
}

}  // namespace lipscope
