// SPDX-License-Identifier: Apache-2.0
// Flags and JSON shared by commands that take a model.
#pragma once

#include <string>
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

// {"name", "shape", "type"} of the graph's inputs or outputs.
[[nodiscard]] Json describe_values(const Graph& graph, std::span<const ValueId> ids);

}  // namespace lipscope::app
