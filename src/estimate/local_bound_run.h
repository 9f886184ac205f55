// SPDX-License-Identifier: Apache-2.0
// The methods whose bound is one of pieces/local_bounds.h.
#pragma once

#include "estimate/method.h"

namespace lipscope {

// Why the bound of that name is no answer to the query; empty when it may be one.
[[nodiscard]] std::string why_no_local_bound(const Query& query, std::string_view name);

// A bound of pieces/local_bounds.h that runs later and makes an earlier one superfluous.
struct BetterBound {
  std::string_view name, why;
};

// Reports the bound of that name unless it would take more than the time left, or, when it was not
// asked for by name, more than a tenth of it, or where the better one would not.
void report_local_bound(const MethodRun& run, std::string_view name,
                        std::optional<BetterBound> better = {});

}  // namespace lipscope
