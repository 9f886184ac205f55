// SPDX-License-Identifier: Apache-2.0
// An upper bound of the Lipschitz constant on a box or ball, for any graph: ranges of all values by
// linear bounds, the Jacobian enclosed on them, its norm [local-14].
#pragma once

#include <functional>
#include <string>

#include "lipscope/query.h"

namespace lipscope {

// Why the bound does not apply; empty when it may.
[[nodiscard]] std::string graph_jacobian_unsupported(const Graph& graph, const Domain& domain);

struct GraphJacobian {
  double upper = 0;    // infinite when nothing was proved
  std::string reason;  // then: why
};
// The same number for the same question, unless it is stopped: then nothing is proved.
[[nodiscard]] GraphJacobian graph_jacobian_bound(const Graph& graph, const NormPair& norms,
                                                 const Domain& domain,
                                                 const std::function<bool()>& should_stop);

}  // namespace lipscope
