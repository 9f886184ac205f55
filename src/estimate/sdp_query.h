// SPDX-License-Identifier: Apache-2.0
// A query read as an SdpNetwork; for the methods that need one.
#pragma once

#include <string>

#include "lipscope/bound.h"
#include "sdp/network.h"

namespace lipscope {

// Why a bound from l2 to l2 is no answer to the query; empty when it is one.
[[nodiscard]] std::string why_not_euclidean(const Query& query);

// Whether reading all weights would not keep a first bracket waiting.
[[nodiscard]] bool is_small(const Graph& graph);

// As as_sdp_network, on boxes of the query's domain.
[[nodiscard]] std::optional<SdpNetwork> sdp_network_of(const Query& query, std::string& reason);

}  // namespace lipscope
