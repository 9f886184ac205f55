// SPDX-License-Identifier: Apache-2.0
// The facets of op.h as a list: what `lipscope ops` shows, and the kits hold against values.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ops/kind.h"

namespace lipscope {

struct Facet {
  std::string_view name;
  std::string_view meaning;
};
// In the order of op.h.
[[nodiscard]] std::span<const Facet> all_facets();

// The names of those that an instance offers for inputs in these boxes.
[[nodiscard]] std::vector<std::string_view> offered_facets(const Op& op, std::span<const Box> in);
// Of those that it offers for one of the operator's worked examples.
[[nodiscard]] std::vector<std::string_view> offered_facets(const OpKind& kind);

}  // namespace lipscope
