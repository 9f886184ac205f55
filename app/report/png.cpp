// SPDX-License-Identifier: Apache-2.0
#include "report/png.h"

#include <zlib.h>

#include <string_view>

#include "base/check.h"

namespace lipscope::app {
namespace {

using Data = std::vector<unsigned char>;

void add_number(Data& out, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<unsigned char>(value >> shift & 255U));
}

void add_chunk(Data& out, std::string_view name, const Data& contents) {
  add_number(out, contents.size());
  Data body(name.begin(), name.end());
  body.insert(body.end(), contents.begin(), contents.end());
  out.insert(out.end(), body.begin(), body.end());
  add_number(out, crc32(0, body.data(), static_cast<uInt>(body.size())));
}

}  // namespace

Data write_png(const Data& pixels, std::size_t channels, std::size_t height, std::size_t width) {
  LIPSCOPE_CHECK(pixels.size() == channels * height * width && (channels == 1 || channels == 3));
  Data rows;
  for (std::size_t y = 0; y < height; ++y) {
    rows.push_back(0);  // no filter
    const auto begin = pixels.begin() + static_cast<std::ptrdiff_t>(y * width * channels);
    rows.insert(rows.end(), begin, begin + static_cast<std::ptrdiff_t>(width * channels));
  }
  uLongf size = compressBound(rows.size());
  Data packed(size);
  LIPSCOPE_CHECK(compress2(packed.data(), &size, rows.data(), rows.size(), 9) == Z_OK);
  packed.resize(size);
  Data header;
  add_number(header, width);
  add_number(header, height);
  header.insert(header.end(), {8, static_cast<unsigned char>(channels == 1 ? 0 : 2), 0, 0, 0});
  Data out{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  add_chunk(out, "IHDR", header);
  add_chunk(out, "IDAT", packed);
  add_chunk(out, "IEND", {});
  return out;
}

}  // namespace lipscope::app
