// SPDX-License-Identifier: Apache-2.0
// Sigmoid and softplus without overflow or cancellation, shared by the activations built on them.
#pragma once

#include <cmath>

namespace lipscope {

// 1 / (1 + exp(-x)).
template <class T>
[[nodiscard]] T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < 0 ? e : T(1)) / (1 + e);
}
// sigmoid'(x).
[[nodiscard]] inline double sigmoid_slope(double x) { return sigmoid(x) * sigmoid(-x); }

// log(1 + exp(x)).
template <class T>
[[nodiscard]] T softplus(T x) {
  return (x > 0 ? x : T(0)) + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace lipscope
