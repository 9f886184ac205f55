// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/activations.h"
#include "ops/elementwise/stable.h"
#include "ops/elementwise/unary.h"

namespace lipscope {
namespace {

// x sigmoid(alpha x).
struct Swish {
  static constexpr std::string_view kName = "Swish";
  double alpha = 1;
  template <class T>
  T value(T x) const {
    return x * sigmoid(T(alpha) * x);
  }
  double slope(double x) const { return sigmoid(alpha * x) + alpha * x * sigmoid_slope(alpha * x); }
  WideDual wide(const WideDual& x) const {
    const Wide z = Wide(alpha) * x.value, s = sigmoid(z);
    return chained(x.value * s, s + z * s * (Wide(1) - s), x);
  }
  // [activations-5], z = alpha x.
  Interval range(const Interval& x) const {
    const auto at = [&](double t) { return t * sigmoid(alpha * point(t)); };
    if (alpha == 0) return over_pieces(x, at);
    return over_pieces(x, at, {{lowest() / alpha, (1 + lowest()) / alpha}});
  }
  Interval slopes(const Interval& x) const {
    const auto at = [](double z) {
      if (std::isinf(z)) return point(z > 0 ? 1 : 0);
      return sigmoid(point(z)) + z * sigmoid(point(z)) * sigmoid(point(-z));
    };
    const Interval z = steepest(), quarter = 0.25 * z;
    return over_pieces(alpha * x, at, {{-z, 0.5 - quarter}, {z, 0.5 + quarter}});
  }

 private:
  // The root of 1 + z sigmoid(-z), where z sigmoid(z) is least.
  static Interval lowest() {
    static const Interval root =
        sign_change(-2, 0, [](const Interval& z) { return 1 + z * sigmoid(-z); });
    return root;
  }
  // The positive root of z tanh(z / 2) = 2, where its slope is largest.
  static Interval steepest() {
    static const Interval root =
        sign_change(1, 4, [](const Interval& z) { return z * tanh(0.5 * z) - 2; });
    return root;
  }
};
// The common case under the name people know; recognition makes it, ONNX has Swish only.
struct Silu : Swish {
  static constexpr std::string_view kName = "Silu";
};

Imported import_swish(const OnnxNode& node) {
  return import_unary(node, Swish{node.real("alpha")});
}

}  // namespace

std::shared_ptr<const Op> make_silu(double alpha) {
  if (alpha == 1) return std::make_shared<UnaryOp<Silu>>(Silu{});
  return std::make_shared<UnaryOp<Swish>>(Swish{alpha});
}

std::vector<OpKind> op_swish() {
  return {unary_kind<Silu>([](Rng& rng) { return unary_cases(rng, {}, -6, 6); }),
          {Swish::kName, import_swish, [](Rng& rng) {
             return unary_cases(rng, {}, -4, 4, {{"alpha", 1.7}}, 24);
           }}};
}

}  // namespace lipscope
