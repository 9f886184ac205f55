// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/activations.h"
#include "ops/stable.h"
#include "ops/unary.h"

namespace lipscope {
namespace {

struct Gelu {
  static constexpr std::string_view kName = "Gelu";
  GeluErf form{0.5, 1, std::numbers::sqrt2};
  template <class T>
  T value(T x) const {
    return T(form.factor) * x * std::erfc(-x * T(form.multiply) / T(form.divide));
  }
  double slope(double x) const {
    const double scale = form.multiply / form.divide;
    const double bell = 2 * std::numbers::inv_sqrtpi * std::exp(-scale * scale * x * x);
    return form.factor * (std::erfc(-x * scale) + x * scale * bell);
  }
};

// 1 + tanh(u) = 2 sigmoid(2u).
struct TanhGelu {
  static constexpr std::string_view kName = "Gelu";
  GeluTanh form{0.5, std::numbers::sqrt2* std::numbers::inv_sqrtpi, 0.044715};
  template <class T>
  T value(T x) const {
    return T(2 * form.factor) * x * sigmoid(T(2 * form.scale) * (x + T(form.cubic) * x * x * x));
  }
  double slope(double x) const {
    const double u = 2 * form.scale * (x + form.cubic * x * x * x);
    const double inner = 2 * form.scale * (1 + 3 * form.cubic * x * x);
    return 2 * form.factor * (sigmoid(u) + x * sigmoid_slope(u) * inner);
  }
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
