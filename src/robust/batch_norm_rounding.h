// SPDX-License-Identifier: Apache-2.0
// The rounding of a BatchNormalization that was not merged into its neighbours [robustness-8].
#pragma once

#include <vector>

#include "lipscope/graph.h"
#include "robust/number_format.h"

namespace lipscope {

class BatchNormRounding {
 public:
  // The parameters of the node have to be constants.
  BatchNormRounding(const Graph& graph, const Node& node, const NumberFormat& format);

  // How far entry i of the result is off where the input is at most `size` in absolute value and
  // off by at most `before`: computed as x s + t, or as (x - mean) scale / deviation + bias with
  // the factors in any order. Infinity where an overflow cannot be excluded.
  [[nodiscard]] double error(std::size_t i, double size, double before) const;

 private:
  struct Channel {
    double factor = 0, drift = 0;   // of x: size as computed, distance from the real one
    double scale = 0, inverse = 0;  // sizes of what it is made of, as computed
    double mean = 0, bias = 0;      // sizes as computed
    double mean_drift = 0, bias_drift = 0;
  };
  [[nodiscard]] Channel channel(const Graph& graph, const Node& node, std::size_t c) const;

  NumberFormat format_;
  std::vector<Channel> channels_;
  std::size_t inner_ = 1;  // entries of a channel that follow each other
};

}  // namespace lipscope
