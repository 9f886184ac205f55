// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lipscope::app {

// Complete or not at all: written to a new file beside the target, then moved over it, with the
// permissions the target had. What is no plain file (a device, a pipe) is written to as it is; a
// link keeps pointing where it does. Several writers of one file: the last one wins. Throws
// kBadFile.
void write_file(const std::string& path, const std::string& text);

// Throws kBadFile for a path that cannot be written, before work is done in vain.
void require_writable(const std::string& path);

// The file that write_file(path, ...) makes: where links lead, whether that exists or not.
[[nodiscard]] std::string output_target(const std::string& path);

// Removes what an unfinished write_file has made, when the program ends in the middle of it. May be
// called by handlers of signals.
void remove_unfinished();

}  // namespace lipscope::app
