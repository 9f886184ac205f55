// SPDX-License-Identifier: Apache-2.0
#include "ops/activations.h"
#include "ops/stable.h"
#include "ops/unary.h"

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
};
// The common case under the name people know; recognition makes it, ONNX has Swish only.
struct Silu : Swish {
  static constexpr std::string_view kName = "Silu";
};

Imported import_swish(const OnnxNode& node) {
  return import_unary(node, Swish{node.real("alpha", 1.0)});
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
