// SPDX-License-Identifier: Apache-2.0
#include "model_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lipscope/error.h"

namespace lipscope::app {
namespace {

bool parse_double(std::string_view text, double& value) {
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  return status == std::errc() && stop == end && std::isfinite(value);
}

}  // namespace

void ModelFlags::declare(CLI::App& app) {
  app.add_option("model", path, "ONNX file (may be gzip-compressed)")
      ->required()
      ->type_name("MODEL");
  app.add_option("--dim", dims, "size of a symbolic dimension, NAME=SIZE (repeatable)")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZE");
}

GraphOptions ModelFlags::options() const {
  GraphOptions options;
  for (const std::string& text : dims) {
    const std::size_t equals = text.find('=');
    Index size = 0;
    const char* end = text.data() + text.size();
    const char* begin = equals == std::string::npos ? end : text.data() + equals + 1;
    const auto [stop, status] = std::from_chars(begin, end, size);
    if (equals == 0 || status != std::errc() || stop != end || size < 0) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--dim '{}': expected NAME=SIZE, for example --dim seq=16", text));
    }
    options.dims[text.substr(0, equals)] = size;
  }
  return options;
}

std::optional<double> parse_ratio(std::string_view text) {
  const std::size_t slash = text.find('/');
  double numerator = 0, denominator = 1;
  const bool good =
      parse_double(text.substr(0, slash), numerator) &&
      (slash == std::string_view::npos || parse_double(text.substr(slash + 1), denominator));
  if (!good || denominator == 0) return std::nullopt;
  return numerator / denominator;
}

double parse_scale(const std::string& text) {
  const auto scale = parse_ratio(text);
  if (!scale) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--scale '{}': expected a number or a/b, for example 1/255", text));
  }
  return *scale;
}

Json describe_values(const Graph& graph, std::span<const ValueId> ids) {
  Json list = Json::array();
  for (const ValueId id : ids) {
    const Value& value = graph.value(id);
    list.push_back(
        {{"name", value.name}, {"shape", value.type.shape}, {"type", to_string(value.type.type)}});
  }
  return list;
}

}  // namespace lipscope::app
