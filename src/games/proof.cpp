// SPDX-License-Identifier: Apache-2.0
// Bounds of gap, value and distance at given strategies [games-2] to [games-4]. Everything here is
// outward arithmetic.
#include <algorithm>
#include <cmath>
#include <span>

#include "base/interval.h"
#include "base/parallel.h"
#include "games/centred.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using Intervals = std::vector<Interval>;

// A strategy is weights / total.
struct Strategy {
  const std::vector<double>& weights;
  Interval total;
};

Strategy read_strategy(const std::vector<double>& weights, Index size) {
  const bool sizes_fit = static_cast<Index>(weights.size()) == size;
  const bool sound = std::all_of(weights.begin(), weights.end(),
                                 [](double w) { return w >= 0 && std::isfinite(w); });
  const Interval total{sum_down(weights), sum_up(weights)};
  if (!sizes_fit || !sound || !(total.lo > 0) || !std::isfinite(total.hi)) {
    throw Error(ErrorCode::kUsage,
                "a strategy has one weight >= 0 per action and a positive, finite sum");
  }
  return {weights, total};
}

// Encloses M s for the exact payoffs M (less the shift) that `rows` approximates: each entry went
// through one rounding.
Intervals payoffs(const std::vector<double>& rows, double largest, const Strategy& s) {
  const std::size_t width = s.weights.size(), count = rows.size() / width;
  const double error = mul_up(mul_up(2 * kUnitRoundoff, largest), s.total.hi);
  Intervals out(count);
  parallel_for(
      static_cast<Index>(count), grain(static_cast<Index>(width)), [&](Index begin, Index end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const Interval sum = dot_enclosure(std::span(rows).subspan(i * width, width), s.weights);
          out[i] = (sum + Interval{-error, error}) / s.total;
        }
      });
  return out;
}

Interval log_sum_exp(const Intervals& z) {
  double top = -kInf;
  for (const Interval& value : z) top = std::max(top, value.hi);
  Interval sum;
  for (const Interval& value : z) sum += exp(value - top);
  return log(sum) + top;
}

// e^t - 1 - t over an interval: falls to 0 at 0, then rises. t^2/2 times the largest (smallest) e^s
// between 0 and t bounds it without cancellation.
double excess_up(double t) {
  const double near = mul_up(mul_up(t, t) / 2, exp_up(std::max(t, 0.0)));
  const double far = sub_up(expm1_up(t), t);
  return min_nan(next_up(near), max_nan(far, 0));
}
double excess_down(double t) {
  const double near = mul_down(mul_down(t, t) / 2, exp_down(std::min(t, 0.0)));
  return max_nan(max_nan(next_down(near), sub_down(expm1_down(t), t)), 0);
}
Interval excess(const Interval& t) {
  const double lower = t.lo > 0 ? excess_down(t.lo) : (t.hi < 0 ? excess_down(t.hi) : 0);
  return {lower, max_nan(excess_up(t.lo), excess_up(t.hi))};
}

// KL(s, softmax(z)) [games-2]. Below, t_j = z_j - ln s_j - c with c near lse(z).
Interval divergence(const Strategy& s, const Intervals& z) {
  const double c = midpoint(log_sum_exp(z) - log(s.total));
  Interval bulk, mass, tail;
  for (std::size_t j = 0; j < z.size(); ++j) {
    if (s.weights[j] == 0) {
      tail += exp(z[j] - c);
      continue;
    }
    const Interval t = z[j] - log(point(s.weights[j])) - c;
    Interval part = s.weights[j] * excess(t);
    // s_j e^t is exp(z_j - c) and cannot overflow when both factors together do not.
    if (t.hi > 1) part.hi = std::min(part.hi, exp_up(sub_up(z[j].hi, c)));
    bulk += part;
    mass += s.weights[j] * expm1(t);
  }
  // The sums so far are total times those of [games-2]; c holds the logarithm of total.
  const Interval upper = (bulk + tail) / s.total;
  const Interval rest = (mass + tail) / s.total;  // sum of softmax(z) e^(lse - c), less 1
  const double far =
      max_nan(sub_up(rest.lo, log1p_down(rest.lo)), sub_up(rest.hi, log1p_down(rest.hi)));
  const double lower = rest.lo > -1 ? sub_down(upper.lo, far) : 0;
  if (!(upper.hi >= 0)) return {0, kInf};
  return {lower > 0 ? lower : 0, upper.hi};
}

// sum s ln s.
Interval negative_entropy(const Strategy& s) {
  Interval sum;
  for (const double weight : s.weights) {
    if (weight > 0) sum += weight * log(point(weight));
  }
  return sum / s.total - log(s.total);
}

Intervals scaled(Intervals z, double factor_inverse) {
  for (Interval& value : z) value /= point(factor_inverse);
  return z;
}

Enclosure to_enclosure(const Interval& x) {
  return is_nan(x) ? Enclosure{-kInf, kInf} : Enclosure{x.lo, x.hi};
}

}  // namespace

GameProof prove_game(const Game& game, const std::vector<double>& x, const std::vector<double>& y) {
  const Strategy row = read_strategy(x, game.rows), col = read_strategy(y, game.cols);
  const Centred centred = centre(game);
  const double tau = game.tau;
  const Intervals against_col =
      payoffs(transposed(game.rows, game.cols, centred.entries), centred.largest, row);
  const Intervals against_row = payoffs(centred.entries, centred.largest, col);
  const Intervals z_col = scaled(against_col, tau), z_row = scaled(against_row, -tau);

  GameProof proof;
  const Interval upper = (log_sum_exp(z_col) + negative_entropy(row)) * tau + centred.shift;
  const Interval lower = (-log_sum_exp(z_row) - negative_entropy(col)) * tau + centred.shift;
  proof.value =
      to_enclosure(is_nan(lower) || is_nan(upper) ? kEntire : Interval{lower.lo, upper.hi});

  Interval best_col{-kInf, -kInf}, best_row{kInf, kInf};
  for (const Interval& value : against_col)
    best_col = {max_nan(best_col.lo, value.lo), max_nan(best_col.hi, value.hi)};
  for (const Interval& value : against_row)
    best_row = {min_nan(best_row.lo, value.lo), min_nan(best_row.hi, value.hi)};
  proof.exploitability = to_enclosure(max(best_col - best_row, point(0)));
  proof.nash_value = {add_down(best_row.lo, centred.shift), add_up(best_col.hi, centred.shift)};

  // In units of tau; for very small tau the logits say nothing and the second bound is better.
  const Interval divergences = divergence(col, z_col) + divergence(row, z_row);
  const double entropies =
      add_up(log_up(static_cast<double>(game.rows)), log_up(static_cast<double>(game.cols)));
  proof.gap = to_enclosure(divergences * tau);
  proof.gap.upper =
      min_nan(proof.gap.upper, add_up(proof.exploitability.upper, mul_up(tau, entropies)));
  const double excess_gap = min_nan(divergences.hi, div_up(proof.gap.upper, tau));

  const double off_x = magnitude(row.total - 1), off_y = magnitude(col.total - 1);
  const double one = sqrt_up(mul_up(2, excess_gap)), both = mul_up(2, sqrt_up(excess_gap));
  proof.distance_x = add_up(min_nan(one, 2), off_x);
  proof.distance_y = add_up(min_nan(one, 2), off_y);
  proof.distance = add_up(min_nan(both, 4), add_up(off_x, off_y));
  return proof;
}

}  // namespace lipscope
