// SPDX-License-Identifier: Apache-2.0
// Bounds for any pair of norms, from what a NormMap offers.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/interval.h"
#include "base/rounding.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/norm_map.h"
#include "linalg/norm/norm_ways.h"

namespace lipscope {
namespace {

void keep_least(double candidate, double& best) {
  if (candidate < best) best = candidate;
}

Interval clamp01(const Interval& x) {
  return {std::clamp(x.lo, 0.0, 1.0), std::clamp(x.hi, 0.0, 1.0)};
}

// ||A||_{1 -> 1/b} for the largest member b of the interval.
double norm_from_one_up(const NormMap& map, const Interval& b) {
  const double q = b.hi == 0 ? kInf : std::max(div_down(1, b.hi), 1.0);
  return map.largest_norm(Lines::kColumns, Toward::kUp, q);
}
// ||A||_{1/a -> inf}, for the smallest member a.
double norm_to_infinity_up(const NormMap& map, const Interval& a) {
  const double rest = sub_up(1, a.lo);
  const double dual = rest == 0 ? kInf : std::max(div_down(1, rest), 1.0);
  return map.largest_norm(Lines::kRows, Toward::kUp, dual);
}

// x^(1 - theta) y^theta.
double between_up(double x, double y, const Interval& theta) {
  return gain_mul_up(pow(point(x), 1.0 - theta).hi, pow(point(y), theta).hi);
}

// Riesz-Thorin for p <= q [norms-8]: the segment from (1/2, 1/2), and segments between the edges.
double interpolated_up(const NormMap& map, double p, double q, double spectral) {
  double best = kInf;
  const Interval a = reciprocal(p), b = reciprocal(q), half = point(0.5);
  if (p == q) {
    const double one = norm_from_one_up(map, point(1)), inf = norm_to_infinity_up(map, point(0));
    keep_least(between_up(inf, one, a), best);
    if (p < 2) keep_least(between_up(spectral, one, clamp01(2.0 * a - 1.0)), best);
    if (p > 2) keep_least(between_up(spectral, inf, clamp01(1.0 - 2.0 * a)), best);
    return best;
  }
  if ((a + b).lo >= 1) {
    const Interval theta = clamp01(2.0 * a - 1.0);
    const double edge = norm_from_one_up(map, clamp01(half + (b - half) / theta));
    keep_least(between_up(spectral, edge, theta), best);
  } else if ((a + b).hi <= 1) {
    const Interval theta = clamp01(1.0 - 2.0 * b);
    const double edge = norm_to_infinity_up(map, clamp01(half + (a - half) / theta));
    keep_least(between_up(spectral, edge, theta), best);
  } else if (const double wider = p * (1 + 0x1p-48); wider < q) {
    return interpolated_up(map, wider, q, spectral);  // the norm grows with p
  }
  if (!(b.hi < a.lo)) return best;
  for (int i = 0; i <= 4; ++i) {
    const double theta = std::clamp(b.hi + (a.lo - b.hi) * i / 4, b.hi, a.lo);
    if (!(theta > 0 && theta < 1)) continue;
    const double one = norm_from_one_up(map, clamp01(b / theta));
    const double inf = norm_to_infinity_up(map, clamp01((a - theta) / (1.0 - point(theta))));
    keep_least(between_up(inf, one, point(theta)), best);
  }
  return best;
}

// (s / max s)^e, and max s.
double normalised_power_up(std::vector<double>& s, double e_down) {
  const double top = largest(s);
  if (!(top > 0) || !(top < kInf)) return top;
  for (double& value : s) value = pow_up(std::min(div_up(value, top), 1.0), e_down);
  return top;
}

// Generalised Schur test on |C| + R (or its adjoint) [norms-4], 1 <= q < inf; the weights u follow
// the nonlinear power method.
double schur_up(const NormMap& map, bool adjoint, double p, double q, int steps) {
  const Index rows = adjoint ? map.cols() : map.rows(), cols = adjoint ? map.rows() : map.cols();
  const double e_down = sub_down(q, 1), e_up = sub_up(q, 1);
  const double r = p <= q ? kInf : p == kInf ? 1 : (point(p) / (point(p) - q)).lo;
  const Interval one_over_q = reciprocal(q);
  const double growth = std::max(p, q);
  std::vector<double> u = vector_of(cols, 1), s = vector_of(rows), t = vector_of(cols), d = t;
  double best = kInf;
  for (int step = 0; step < steps; ++step) {
    map.magnitude_up(adjoint, u.data(), s.data());
    const double top = normalised_power_up(s, e_down);
    if (top == 0) return 0;
    map.magnitude_up(!adjoint, s.data(), t.data());
    for (std::size_t j = 0; j < t.size(); ++j) {
      d[j] = t[j] == 0 ? 0 : div_up(t[j], std::max(pow_down(u[j], e_up), 0.0));
    }
    const double middle = pow(point(pnorm_up(d, std::max(r, 1.0))), one_over_q).hi;
    const double bound = gain_mul_up(pow(point(top), 1.0 - one_over_q).hi, middle);
    if (bound < best) best = bound;
    const double scale = largest(t);
    if (growth == kInf || growth == 1 || !(scale > 0) || !(scale < kInf)) break;
    for (std::size_t j = 0; j < t.size(); ++j) {
      u[j] = std::clamp(std::pow(t[j] / scale, 1 / (growth - 1)), 1e-16, 1.0);
    }
  }
  return best;
}

double both_schur_up(const NormMap& map, double p, double q, int steps) {
  const Interval p_dual = dual_exponent(p), q_dual = dual_exponent(q);
  return std::min(schur_up(map, false, p, q, steps),
                  schur_up(map, true, q_dual.hi, p_dual.lo, steps));
}

// The spectral norm for all ways that ask for it: found once, its steps part of each of them.
class SpectralOnce {
 public:
  explicit SpectralOnce(const NormMap& map) : map_(map) {}

