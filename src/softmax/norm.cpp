// SPDX-License-Identifier: Apache-2.0
#include "softmax/norm.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "softmax/interpolation.h"
#include "softmax/norm_parts.h"
#include "softmax/secular.h"

namespace lipscope {
namespace {

// log of (x^e + (1-x)^e) (x^(1/e) + (1-x)^(1/e))^e for x between from and to, to <= 1/2.
double log_centring_up(double from, double to, const Interval& e) {
  const double complement = sub_up(1, from);
  const Interval over = 1 / e;
  const double one = add_up(pow_up(to, e.lo), pow_up(complement, e.lo));
  const double two = add_up(pow_up(to, over.lo), pow_up(complement, over.lo));
  const Interval log_two{-kInf, log_up(two)};
  return add_up(log_up(one), log_two.hi >= 0 ? mul_up(e.hi, log_two.hi) : mul_up(e.lo, log_two.hi));
}

double search_centring(double from, double to, const Interval& e, double goal, int depth) {
  const double value = log_centring_up(from, to, e);
  if (value <= goal || depth == 0) return value;
  // Towards 0 the function changes on a logarithmic scale.
  const double middle = from == 0 ? to * 0.125 : 0.5 * (from + to);
  return std::max(search_centring(from, middle, e, goal, depth - 1),
                  search_centring(middle, to, e, goal, depth - 1));
}

}  // namespace

Interval softmax_global_norm(const NormPair& norms, Index n, double lambda) {
  if (n < 2) return point(0);
  return power_of_two(inverse_difference(norms) - 1) * point(std::fabs(lambda));
}

double centring_norm_up(Norm norm) {
  const double p = norm.p();
  if (p == 1 || p == kInf) return 2;
  if (p == 2) return 1;
  const Interval e{sub_down(p, 1), sub_up(p, 1)};
  if (!(e.lo > 1e-3 && e.hi < 1e3)) return 2;
  constexpr int kPoints = 400;
  constexpr double kAccuracy = 1.5e-4;
  double best = 0;
  for (int k = 1; k <= kPoints; ++k) {
    const double x = 0.5 * std::pow(static_cast<double>(k) / kPoints, 3);
    best = std::max(best, log_centring_up(x, x, e));
  }
  const double log_norm = search_centring(0, 0.5, e, best + kAccuracy * p, 60);
  return std::min(2.0, exp_up(div_up(std::max(0.0, log_norm), p)));
}

SoftmaxNorm::SoftmaxNorm(const NormPair& norms) : norms_(norms), place_(square_place(norms)) {
  const Interval diagonal = place_.diagonal;
  if (place_.corner_weight.lo >= 1 || diagonal.hi <= 0.5 || diagonal.lo >= 1) return;
  const auto add = [&](double p, bool schur) {
    stations_.push_back({p, reflected(inverse(Norm(p))), centring_norm_up(Norm(p)), schur});
  };
  const double target = 1 / midpoint(diagonal);  // between 1 and 2
  if (norms.in == norms.out) add(norms.in.p(), true);
  for (const double step : {0.3, 0.6}) add(1 + step * (target - 1), true);
  for (const double step : {0.15, 0.45, 0.8, 0.99}) add(1 + step * (target - 1), false);
}

// The norm of the weights' matrix from its values at corners and on the diagonal.
NormBracket SoftmaxNorm::interpolated(const SoftmaxRow& row) const {
  const double variance = softmax_parts::largest_variance(row).hi, one = 2 * variance;
  const double share = (point(row.top()) / row.total()).hi;
  const double two = std::min(one, top_eigenvalue(row.top(), row.tail()).hi);
  // On the diagonal.
  double best = between_up(one, two, clip(2 * (1 - place_.diagonal), 0, 1));
  std::string_view how = "softmax-10";
  for (const Station& station : stations_) {
    double here = mul_up(station.centring, share);
    std::string_view theorem = "softmax-8";
    if (station.schur) {
      const double schur = softmax_parts::schur_norm_up(row, station.p);
      if (schur < here) here = schur, theorem = "softmax-9";
    }
    double value = kInf;
    if (norms_.in == norms_.out && station.p == norms_.in.p()) {
      value = here;
    } else if (station.inverse.lo >= place_.diagonal.hi) {
      const Interval step = (station.inverse - place_.diagonal) / (station.inverse - 0.5);
      value = between_up(here, two, clip(step, 0, 1));
    }
    if (value < best) best = value, how = theorem;
  }
  if (norms_.in == norms_.out) return {0, best, how};
  const double corner =
      norms_.in.p() < norms_.out.p() ? variance : softmax_parts::complex_cut_norm_up(row);
  return {0, between_up(best, corner, place_.corner_weight), how};
}

// For the weights, taken as the exact softmax.
NormBracket SoftmaxNorm::at_weights(const SoftmaxRow& row) const {
  const double p = norms_.in.p(), q = norms_.out.p();
  const auto exact = [](const Interval& value, std::string_view how) {
    return NormBracket{value.lo, value.hi, how};
  };
  const Interval variance = softmax_parts::largest_variance(row);
  if (row.weights().size() < 2) return exact(point(0), "softmax-5");
  if (row.weights().size() == 2) {
    return exact(variance * power_of_two(inverse_difference(norms_) + 1), "softmax-3");
  }
  if (p == q && (p == 1 || p == kInf)) return exact(2 * variance, "softmax-1");
  if (p == 1 && q == kInf) return exact(variance, "softmax-1");
  if (p == 2 && q == 2) return exact(top_eigenvalue(row.top(), row.tail()), "softmax-6");
  if (p == kInf && q == 1) return exact(softmax_parts::cut_norm(row), "softmax-2");
  if (p == 1) return exact(softmax_parts::column_norm(row, point(q)), "softmax-1");
  if (q == kInf) {
    const Interval dual = 1 / (1 - inverse(norms_.in));
    return exact(softmax_parts::column_norm(row, dual), "softmax-1");
  }
  return interpolated(row);
}

NormBracket SoftmaxNorm::operator()(const SoftmaxRow& row) const {
  if (row.size() < 2 || row.weights().empty()) return {0, 0, "softmax-3"};
  NormBracket found = at_weights(row);
  const double kept = sub_down(1, 2 * row.lost());
  found.lower = mul_down(div_down(found.lower, row.spread()), mul_down(kept, kept));
  found.upper = add_up(mul_up(found.upper, row.spread()), 4 * row.lost());
  const double lambda = std::fabs(row.lambda());
  found.lower = mul_down(found.lower, lambda);
  found.upper = mul_up(found.upper, lambda);
  const double global = softmax_global_norm(norms_, 2, lambda).hi;
  if (global <= found.upper) found.upper = global, found.how = "softmax-3";
  if (found.lower == 0 && row.weights().size() > 1) {
    found.lower = softmax_quotient_down(row, worst_direction(row), norms_);
  }
  LIPSCOPE_CHECK(found.lower <= found.upper);
  return found;
}

std::vector<double> SoftmaxNorm::worst_direction(const SoftmaxRow& row) const {
  if (norms_.in.p() == 2 && norms_.out.p() == 2) return softmax_parts::top_eigenvector(row);
  return softmax_parts::stretched_vector(row, norms_);
}

}  // namespace lipscope
