// SPDX-License-Identifier: Apache-2.0
#include "number_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "lipscope/error.h"

namespace lipscope::app {
namespace {

bool parse_double(std::string_view text, double& value) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  return status == std::errc() && stop == end && std::isfinite(value);
}

// In place of a fraction CLI11 reads the double it stands for.
std::string to_decimal(std::string& text) {
  const auto value = parse_ratio(text);
  if (!value) return fmt::format("'{}' is neither a number nor a fraction such as 36/255", text);
  text = fmt::format("{}", *value);
  return "";
}

}  // namespace

std::optional<double> parse_ratio(std::string_view text) {
  const std::size_t slash = text.find('/');
  double numerator = 0, denominator = 1;
  const bool good =
      parse_double(text.substr(0, slash), numerator) &&
      (slash == std::string_view::npos || parse_double(text.substr(slash + 1), denominator));
  const double ratio = numerator / denominator;
  return good && std::isfinite(ratio) ? std::optional(ratio) : std::nullopt;
}

std::optional<Index> parse_whole(std::string_view text) {
  const auto integer = [](std::string_view part) -> std::optional<Index> {
    if (part.starts_with('+') && !part.starts_with("+-")) part.remove_prefix(1);
    Index value = 0;
    const char* end = part.data() + part.size();
    const auto [stop, status] = std::from_chars(part.data(), end, value);
    return status == std::errc() && stop == end ? std::optional(value) : std::nullopt;
  };
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return integer(text);
  const auto above = integer(text.substr(0, slash)), below = integer(text.substr(slash + 1));
  if (!above || !below || *below <= 0 || *above % *below != 0) return std::nullopt;
  return *above / *below;
}

double parse_scale(const std::string& text) {
  const auto scale = parse_ratio(text);
  if (!scale) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--scale '{}': expected a number or a/b, for example 1/255", text));
  }
  return *scale;
}

NormPair parse_norm_flag(std::string_view text) {
  std::string decimals;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const auto ratio = part.find('/') == std::string_view::npos ? std::nullopt : parse_ratio(part);
    decimals += begin > 0 ? ":" : "";
    decimals += ratio ? fmt::format("{}", *ratio) : std::string(part);
    begin = end + 1;
  }
  return parse_norms(decimals);
}

CLI::Option* takes_numbers(CLI::Option* option) {
  return option->transform(CLI::Validator(to_decimal, ""));
}

CLI::Option* takes_whole(CLI::Option* option) {
  return option->transform(CLI::Validator(
      [](std::string& text) {
        std::uint64_t seed = 0;  // may be beyond an Index
        const char* end = text.data() + text.size();
        const auto [stop, status] = std::from_chars(text.data(), end, seed);
        if (status == std::errc() && stop == end) return std::string();
        const auto whole = parse_whole(text);
        if (!whole || *whole < 0)
          return fmt::format("'{}' is not a whole number of at least 0", text);
        text = fmt::format("{}", *whole);
        return std::string();
      },
      ""));
}

CLI::Option* takes_limit(CLI::Option* option) {
  return option->transform(CLI::Validator(
      [](std::string& text) { return text == "inf" ? std::string() : to_decimal(text); }, ""));
}

void require_items(const CLI::App& command, std::span<char* const> arguments) {
  for (const CLI::Option* option : command.get_options()) {
    const char comma = option->get_delimiter();
    if (comma == '\0' || option->count() == 0) continue;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string_view argument = arguments[i];
      const std::string name = option->get_name();
      std::string_view list;
      if (argument == name && i + 1 < arguments.size()) {
        list = arguments[i + 1];
      } else if (argument.starts_with(name + "=")) {
        list = argument.substr(name.size() + 1);
      } else {
        continue;
      }
      if (list.starts_with(comma) || list.ends_with(comma) ||
          list.find(std::string(2, comma)) != std::string_view::npos)
        throw Error(ErrorCode::kUsage,
                    fmt::format("{} '{}': an item of the list is missing", name, list));
    }
  }
}

}  // namespace lipscope::app
