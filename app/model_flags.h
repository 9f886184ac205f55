// SPDX-License-Identifier: Apache-2.0
// Flags and JSON shared by commands that take a model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lipscope/model.h"

namespace CLI {
class App;
}

namespace lipscope::app {

struct ModelFlags {
  std::string path;
  std::vector<std::string> dims;  // NAME=SIZE

  void declare(CLI::App& app);
  // Sizes given with --dim; throws kUsage for a malformed one.
  [[nodiscard]] GraphOptions options() const;
};

// "a/b" or a number; throws kUsage.
// "a" or "a/b"; nothing for other texts.
[[nodiscard]] std::optional<double> parse_ratio(std::string_view text);
[[nodiscard]] double parse_scale(const std::string& text);

// {"name", "shape", "type"} of the graph's inputs or outputs.
[[nodiscard]] Json describe_values(const Graph& graph, std::span<const ValueId> ids);

}  // namespace lipscope::app
