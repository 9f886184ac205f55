// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/bilinear_range.h"

#include <algorithm>
#include <cfloat>
#include <optional>

#include "base/interval.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;

template <class F>
Vector mapped(const BoundsView& x, F&& f) {
  Vector result(x.lower.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = f(x.lower[i], x.upper[i]);
  return result;
}

bool any(const Vector& x) {
  return std::any_of(x.begin(), x.end(), [](double v) { return v != 0; });
}

bool is_bounded_view(const BoundsView& x) {
  const auto finite = [](double v) { return std::isfinite(v); };
  return std::all_of(x.lower.begin(), x.lower.end(), finite) &&
         std::all_of(x.upper.begin(), x.upper.end(), finite);
}

// Each unbounded side replaced by the other end, or by 0. An infinite constant counts as beyond the
// largest double.
Bounds without_infinities(const BoundsView& x) {
  const auto finite = [](double v, double other) {
    if (std::isfinite(v)) return v;
    if (std::isfinite(other)) return other;
    return v != other ? 0 : (v > 0 ? kMaxDouble : -kMaxDouble);
  };
  return {mapped(x, [&](double l, double u) { return finite(l, u); }),
          mapped(x, [&](double l, double u) { return finite(u, l); })};
}

double smallest_nonzero(const Vector& x, double best = kInf) {
  for (const double v : x) {
    if (v != 0 && std::fabs(v) < best) best = std::fabs(v);
  }
  return best;
}

class Evaluator {
 public:
  explicit Evaluator(const BilinearMap& map)
      : map_(map),
        gamma_(gamma_up(static_cast<std::size_t>(map.roundings))),
        inflate_(gamma_ < 0.5 ? div_up(1, sub_down(1, gamma_)) : kInf) {}

  [[nodiscard]] Vector apply(const Vector& a, const Vector& b) const {
    Vector out(static_cast<std::size_t>(map_.size));
    map_.apply(a.data(), b.data(), out.data());
    return out;
  }

  // Midpoints and radii.
  [[nodiscard]] Bounds centred(const Bounds& a, const Bounds& b) const {
    const Parts pa(a), pb(b);
    const bool b_has_radius = any(pb.radius);
    const Vector centre = apply(pa.middle, pb.middle), size = absolute(pb.middle);
    Vector slack(pa.middle.size()), magnitude(pa.middle.size());
    for (std::size_t i = 0; i < slack.size(); ++i) {
      const double m = std::fabs(pa.middle[i]), r = pa.radius[i];
      slack[i] = add_up(mul_up(gamma_, m), r);
      magnitude[i] = add_up(m, r);
    }
    const double eta = lost_to_underflow(smallest_nonzero(slack, smallest_nonzero(pa.middle)),
                                         smallest_nonzero(pb.radius, smallest_nonzero(pb.middle)));
    Vector error = apply(slack, size);
    if (b_has_radius) {
      const Vector second = apply(magnitude, pb.radius);
      for (std::size_t i = 0; i < error.size(); ++i) error[i] = add_up(error[i], second[i]);
    }
    return around(centre, error, eta);
  }

  // `computed` is what the sums of magnitudes gave, eta what products may have lost in each sum.
  [[nodiscard]] Bounds around(const Vector& centre, const Vector& computed, double eta) const {
    Bounds result{centre, centre};
    for (std::size_t i = 0; i < centre.size(); ++i) {
      const double error = add_up(gain_mul_up(add_up(computed[i], 2 * eta), inflate_), eta);
      const bool known = std::isfinite(centre[i]) && std::isfinite(error);
      result.lower[i] = known ? sub_down(centre[i], error) : -kInf;
      result.upper[i] = known ? add_up(centre[i], error) : kInf;
    }
    return result;
  }

  // The same when one factor is constant, with as few passes over it as possible: weights are far
  // larger than what they are applied to. Nothing if the constant is not finite.
  [[nodiscard]] std::optional<Bounds> with_constant(const BoundsView& x, std::span<const double> c,
                                                    bool constant_first) const {
    const auto apply_to = [&](const Vector& v, const double* w) {
      Vector out(static_cast<std::size_t>(map_.size));
      map_.apply(constant_first ? w : v.data(), constant_first ? v.data() : w, out.data());
      return out;
    };
    double least = kInf, sum = 0;
    for (const double w : c) {
      const double m = std::fabs(w);
      sum += m * 0.0;  // NaN when an entry is not finite
      least = m != 0 && m < least ? m : least;
    }
    if (sum != 0) return std::nullopt;
    const auto unbounded = [&](bool upper) {
      return mapped(x,
                    [&](double l, double u) { return (upper ? u == kInf : l == -kInf) ? 1. : 0.; });
    };
    const Vector no_upper = unbounded(true), no_lower = unbounded(false);
    const bool bounded = !any(no_upper) && !any(no_lower);
    std::vector<bool> up, down;
    if (!bounded) {
      // Sides that some term leaves open: one pass with the positive, one with the negative
      // weights.
      const auto signs = [&](double sign) {
        Vector part(c.size());
        for (std::size_t i = 0; i < c.size(); ++i) part[i] = sign * c[i] > 0 ? 1 : 0;
        return std::pair{apply_to(no_upper, part.data()), apply_to(no_lower, part.data())};
      };
      const auto [up_by_up, down_by_down] = signs(1);
      const auto [down_by_up, up_by_down] = signs(-1);
      bool all = true;
      for (std::size_t i = 0; i < up_by_up.size(); ++i) {
        up.push_back(up_by_up[i] + up_by_down[i] != 0);
        down.push_back(down_by_up[i] + down_by_down[i] != 0);
        all = all && up[i] && down[i];
      }
      if (all) return Bounds{Vector(up.size(), -kInf), Vector(up.size(), kInf)};
    }
    const Bounds finite = bounded ? Bounds{} : without_infinities(x);
    const BoundsView inside = bounded ? x : BoundsView(finite);
    Vector middle(x.lower.size()), slack(x.lower.size()), size(c.size());
    for (std::size_t i = 0; i < middle.size(); ++i) {
      const Interval entry{inside.lower[i], inside.upper[i]};
      middle[i] = midpoint(entry);
      slack[i] = add_up(mul_up(gamma_, std::fabs(middle[i])), radius_up(entry));
    }
    for (std::size_t i = 0; i < c.size(); ++i) size[i] = std::fabs(c[i]);
    const double eta = lost_to_underflow(smallest_nonzero(slack, smallest_nonzero(middle)), least);
    Bounds result = around(apply_to(middle, c.data()), apply_to(slack, size.data()), eta);
    for (std::size_t i = 0; i < up.size(); ++i) {
      if (up[i]) result.upper[i] = kInf;
      if (down[i]) result.lower[i] = -kInf;
    }
    return result;
  }

  // Positive and negative parts: keeps signs where both factors are wide.
  void refine_by_signs(const Bounds& a, const Bounds& b, Bounds& result) const {
    const Signs sa(a), sb(b);
    const double eta = lost_to_underflow(smallest_nonzero(a.lower, smallest_nonzero(a.upper)),
                                         smallest_nonzero(b.lower, smallest_nonzero(b.upper)));
    const auto up = [&](double v) { return gain_mul_up(add_up(v, eta), inflate_); };
    const auto down = [&](double v) {
      return std::max(0.0, div_down(sub_down(v, eta), add_up(1, gamma_)));
    };
    const Vector ll = apply(sa.lower_plus, sb.lower_plus),
                 uu = apply(sa.upper_minus, sb.upper_minus);
    const Vector ul = apply(sa.upper_plus, sb.lower_minus),
                 lu = apply(sa.lower_minus, sb.upper_plus);
    for (std::size_t i = 0; i < ll.size(); ++i) {
      if (!std::isfinite(ll[i]) || !std::isfinite(uu[i])) continue;
      const double bound =
          sub_down(add_down(down(ll[i]), down(uu[i])), add_up(up(ul[i]), up(lu[i])));
      if (bound > result.lower[i]) result.lower[i] = bound;
    }
    const Vector pp = apply(sa.upper_plus, sb.upper_plus),
                 mm = apply(sa.lower_minus, sb.lower_minus);
    const Vector mp = apply(sa.upper_minus, sb.lower_plus),
                 pm = apply(sa.lower_plus, sb.upper_minus);
    for (std::size_t i = 0; i < pp.size(); ++i) {
      if (!std::isfinite(mp[i]) || !std::isfinite(pm[i])) continue;
      const double bound = sub_up(add_up(up(pp[i]), up(mm[i])), add_down(down(mp[i]), down(pm[i])));
      if (bound < result.upper[i]) result.upper[i] = bound;
    }
  }

  // Entries with a term that is unbounded.
  void mark_infinite(const BoundsView& a, const BoundsView& b, Bounds& result) const {
    const Infinities fa(a), fb(b);
    const auto mark = [&](const Vector& x, const Vector& y, Vector& ends, double value) {
      if (!any(x) || !any(y)) return;
      const Vector hits = apply(x, y);
      for (std::size_t i = 0; i < hits.size(); ++i) {
        if (hits[i] != 0) ends[i] = value;
      }
    };
    mark(fa.upper, fb.positive, result.upper, kInf);
    mark(fa.lower, fb.negative, result.upper, kInf);
    mark(fa.positive, fb.upper, result.upper, kInf);
    mark(fa.negative, fb.lower, result.upper, kInf);
    mark(fa.upper, fb.negative, result.lower, -kInf);
    mark(fa.lower, fb.positive, result.lower, -kInf);
    mark(fa.negative, fb.upper, result.lower, -kInf);
    mark(fa.positive, fb.lower, result.lower, -kInf);
  }

 private:
  struct Parts {
    Vector middle, radius;
    explicit Parts(const Bounds& x)
        : middle(mapped(BoundsView(x),
                        [](double l, double u) {
                          return midpoint({l, u});
                        })),
          radius(mapped(BoundsView(x), [](double l, double u) {
            return radius_up({l, u});
          })) {}
  };
  struct Signs {
    Vector lower_plus, lower_minus, upper_plus, upper_minus;
    explicit Signs(const Bounds& x)
        : lower_plus(mapped(BoundsView(x), [](double l, double) { return l > 0 ? l : 0; })),
          lower_minus(mapped(BoundsView(x), [](double l, double) { return l < 0 ? -l : 0; })),
          upper_plus(mapped(BoundsView(x), [](double, double u) { return u > 0 ? u : 0; })),
          upper_minus(mapped(BoundsView(x), [](double, double u) { return u < 0 ? -u : 0; })) {}
  };
  struct Infinities {
    Vector lower, upper, negative, positive;  // 0 or 1
    explicit Infinities(const BoundsView& x)
        : lower(mapped(x, [](double l, double) { return l == -kInf ? 1.0 : 0.0; })),
          upper(mapped(x, [](double, double u) { return u == kInf ? 1.0 : 0.0; })),
          negative(mapped(x, [](double l, double) { return l < 0 ? 1.0 : 0.0; })),
          positive(mapped(x, [](double, double u) { return u > 0 ? 1.0 : 0.0; })) {}
  };

  static Vector absolute(Vector x) {
    for (double& v : x) v = std::fabs(v);
    return x;
  }

  // What the products of an entry may lose to underflow in all.
  [[nodiscard]] double lost_to_underflow(double smallest_a, double smallest_b) const {
    if (map_.exact_products || mul_down(smallest_a, smallest_b) >= DBL_MIN) return 0;
    return mul_up(static_cast<double>(map_.roundings + 1), kMinSubnormal);
  }

  const BilinearMap& map_;
  double gamma_, inflate_;
};

}  // namespace

Bounds bilinear_range(const BilinearMap& map, const BoundsView& a, const BoundsView& b) {
  const Evaluator evaluator(map);
  // Exact constants are one array for both ends.
  const bool a_constant = a.lower.data() == a.upper.data(),
             b_constant = b.lower.data() == b.upper.data();
  if (a_constant || b_constant) {
    const auto found = b_constant ? evaluator.with_constant(a, b.lower, false)
                                  : evaluator.with_constant(b, a.lower, true);
    if (found) return *found;
  }
  const bool bounded = is_bounded_view(a) && is_bounded_view(b);
  const Bounds fa = without_infinities(a), fb = without_infinities(b);
  Bounds result = evaluator.centred(fa, fb);
  if (fa.lower != fa.upper && fb.lower != fb.upper) evaluator.refine_by_signs(fa, fb, result);
  if (!bounded) evaluator.mark_infinite(a, b, result);
  return result;
}

}  // namespace lipscope
