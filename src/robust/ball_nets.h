// SPDX-License-Identifier: Apache-2.0
// The network of a classifier for proofs on balls: as it is, or, where that is much smaller or it
// is too large, what is left of it there [pieces-9].
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pieces/local_net.h"

namespace lipscope {

class BallNets {
 public:
  // Borrows the graph's operators.
  explicit BallNets(const Graph& graph);
  // There is one for small balls at least.
  [[nodiscard]] bool usable() const { return network_.has_value(); }
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  // The same function everywhere; null: it is too large.
  [[nodiscard]] const LayeredNet* whole() const { return whole_ ? &*whole_ : nullptr; }
  // Where memory is short.
  void forget_whole() { whole_.reset(); }
  // The same function on the ball; null when that is too large, too, or when stopped.
  [[nodiscard]] std::shared_ptr<const LayeredNet> on(const Ball& ball,
                                                     const std::function<bool()>& stop) const;

 private:
  std::string obstacle_;
  std::optional<SdpNetwork> network_;
  std::optional<LayeredNet> whole_;
};

}  // namespace lipscope
