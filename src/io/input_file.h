// SPDX-License-Identifier: Apache-2.0
// Whole files in memory: where every reader begins.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace lipscope {

// The whole file; "-" is standard input. Pipes are read until their writers have closed them;
// waiting for them, and for somebody to open a named one, ends with the run (checkpoint). kBadFile
// when it is missing, a directory, a device or unreadable, and before it is read when it has more
// than `max_bytes`.
[[nodiscard]] std::vector<std::byte> read_file(
    const std::string& path, std::size_t max_bytes = std::numeric_limits<std::size_t>::max() - 1);

// How messages call the file at a path.
[[nodiscard]] std::string display_name(const std::string& path);

// The parts of "file.npz:key". A path that exists as a whole has no key.
struct ArrayPath {
  std::string file;
  std::optional<std::string> key;
};
[[nodiscard]] ArrayPath split_array_path(const std::string& path);

}  // namespace lipscope
