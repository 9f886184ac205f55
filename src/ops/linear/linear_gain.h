// SPDX-License-Identifier: Apache-2.0
// Operator norms of simple linear maps, rounded up [linear-2]. Pure functions.
#pragma once

#include "linalg/norm/operator_norm.h"
#include "lipscope/op.h"

namespace lipscope {

[[nodiscard]] inline NormEffort gain_effort(const GainQuery& query) {
  NormEffort effort{.want_lower = false, .steps = query.steps};
  const bool follows = query.steps != nullptr && query.steps->given();
  if (query.quick && !follows) effort.max_work = 2e8;
  return effort;
}

// I (x) M: `times` copies of a map of the given norm, each on entries of its own. Exact.
[[nodiscard]] inline double repeated_norm_up(double norm, Index times, const NormPair& norms) {
  return gain_mul_up(norm, norm_equivalence_up(times, norms.in, norms.out));
}
// x -> (x, ..., x): times^(1/q), as a factor of any map so followed. Exact.
[[nodiscard]] inline double copied_norm_up(Index times, Norm out) {
  return norm_equivalence_up(times, Norm::infinity(), out);
}
// (x_1, ..., x_n) -> x_1 + ... + x_n: n^(1 - 1/p), as a factor of any map it precedes. Exact.
[[nodiscard]] inline double added_norm_up(Index terms, Norm in) {
  return norm_equivalence_up(terms, in, Norm(1));
}

// Exponents on the stated side of the dual one. ||A||_{p->q} grows with p and falls with q, so that
// ||A'||_{p->q} = ||A||_{q*->p*} <= ||A|| from dual_up(q) to dual_down(p).
[[nodiscard]] inline Norm dual_up(Norm norm) {
  const double p = norm.p();
  return p == kInf ? Norm(1) : Norm(p == 1 ? kInf : div_up(p, sub_down(p, 1)));
}
[[nodiscard]] inline Norm dual_down(Norm norm) {
  const double p = norm.p();
  if (p == kInf) return Norm(1);
  const double dual = p == 1 ? kInf : div_down(p, sub_up(p, 1));
  return Norm(dual < 1 ? 1 : dual);
}
[[nodiscard]] inline NormPair adjoint_norms(const NormPair& norms) {
  return {dual_up(norms.out), dual_down(norms.in)};
}

}  // namespace lipscope
