// SPDX-License-Identifier: Apache-2.0
// The least of several upper bounds of a norm, and the theorem that gave it. With steps to be
// written it leaves the theorem, a claim that is portable, and the steps of the theorem; with given
// steps it takes the theorem that they name, alone, and proves its claim. Internal to linalg.
#pragma once

#include <type_traits>
#include <utility>

#include "base/portable.h"
#include "linalg/norm/norm_map.h"
#include "lipscope/proof_steps.h"

namespace lipscope {

class NormWays {
 public:
  // Borrows the effort.
  explicit NormWays(const NormEffort& effort) : effort_(effort) {}

  // `way`: from a NormEffort to an upper bound (a number or a SpectralUpper); +inf gives up.
  // `theorem` outlives the answer, and no two ways share one.
  template <class Way>
  void consider(std::string_view theorem, Way&& way) {
    if (follows()) {
      if (found_ || effort_.steps->theorem() != theorem) return;
      found_ = true;
      const double claim = effort_.steps->take();
      best_ = {number(way(effort_)) <= claim ? claim : kInf, theorem, {}};
      return;
    }
    ProofSteps own;
    NormEffort effort = effort_;
    if (effort_.steps != nullptr) effort.steps = &own;
    SpectralUpper bound = as_upper(way(effort));
    if (!(bound.upper < best_.upper)) return;
    found_ = true;
    best_ = std::move(bound);
    best_.how = theorem;
    steps_ = std::move(own);
  }
  [[nodiscard]] bool found() const { return found_; }

  [[nodiscard]] SpectralUpper take() {
    if (effort_.steps == nullptr || follows() || !found_) return std::move(best_);
    best_.upper = portable_claim(best_.upper);
    effort_.steps->add(best_.how, best_.upper);
    effort_.steps->append(steps_);
    return std::move(best_);
  }

 private:
  [[nodiscard]] bool follows() const { return effort_.steps != nullptr && effort_.steps->given(); }
  static SpectralUpper as_upper(SpectralUpper bound) { return bound; }
  static SpectralUpper as_upper(double bound) { return {bound, {}, {}}; }
  static double number(const SpectralUpper& bound) { return bound.upper; }
  static double number(double bound) { return bound; }

  const NormEffort& effort_;
  SpectralUpper best_;
  ProofSteps steps_;
  bool found_ = false;
};

}  // namespace lipscope
