// SPDX-License-Identifier: Apache-2.0
// Margins on a ball, case by case, for any graph [robustness-4], [local-16].
#pragma once

#include <functional>
#include <span>

#include "robust/local_radius.h"

namespace lipscope {

class AffineNodes;

struct CasesAnswer {
  bool proved = false;
  Index rival = -1;  // a class whose margin was not proved
};

// Whether the margins against these rivals are above what is needed, on a ball around the point of
// the question; looks at `question.parts` parts.
[[nodiscard]] CasesAnswer prove_by_cases(const Graph& graph, const AffineNodes& nodes,
                                         const LocalQuery& question, double radius,
                                         std::span<const Index> rivals,
                                         const std::function<bool()>& stop);

}  // namespace lipscope
