// SPDX-License-Identifier: Apache-2.0
// A network of whole numbers at a point of them: plain arithmetic is exact there.
#pragma once

#include <random>

#include "lipscope/evaluate.h"
#include "tests/support/graph_maker.h"

namespace lipscope::testing_support {

struct WholeNumbers {
  Graph graph;
  Tensor at, direction;

  // J times the direction.
  [[nodiscard]] Tensor product() const {
    return Trace(graph, std::vector{at}).jvp(std::vector{direction})[0];
  }
};

inline WholeNumbers whole_numbers(std::uint64_t seed) {
  Rng rng(seed);
  std::uniform_int_distribution<int> number(-3, 3);
  const auto whole = [&](Shape shape) {
    Tensor t = Tensor::zeros(ElementType::kFloat32, std::move(shape));
    for (double& e : t.doubles()) e = number(rng);
    return t;
  };
  GraphMaker m;
  ValueId x = m.input({1, 2, 6, 6});
  x = m.add("Conv", {x, m.weights(whole({3, 2, 3, 3})), m.weights(whole({3}))});
  x = m.add("Relu", {x});
  x = m.add("Reshape", {x, m.integers({1, 48})});
  const ValueId y = m.add("MatMul", {x, m.weights(whole({48, 5}))});
  const ValueId z = m.add("Gemm", {x, m.weights(whole({48, 5})), m.weights(whole({5}))},
                          {{"alpha", 0.5}, {"beta", -2.0}});
  Graph graph = m.finish(m.add("Sub", {m.add("Mul", {y, z}), m.add("Relu", {y})}));
  Tensor at = whole({1, 2, 6, 6}), direction = whole({1, 2, 6, 6});
  return {std::move(graph), std::move(at), std::move(direction)};
}

}  // namespace lipscope::testing_support
