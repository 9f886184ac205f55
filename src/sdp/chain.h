// SPDX-License-Identifier: Apache-2.0
// A network as affine layers with functions of single entries between them: what the semidefinite
// bound [global-1] is about.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/interval.h"
#include "lipscope/graph.h"

namespace lipscope {

// Row-major; the true matrix lies within `radius` of `weights`. An empty radius is zero.
struct ChainLayer {
  Index rows = 0, cols = 0;
  std::vector<double> weights, radius;
};

// x_0 -> v_1 = W_0 x_0 + b_0 -> x_1 = phi_1(v_1) -> ... -> W_L x_L + b_L, times 2^exponent. Layers
// are scaled by powers of two so that their entries are about 1.
struct Chain {
  std::vector<ChainLayer> layers;
  std::vector<std::vector<Interval>> slopes;  // of each entry of phi_1, ..., phi_L
  int exponent = 0;

  [[nodiscard]] Index inputs() const { return layers.front().cols; }
  [[nodiscard]] Index outputs() const { return layers.back().rows; }
  [[nodiscard]] Index size() const;  // entries of x_0, ..., x_L and of the output together
};

// Nothing, and `reason` set, for a graph of another form, with an infinite slope or weight, or with
// more than `most` entries in all. `box` gives the box of a value.
[[nodiscard]] std::optional<Chain> as_chain(const Graph& graph,
                                            const std::function<const Box&(ValueId)>& box,
                                            Index most, std::string& reason);

}  // namespace lipscope
