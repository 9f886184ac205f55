// SPDX-License-Identifier: Apache-2.0
#include "model_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "lipscope/error.h"

namespace lipscope::app {
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
