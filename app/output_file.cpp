// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <cstdio>
#include <fstream>

#include "lipscope/error.h"

namespace lipscope::app {

void write_file(const std::string& path, const std::string& text) {
  const std::string partial = path + ".part";
  std::ofstream file(partial, std::ios::binary);
  file << text;
  file.close();
  if (!file || std::rename(partial.c_str(), path.c_str()) != 0) {
    std::remove(partial.c_str());
    throw Error(ErrorCode::kBadFile, path + ": cannot be written");
  }
}

}  // namespace lipscope::app
