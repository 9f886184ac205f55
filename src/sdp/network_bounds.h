// SPDX-License-Identifier: Apache-2.0
// Bounds that follow from a network alone, by name: a certificate names the bound and the checker
// computes it again.
#pragma once

#include <functional>
#include <string_view>

#include "lipscope/norm.h"
#include "net/unit_network.h"

namespace lipscope {

struct NetworkBound {
  std::string_view name;
  // Why it says nothing about the network in these norms; empty when it does.
  std::string (*unsupported)(const UnitNetwork& network, const NormPair& norms);
  // Upper bound of |dy| / |dx|, every rounding included; +inf when there is none. `stop` is asked
  // now and then: +inf when it says so.
  double (*upper)(const UnitNetwork& network, const NormPair& norms,
                  const std::function<bool()>& stop);
  double (*cost)(const UnitNetwork& network, const NormPair& norms);  // multiplications, about
};

// Null for an unknown name.
[[nodiscard]] const NetworkBound* find_network_bound(std::string_view name);

// The bound a certificate may claim: larger by more than sums in another order can change it.
[[nodiscard]] double claim_of(double upper);

}  // namespace lipscope
