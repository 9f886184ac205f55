// SPDX-License-Identifier: Apache-2.0
// Two points of a domain as a proved lower bound.
#pragma once

#include <functional>
#include <span>

#include "lipscope/bound.h"

namespace lipscope {

// A proved lower bound: |f(y) - f(x)| / |y - x| with both values enclosed by interval evaluation
// and everything rounded outward [composition-4]. 0 when nothing can be said. Both points have to
// lie in the domain for the bound to be one on the domain: see in_domain. The enclosures depend on
// the order in which sums are taken, hence a little on the machine; with `portable_margin`
// something is taken off, so that every machine can prove as much.
[[nodiscard]] double proved_quotient(const Query& query, const Witness& witness,
                                     bool portable_margin = false);

// Whether a point lies in the domain, decided on the safe side.
[[nodiscard]] bool in_domain(const Domain& domain, std::span<const double> point);

// Moves points into a domain: a box, a ball or both.
class DomainProjection {
 public:
  DomainProjection(const Graph& graph, const Domain& domain);
  // Usually inside afterwards; in_domain decides.
  void apply(std::span<double> point) const;
  [[nodiscard]] std::span<const double> low() const { return low_; }
  [[nodiscard]] std::span<const double> high() const { return high_; }

 private:
  const Domain& domain_;
  std::vector<double> low_, high_;
};

// A line x + t d, and how far from x the search looked at last (in t).
struct TrialLine {
  std::vector<double> x, d;
  double reach = 1;
};
struct ProvedPair {
  double value = 0;
  Witness witness;
  double loss = 0;  // what interval evaluation took from |f(y) - f(x)|, in the shortest proof
};
// The best proved quotient along a line: plain evaluation chooses among `trials` lengths on both
// sides of x and on one, since curved functions want short segments and rounding long ones;
// interval evaluation is left for the best few. Nothing below `at_least` is worth a proof; `noise`
// is the loss to expect.
[[nodiscard]] ProvedPair prove_along(const Query& query, const DomainProjection& projection,
                                     const TrialLine& line, int trials, double at_least,
                                     double noise, const std::function<bool()>& should_stop);

}  // namespace lipscope
