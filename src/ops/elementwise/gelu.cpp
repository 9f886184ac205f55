// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/elementwise/activations.h"
#include "ops/elementwise/stable.h"
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

// An interval around a constant of the standard and the double next to it: where a node stands for
// the function of the standard, the exact constant is meant; where a file spells it out, the
// double.
Interval or_double(const Interval& exact, double value) { return hull(exact, point(value)); }

// [activations-5], z = scale x.
struct Gelu {
  static constexpr std::string_view kName = "Gelu";
  GeluErf form{0.5, 1, std::numbers::sqrt2, true};
  template <class T>
  T value(T x) const {
    return T(form.factor) * x * std::erfc(-x * T(form.multiply) / T(form.divide));
  }
  double slope(double x) const {
    const double scale = form.multiply / form.divide;
    const double bell = 2 * std::numbers::inv_sqrtpi * std::exp(-scale * scale * x * x);
    return form.factor * (std::erfc(-x * scale) + x * scale * bell);
  }
  // factor x erfc(-z) = 2 factor x (share below sqrt(2) z), z = x multiply / divide.
  WideDual wide(const WideDual& x) const {
    const Wide two(2);
    const Wide root = form.exact_root && form.divide == std::numbers::sqrt2
                          ? Wide(form.multiply)
                          : sqrt(two) * Wide(form.multiply) / Wide(form.divide);
    const NormalShare normal = normal_share(root * x.value);
    const Wide factor(2 * form.factor);
    return chained(factor * x.value * normal.below,
                   factor * (normal.below + root * x.value * normal.density), x);
  }
  Interval range(const Interval& x) const {
    const Interval k = scale();
    const auto at = [&](double t) { return form.factor * point(t) * erfc(-(k * t)); };
    if (k == point(0)) return over_pieces(x, at);
    static const Interval least = sign_change(-1, 0, slope_on);
    static const Interval bottom = least * erfc(-least);
    return over_pieces(x, at, {{least / k, form.factor * bottom / k}});
  }
  Interval slopes(const Interval& x) const {
    const auto at = [](double z) {
      return std::isinf(z) ? point(z > 0 ? 2 : 0) : slope_on(point(z));
    };
    static const Turn low{point(-1), slope_on(point(-1))}, high{point(1), slope_on(point(1))};
    return form.factor * over_pieces(scale() * x, at, {low, high});
  }

 private:
  Interval scale() const {
    const bool root = form.exact_root && form.divide == std::numbers::sqrt2;
    return form.multiply / (root ? sqrt(point(2)) : point(form.divide));
  }
  // The derivative of z (1 + erf z).
  static Interval slope_on(const Interval& z) {
    return erfc(-z) + 2 / sqrt(Interval{kPiDown, kPiUp}) * z * exp(-sqr(z));
  }
};

// 1 + tanh(u) = 2 sigmoid(2u).
class TanhGelu {
 public:
  static constexpr std::string_view kName = "Gelu";
  TanhGelu() : TanhGelu(GeluTanh{0.5, std::numbers::sqrt2 * std::numbers::inv_sqrtpi, 0.044715}) {
    scale_ = or_double(sqrt(2 / Interval{kPiDown, kPiUp}), form_.scale);
    cubic_ = or_double({next_down(form_.cubic), next_up(form_.cubic)}, form_.cubic);
    find_turns();
  }
  explicit TanhGelu(const GeluTanh& form)
      : form_(form), scale_(point(std::abs(form.scale))), cubic_(point(form.cubic)) {
    find_turns();
  }

  template <class T>
  T value(T x) const {
    return T(2 * form_.factor) * x * sigmoid(T(2 * form_.scale) * (x + T(form_.cubic) * x * x * x));
  }
  double slope(double x) const {
    const double u = 2 * form_.scale * (x + form_.cubic * x * x * x);
    const double inner = 2 * form_.scale * (1 + 3 * form_.cubic * x * x);
    return 2 * form_.factor * (sigmoid(u) + x * sigmoid_slope(u) * inner);
  }

