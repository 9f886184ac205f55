// SPDX-License-Identifier: Apache-2.0
// Intervals that hold the logits of many samples, all rounding included [robustness-1].
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lipscope/graph.h"
#include "net/layered_net.h"

namespace lipscope {

// By products with the weights and error bounds where the graph is the given chain of layers (null:
// it is none), by interval evaluation elsewhere. Borrows both. Thread-safe.
class LogitRanges {
 public:
  LogitRanges(const Graph& graph, const LayeredNet* net);
  ~LogitRanges();

  // Samples one after another, then logits.
  [[nodiscard]] std::vector<Interval> of(std::span<const double> points) const;
  // The same for many: to the last bit, what is found for one does not depend on the others. `stop`
  // is asked before every few: those behind may then have any logits.
  struct Known {
    std::vector<Interval> logits;
    std::size_t samples = 0;  // from the first, whose logits are known
  };
  [[nodiscard]] Known of_each(std::span<const double> points,
                              const std::function<bool()>& stop = {}) const;

 private:
  class Layers;
  [[nodiscard]] Known run(std::span<const double> points, bool padded,
                          const std::function<bool()>& stop) const;
  const Graph& graph_;
  std::unique_ptr<const Layers> layers_;  // null: none
};

}  // namespace lipscope
