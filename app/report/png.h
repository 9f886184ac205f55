// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace lipscope::app {

// A PNG file of bytes given row by row, the channels (1: grey, 3: colour) of a pixel together.
[[nodiscard]] std::vector<unsigned char> write_png(const std::vector<unsigned char>& pixels,
                                                   std::size_t channels, std::size_t height,
                                                   std::size_t width);

}  // namespace lipscope::app
