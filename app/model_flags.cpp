// SPDX-License-Identifier: Apache-2.0
#include "model_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "files.h"
#include "lipscope/error.h"
#include "number_flags.h"

namespace lipscope::app {
void ModelFlags::declare(CLI::App& app) {
  reads_file(app.add_option("model", path, "ONNX file (may be gzip-compressed)"))
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
    const auto size = equals == std::string::npos
                          ? std::nullopt
                          : parse_whole(std::string_view(text).substr(equals + 1));
    if (equals == 0 || !size || *size < 0) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--dim '{}': expected NAME=SIZE, for example --dim seq=16", text));
    }
    options.dims[text.substr(0, equals)] = *size;
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
