// SPDX-License-Identifier: Apache-2.0
// The methods whose bound is one of sdp/network_bounds.h.
#pragma once

#include "estimate/method.h"

namespace lipscope {

// Reports the bound of that name unless it would take more than a share of the time left.
void report_network_bound(const MethodRun& run, std::string_view name, double share_of_time);

}  // namespace lipscope
