// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace lipscope {
namespace {

using Buffer = fmt::memory_buffer;

void append(Buffer& out, std::string_view text) {
  out.append(text.data(), text.data() + text.size());
}

void write_number(Buffer& out, double value) {
  if (std::isnan(value)) return append(out, "\"nan\"");
  if (std::isinf(value)) return append(out, value > 0 ? "\"inf\"" : "\"-inf\"");
  fmt::format_to(std::back_inserter(out), "{}", value);
}

// nlohmann escapes control characters; bytes that are not UTF-8 become U+FFFD.
void write_string(Buffer& out, const std::string& text) {
  append(out, Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

void write(Buffer& out, const Json& value, bool sorted) {
  switch (value.type()) {
    case Json::value_t::object: {
      std::vector<std::pair<const std::string*, const Json*>> members;
      for (auto it = value.begin(); it != value.end(); ++it)
        members.emplace_back(&it.key(), &it.value());
      if (sorted) {
        std::sort(members.begin(), members.end(),
                  [](const auto& a, const auto& b) { return *a.first < *b.first; });
      }
      append(out, "{");
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (i > 0) append(out, ",");
        write_string(out, *members[i].first);
        append(out, ":");
        write(out, *members[i].second, sorted);
      }
      return append(out, "}");
    }
    case Json::value_t::array: {
      append(out, "[");
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) append(out, ",");
        write(out, value[i], sorted);
      }
      return append(out, "]");
    }
    case Json::value_t::number_float: return write_number(out, value.get<double>());
    case Json::value_t::string: return write_string(out, value.get_ref<const std::string&>());
    default: return append(out, value.dump());
  }
}

}  // namespace

std::string to_text(const Json& value) {
  Buffer out;
  write(out, value, false);
  return fmt::to_string(out);
}

std::string to_canonical_text(const Json& value) {
  Buffer out;
  write(out, value, true);
  return fmt::to_string(out);
}

}  // namespace lipscope
