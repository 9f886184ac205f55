// SPDX-License-Identifier: Apache-2.0
// Numbers out of result documents.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "report/report.h"

namespace lipscope::app {

enum class Side { kLower, kUpper, kNeither };

// A number, "inf" or "-inf"; nothing else.
[[nodiscard]] std::optional<double> number(const Json& value);
// A member that is a number; nothing where there is none.
[[nodiscard]] std::optional<double> number(const Json& object, const char* key);
// A member that is a whole number.
[[nodiscard]] std::optional<Index> whole_number(const Json& object, const char* key);
[[nodiscard]] std::string text_of(const Json& object, const char* key);
// The member, or null.
[[nodiscard]] const Json& member(const Json& object, const char* key);

// Six digits, rounded outward.
[[nodiscard]] std::string rounded(double value, Side side);
// {"value", "guarantee", "method"}; a dash for null.
[[nodiscard]] Cell bound_cell(const Json& bound, Side side);
[[nodiscard]] Cell number_cell(std::optional<double> value, Side side = Side::kNeither,
                               const std::string& badge = "");
[[nodiscard]] Fact bound_fact(const std::string& label, const Json& bound, Side side);
// Seconds to three digits after the point.
[[nodiscard]] Cell seconds_cell(std::optional<double> seconds);
// ℓ2, ℓ∞, ℓ1 → ℓ∞ for "2", "inf", "1:inf".
[[nodiscard]] std::string norm_text(const std::string& norm);
[[nodiscard]] std::string percent_text(double share);

// Of a list of {"margin": [i, j], "upper": bound}; without rows where there are too many classes.
[[nodiscard]] HeatMap margin_map(const Json& margins);

[[nodiscard]] Report report_on_bound(const Json& document);
[[nodiscard]] Report report_on_certify(const Json& document);
[[nodiscard]] Report report_on_softmax(const Json& document);
[[nodiscard]] Report report_on_attention(const Json& document);
[[nodiscard]] Report report_on_game(const Json& document);
[[nodiscard]] Report report_on_inspect(const Json& document);
// Any other result: its numbers and its lists of objects.
[[nodiscard]] Report report_on_anything(const Json& document);

}  // namespace lipscope::app
