// SPDX-License-Identifier: Apache-2.0
#include "base64.h"

#include <algorithm>
#include <string_view>

namespace lipscope::app {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(const std::vector<unsigned char>& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    unsigned group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < n ? bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= n ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
  }
  return text;
}

std::optional<std::vector<unsigned char>> from_base64(const std::string& text) {
  std::vector<unsigned char> bytes;
  unsigned group = 0;
  int digits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    group = group << 6 | static_cast<unsigned>(digit);
    digits += 6;
    if (digits < 8) continue;
    digits -= 8;
    bytes.push_back(static_cast<unsigned char>(group >> digits & 255U));
  }
  return bytes;
}

}  // namespace lipscope::app
