// SPDX-License-Identifier: Apache-2.0
// Where, in the whole space, the units of a network are on given pieces. With a last coordinate t >
// 0 for the biases the set is a cone, and no box has to stand for infinity [pieces-4].
#pragma once

#include "pieces/region.h"
#include "pieces/signs.h"

namespace lipscope {

class ConeRegion : public Region {
 public:
  // Borrows the network.
  explicit ConeRegion(const LayeredNet& net) : net_(net) {}

  [[nodiscard]] View confirm(const Path& path, const CaseTree::InfeasibilityProof& proof) override;
  // Whether the units named in the proof, with the given pieces, cannot all have them; the weights
  // are a hint. All rounding included.
  [[nodiscard]] bool proves_empty(const Spans& spans,
                                  const CaseTree::InfeasibilityProof& proof) const;
  [[nodiscard]] const LayeredNet& net() const { return net_; }

 private:
  const LayeredNet& net_;
};

}  // namespace lipscope
