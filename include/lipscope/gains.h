// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "lipscope/bound.h"

namespace lipscope {

// A proved constant of a node's first output as a function of all its inputs that vary.
struct NodeGain {
  enum class State {
    kOpen,   // not asked for yet
    kLoose,  // proved, and more work may prove a smaller one
    kFound,
  };
  State state = State::kOpen;
  double value = HUGE_VAL;  // infinity where none is known
};

// The gains of all nodes in several norms, on the boxes that interval propagation gives for the
// domain: cheap ones for all nodes first, then better ones where there are. Borrows the graph.
//
//   NodeGains gains(graph, {parse_norms("1"), parse_norms("2")});
//   if (!gains.find(*context.clock, deadline)) ...   // some are open or loose
class NodeGains {
 public:
  NodeGains(const Graph& graph, std::vector<NormPair> norms, const Domain& domain = {});
  ~NodeGains();
  NodeGains(NodeGains&&) noexcept;
  NodeGains& operator=(NodeGains&&) noexcept;

  // Proved constants of all nodes that hold wherever their inputs are, in about the time of reading
  // the weights. As far as the time goes.
  void glance(const RunClock& clock, double deadline);
  // Better ones, until the clock shows `deadline` or the run is to stop; whether every gain was
  // found. To be called again for more. `settled` is told of the nodes in their order, each as soon
  // as nothing more will be found about it by this call, and all of them before it returns.
  bool find(const RunClock& clock, double deadline,
            const std::function<void(std::size_t node)>& settled = {});

  [[nodiscard]] const std::vector<NormPair>& norms() const;
  [[nodiscard]] const NodeGain& at(std::size_t node, std::size_t norm) const;

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

}  // namespace lipscope
