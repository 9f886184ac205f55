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

  [[nodiscard]] std::unique_ptr<Region> clone() const override {
    return std::make_unique<ConeRegion>(net_);
  }
  [[nodiscard]] View look(const Path& path, const std::vector<double>& known) override;
  [[nodiscard]] View confirm(const Path& path, const CaseTree::Empty& proof) override;
  [[nodiscard]] std::optional<double> split_at(UnitId unit) const override;
  [[nodiscard]] bool by_layers() const override { return true; }
  [[nodiscard]] Slopes slopes_at(const std::vector<double>& point) const override;

  // Whether the units named in the proof, with the given pieces, cannot all have them; the weights
  // are a hint. All rounding included.
  [[nodiscard]] bool proves_empty(const Spans& spans, const CaseTree::Empty& proof) const;

 private:
  // Only units whose value is a linear function for the given pieces count: those behind open units
  // do not.
  void find_point_or_proof(const Spans& spans, View& view) const;

  const LayeredNet& net_;
  Spans spans_;
};

}  // namespace lipscope