  // [activations-9]. The sign of the scale mirrors the function: f(x; -k) = -f(-x; k).
  Interval range(const Interval& x) const {
    return 2 * point(form_.factor) * (form_.scale < 0 ? -gated(-x) : gated(x));
  }
  Interval slopes(const Interval& x) const {
    return 2 * point(form_.factor) * gated_slopes(form_.scale < 0 ? -x : x);
  }

 private:
  // Of x sigmoid(2 scale (x + cubic x^3)), scale >= 0.
  Interval gated(const Interval& x) const {
    if (scale_ == point(0)) return 0.5 * x;
    if (!known_) return is_bounded(x) ? x * sigmoid(argument(x)) : kEntire;
    return over_pieces(x,
                       [&](double t) {
                         if (std::isinf(t)) return t > 0 ? point(t) : point(0);
                         return t * sigmoid(argument(point(t)));
                       },
                       {least_});
  }
  Interval gated_slopes(const Interval& x) const {
    if (scale_ == point(0)) return point(0.5);
    if (!known_) return is_bounded(x) ? slope_on(x) : kEntire;
    const Interval all = over_pieces(
        x, [&](double t) { return std::isinf(t) ? point(t > 0 ? 1 : 0) : slope_on(point(t)); },
        {low_, high_});
    // Far out the product in slope_on overflows.
    return intersect(all, hull(low_.value, high_.value));
  }

  Interval argument(const Interval& x) const { return 2 * scale_ * (x + cubic_ * pow(x, 3)); }
  Interval growth(const Interval& x) const { return 2 * scale_ * (1 + 3 * cubic_ * sqr(x)); }
  Interval slope_on(const Interval& x) const {
    const Interval u = argument(x);
    return sigmoid(u) + x * growth(x) * sigmoid(u) * sigmoid(-u);
  }

  // Where range and slopes turn; unknown for a falling cubic and for constants that overflow.
  void find_turns() {
    known_ = false;
    const double far = div_up(2, scale_.lo);
    if (!(scale_.lo > 0 && cubic_.lo >= 0 && far < kInf)) return;
    const auto bend = [&](const Interval& x) {
      const Interval w = 3 * cubic_ * sqr(x);
      return scale_ * x * tanh(0.5 * argument(x)) - (1 + 2 * w) / sqr(1 + w);
    };
    if (!(bend(point(far)).lo > 0)) return;
    const Interval steep = sign_change(0, far, bend);
    high_ = {steep, slope_on(steep)};
    low_ = {-steep, slope_on(-steep)};
    const auto rises = [&](const Interval& x) { return 1 + x * growth(x) * sigmoid(-argument(x)); };
    if (!(rises(low_.where).hi < 0)) return;
    const Interval least = sign_change(low_.where.lo, 0, rises);
    least_ = {least, least * sigmoid(argument(least))};
    known_ = true;
  }

  GeluTanh form_;
  Interval scale_, cubic_;  // |form.scale| and form.cubic, or the constants of the standard
  bool known_ = false;
  Turn low_, high_, least_;  // smallest and largest slope, smallest value
};

Imported import_gelu(const OnnxNode& node) {
  const std::string form = node.text("approximate", "none");
  if (form == "none") return import_unary<Gelu>(node);
  if (form == "tanh") return import_unary<TanhGelu>(node);
  node.malformed("attribute 'approximate' is '" + form + "'");
}

}  // namespace

std::shared_ptr<const Op> make_gelu(const GeluErf& parameters) {
  return std::make_shared<UnaryOp<Gelu>>(Gelu{parameters});
}
std::shared_ptr<const Op> make_gelu(const GeluTanh& parameters) {
  return std::make_shared<UnaryOp<TanhGelu>>(TanhGelu{parameters});
}

std::vector<OpKind> op_gelu() {
  return {{Gelu::kName, import_gelu, [](Rng& rng) {
             return joined(unary_cases(rng, {}, -4, 4, {}, 20),
                           unary_cases(rng, {}, -4, 4, {{"approximate", std::string("tanh")}}, 20));
           }}};
}

}  // namespace lipscope