  [[nodiscard]] double upper(const NormEffort& effort) {
    if (effort.steps != nullptr && effort.steps->given()) return find(effort).upper;
    if (!known_) {
      NormEffort own = effort;
      if (effort.steps != nullptr) own.steps = &steps_;
      known_ = find(own);
    }
    if (effort.steps != nullptr) effort.steps->append(steps_);
    return known_->upper;
  }
  [[nodiscard]] const std::vector<double>& vector(const NormEffort& effort) {
    if (!known_) known_ = find(effort);
    return known_->vector;
  }

 private:
  [[nodiscard]] SpectralUpper find(const NormEffort& effort) const {
    SpectralUpper found = map_.spectral(effort);
    return found.upper < kInf ? found : cheap_spectral(map_, effort);
  }

  const NormMap& map_;
  std::optional<SpectralUpper> known_;
  ProofSteps steps_;
};

// p -> p, 1 < p < inf.
double diagonal_up(const NormMap& map, double p, double spectral) {
  if (p == 2) return spectral;
  return std::min(interpolated_up(map, p, p, spectral), both_schur_up(map, p, p, 4));
}

SpectralUpper general_upper(const NormMap& map, double p, double q, SpectralOnce& spectral,
                            const NormEffort& effort) {
  NormWays ways(effort);
  const Norm in(p), out(q), two(2);
  const Interval p_dual = dual_exponent(p);
  ways.consider("row norms [norms-3]", [&](const NormEffort&) {
    return pnorm_up(map.norms(Lines::kRows, Toward::kUp, p_dual.lo), q);
  });
  ways.consider("column norms [norms-3]", [&](const NormEffort&) {
    return pnorm_up(map.norms(Lines::kColumns, Toward::kUp, q), p_dual.lo);
  });
  ways.consider("Schur test [norms-4]",
                [&](const NormEffort&) { return both_schur_up(map, p, q, 6); });
  ways.consider("spectral norm and norm equivalence [norms-3]", [&](const NormEffort& e) {
    const double inner = gain_mul_up(norm_equivalence_up(map.cols(), in, two), spectral.upper(e));
    return gain_mul_up(inner, norm_equivalence_up(map.rows(), two, out));
  });
  if (p <= q) {
    ways.consider("interpolation [norms-8]", [&](const NormEffort& e) {
      return interpolated_up(map, p, q, spectral.upper(e));
    });
    return ways.take();
  }
  ways.consider("interpolation and norm equivalence [norms-8]", [&](const NormEffort& e) {
    const double top = spectral.upper(e);
    double best = kInf;
    for (const double r : {p, q}) {
      if (r == kInf || r == 1 || r == 2) continue;
      const double inner =
          gain_mul_up(norm_equivalence_up(map.cols(), in, Norm(r)), diagonal_up(map, r, top));
      keep_least(gain_mul_up(inner, norm_equivalence_up(map.rows(), Norm(r), out)), best);
    }
    return best;
  });
  if (q == 1) {
    ways.consider("column norms and norm equivalence [norms-3]", [&](const NormEffort&) {
      return gain_mul_up(norm_equivalence_up(map.cols(), in, Norm(1)),
                         norm_from_one_up(map, point(1)));
    });
  }
  return ways.take();
}

}  // namespace

double NormMap::largest_norm(Lines lines, Toward toward, double p) const {
  return largest(norms(lines, toward, p));
}

SpectralUpper cheap_spectral(const NormMap& map, const NormEffort& effort) {
  NormWays ways(effort);
  ways.consider("Frobenius norm [norms-3]", [&](const NormEffort&) {
    return pnorm_up(map.norms(Lines::kRows, Toward::kUp, 2), 2);
  });
  ways.consider("row and column sums [norms-8]", [&](const NormEffort&) {
    return gain_mul_up(sqrt_up(map.largest_norm(Lines::kColumns, Toward::kUp, 1)),
                       sqrt_up(map.largest_norm(Lines::kRows, Toward::kUp, 1)));
  });
  ways.consider("Schur test [norms-4]",
                [&](const NormEffort&) { return both_schur_up(map, 2, 2, 4); });
  return ways.take();
}

NormBracket bracket_of(const NormMap& map, const NormPair& norms, const NormEffort& effort) {
  if (map.rows() == 0 || map.cols() == 0) return {0, 0, "empty map"};
  // All norms agree on R.
  const double p = map.cols() == 1 ? 1 : norms.in.p(), q = map.rows() == 1 ? kInf : norms.out.p();
  if (p == 1) {
    return {effort.want_lower ? map.largest_norm(Lines::kColumns, Toward::kDown, q) : 0,
            map.largest_norm(Lines::kColumns, Toward::kUp, q), "column norms [norms-1]"};
  }
  if (q == kInf) {
    const Interval dual = dual_exponent(p);
    return {effort.want_lower ? map.largest_norm(Lines::kRows, Toward::kDown, dual.hi) : 0,
            map.largest_norm(Lines::kRows, Toward::kUp, dual.lo), "row norms [norms-1]"};
  }
  if (p != 2 || q != 2) {
    SpectralOnce spectral(map);
    const SpectralUpper upper = general_upper(map, p, q, spectral, effort);
    NormBracket out{0, upper.upper, upper.how};
    if (effort.want_lower) out.lower = general_lower(map, p, q, spectral.vector(effort));
    return out;
  }
  SpectralUpper spectral = map.spectral(effort);
  if (!(spectral.upper < kInf)) {
    SpectralUpper cheap = cheap_spectral(map, effort);
    spectral.upper = cheap.upper;
    spectral.how = cheap.how;
  }
  NormBracket out{0, spectral.upper, spectral.how};
  if (!effort.want_lower) return out;
  if (spectral.vector.empty()) {
    std::vector<double> image = vector_of(map.rows());
    const auto multiply = [&](const double* x, double* y) {
      map.apply(false, x, image.data());
      map.apply(true, image.data(), y);
    };
    spectral.vector = lanczos(map.cols(), multiply, {}, 1e-6, 60).vector;
  }
  if (!spectral.vector.empty()) out.lower = quotient_down(map, {Norm(2), Norm(2)}, spectral.vector);
  return out;
}

}  // namespace lipscope
