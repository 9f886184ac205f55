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
  [[nodiscard]] Finding examine(const Path& path, const std::vector<double>& known) override;
  [[nodiscard]] std::optional<double> split_at(UnitId unit) const override;
  [[nodiscard]] bool by_layers() const override { return true; }
  [[nodiscard]] Slopes slopes_at(const std::vector<double>& point) const override;

 private:
  // Linear functions of (x, t) that are positive on the given pieces, of length 1. The last is t,
  // the others are factors times the values before units, less their kinks.
  struct Sides {
    std::vector<std::vector<double>> rows;
    std::vector<UnitId> units;
    std::vector<double> factors;
  };
  [[nodiscard]] Sides sides_of(const Spans& spans) const;
  // Only units whose value is a linear function for the given pieces count: those behind unstable
  // units do not.
  void find_point_or_proof(const Spans& spans, Finding& finding) const;

  Spans spans_;
};

}  // namespace lipscope
