// SPDX-License-Identifier: Apache-2.0
// An upper bound of the Lipschitz constant on a ball: the Jacobian at its centre and what each unit
// that is not affine can add, weighed by the derivatives before and after it [attention-18]. All in
// l2; other norms by the l2 ball around the ball, and by how far norms differ.
#pragma once

#include <functional>
#include <string>

#include "lipscope/query.h"

namespace lipscope {

// Why the bound does not apply; empty when it may. Units are functions of single entries, softmax,
// normalised rows and attention that [attention-9] covers; everything else has to be affine.
[[nodiscard]] std::string expansion_unsupported(const Graph& graph, const Domain& domain);

struct Expansion {
  double upper = 0;    // infinite when nothing was proved
  std::string reason;  // then: why
};
[[nodiscard]] Expansion expansion_bound(const Graph& graph, const NormPair& norms,
                                        const Domain& domain,
                                        const std::function<bool()>& should_stop);

}  // namespace lipscope
