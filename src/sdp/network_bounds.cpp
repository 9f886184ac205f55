// SPDX-License-Identifier: Apache-2.0
#include "sdp/network_bounds.h"

#include <algorithm>
#include <iterator>

#include "base/rounding.h"
#include "sdp/loop_transform.h"
#include "sdp/seqlip.h"

namespace lipscope {
namespace {

std::string any_network(const UnitNetwork&, const NormPair&) { return {}; }

constexpr NetworkBound kBounds[] = {
    {"loop-transform", any_network, loop_transform_up, loop_transform_cost},
    {"seqlip", why_no_seqlip, seqlip_up, seqlip_cost},
};

}  // namespace

const NetworkBound* find_network_bound(std::string_view name) {
  const auto* found = std::ranges::find(kBounds, name, &NetworkBound::name);
  return found == std::end(kBounds) ? nullptr : found;
}

double claim_of(double upper) { return mul_up(upper, 1 + 0x1p-19); }

}  // namespace lipscope
