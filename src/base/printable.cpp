// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace lipscope {
namespace {

// Bytes at the start of `text` that a terminal would obey and not show: control characters of ASCII
// and of Latin-1 (in UTF-8), marks that turn the direction of writing, separators of lines.
std::size_t control_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  const unsigned last = byte(2);
  const bool mark =
      byte(0) == 0xe2 &&
      ((byte(1) == 0x80 && (last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae))) ||
       (byte(1) == 0x81 && last >= 0xa6 && last <= 0xa9));
  return mark ? 3 : 0;
}

std::string escaped_controls(std::string_view text, std::string_view kept) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t controls = control_length(text.substr(i));
    if (controls == 0 || kept.find(text[i]) != std::string_view::npos) {
      out += text[i++];
      continue;
    }
    for (const std::size_t end = i + controls; i < end; ++i)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_chars) {
  std::string out;
  for (const char c : text.substr(0, max_chars)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > max_chars) out += "...";
  return out;
}

std::string one_line(std::string_view text, std::size_t max_chars) {
  std::string out = escaped_controls(text.substr(0, max_chars), "");
  if (text.size() > max_chars) out += "...";
  return out;
}

std::string plain_text(std::string_view text) { return escaped_controls(text, "\n\t"); }

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
    list += fmt::format("{}{}", i == 0 ? "" : ", ", printable(names[i]));
  if (names.size() > kMost) list += fmt::format(" and {} more", names.size() - kMost);
  return list;
}

std::string in_quotes(std::string_view text, std::size_t max_chars) {
  return fmt::format("'{}'", printable(text, max_chars));
}

}  // namespace lipscope
