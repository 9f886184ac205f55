// SPDX-License-Identifier: Apache-2.0
// Numbers as flags take them: decimals, and fractions such as 36/255.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lipscope/norm.h"
#include "lipscope/tensor.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lipscope::app {

// "a" or "a/b" as a finite number; nothing for other texts.
[[nodiscard]] std::optional<double> parse_ratio(std::string_view text);
// "a" or "a/b" as a whole number; nothing for other texts.
[[nodiscard]] std::optional<Index> parse_whole(std::string_view text);
// The value of --scale; throws kUsage.
[[nodiscard]] double parse_scale(const std::string& text);
// "P" or "P:Q", where P and Q may be fractions; throws kUsage.
[[nodiscard]] NormPair parse_norm_flag(std::string_view text);

// Lets an option of one or more doubles take fractions, and refuse what is no finite number.
CLI::Option* takes_numbers(CLI::Option* option);
// The same for an option of one whole number of at least 0.
CLI::Option* takes_whole(CLI::Option* option);
// Numbers, and "inf" for no limit.
CLI::Option* takes_limit(CLI::Option* option);

// Throws kUsage where a list on the command line has an item without text, which CLI11 passes over:
// "1," is a list that was cut off.
void require_items(const CLI::App& command, std::span<char* const> arguments);

}  // namespace lipscope::app
