// SPDX-License-Identifier: Apache-2.0
#include "estimate/sdp_query.h"

namespace lipscope {

std::string why_not_euclidean(const Query& query) {
  const Index outputs = element_count(query.graph->value(query.graph->outputs()[0]).type.shape);
  // All norms of one number are the same.
  const bool fits = query.norms.in == Norm(2) && (query.norms.out == Norm(2) || outputs == 1);
  return fits ? "" : "supports only the l2 norm";
}

bool is_small(const Graph& graph) {
  constexpr Index kMost = 2'000'000;
  Index weights = 0;
  for (const Value& value : graph.values())
    weights += value.constant ? element_count(value.type.shape) : 0;
  return weights <= kMost;
}

}  // namespace lipscope
