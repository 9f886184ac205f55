// SPDX-License-Identifier: Apache-2.0
// Points and proofs of emptiness in the cone of given pieces.
#pragma once

#include "pieces/cone_region.h"
#include "search/search_region.h"

namespace lipscope {

class ConeSearch : public ConeRegion, public SearchRegion {
 public:
  using ConeRegion::ConeRegion;

  [[nodiscard]] std::unique_ptr<SearchRegion> clone() const override {
    return std::make_unique<ConeSearch>(net());
  }
  [[nodiscard]] Finding look(const Path& path, const std::vector<double>& known) override;
  [[nodiscard]] std::optional<double> split_at(UnitId unit) const override;
  [[nodiscard]] bool by_layers() const override { return true; }
  [[nodiscard]] Slopes slopes_at(const std::vector<double>& point) const override;

 private:
  // Only units whose value is a linear function for the given pieces count: those behind open units
  // do not.
  void find_point_or_proof(const Spans& spans, Finding& finding) const;

  Spans spans_;
};

}  // namespace lipscope
