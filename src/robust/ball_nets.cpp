// SPDX-License-Identifier: Apache-2.0
#include "robust/ball_nets.h"

#include "base/memory_budget.h"

namespace lipscope {
namespace {

constexpr Index kMostBallWeights = 20'000'000;

}  // namespace

BallNets::BallNets(const Graph& graph) {
  try {
    network_ = network_with_biases(graph, obstacle_);
    std::string too_large;
    if (network_) whole_ = as_layered_net(*network_, kMostBallWeights, too_large);
  } catch (const std::bad_alloc&) {
    if (!network_) obstacle_ = "memory limit reached";
    relieve_memory();
  }
}

std::shared_ptr<const LayeredNet> BallNets::on(const Ball& ball,
                                               const std::function<bool()>& stop) const {
  std::string reason;
  const Index most = whole_ ? worthwhile_size(whole_->size()) : kMostBallWeights;
  auto reduced = reduced_to(*network_, {.ball = ball}, most, reason, stop);
  if (reduced) return std::make_shared<const LayeredNet>(std::move(reduced->net));
  if (!whole_) return nullptr;
  return {std::shared_ptr<const LayeredNet>(), &*whole_};  // borrowed
}

}  // namespace lipscope
