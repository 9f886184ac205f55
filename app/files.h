// SPDX-License-Identifier: Apache-2.0
// Which options of a command are files, so that no output can take the place of an input or of
// another output, whatever names, links or external data lead to it.
#pragma once

#include <string>

#include "lipscope/model.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lipscope::app {

// To be said of every option that takes a path (or, for inputs, file.npz:key).
CLI::Option* reads_file(CLI::Option* option);
CLI::Option* writes_file(CLI::Option* option);
CLI::Option* keeps_file(CLI::Option* option);  // reads it, then writes it

// Looks at the files of a parsed command before anything is done with them: kUsage where an output
// is an input or another output, and where two inputs are one pipe; kBadFile where an output cannot
// be written.
void check_files(const CLI::App& command);

// OnnxModel::read, which also tells where the model keeps external data: kUsage where an output of
// the command that was checked is there.
[[nodiscard]] OnnxModel read_model(const std::string& path);

}  // namespace lipscope::app
