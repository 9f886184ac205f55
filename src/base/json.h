// SPDX-License-Identifier: Apache-2.0
// JSON as this project writes it: numbers in the shortest form that reads back to the same double,
// infinities and NaN as the strings "inf", "-inf", "nan".
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace lipscope {

using Json = nlohmann::ordered_json;

// No spaces, keys in the order given.
[[nodiscard]] std::string to_text(const Json& value);
// No spaces, keys sorted: the form digests are taken of.
[[nodiscard]] std::string to_canonical_text(const Json& value);

}  // namespace lipscope
