// SPDX-License-Identifier: Apache-2.0
#include "json_mutations.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/sha256.h"

namespace lipscope::fuzz {
namespace {

using JsonRandom = std::mt19937_64;

std::size_t pick(JsonRandom& random, std::size_t end) { return end == 0 ? 0 : random() % end; }

void collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (value.is_object()) {
    for (auto& [name, entry] : value.get_ref<Json::object_t&>()) collect(entry, all);
  } else if (value.is_array()) {
    for (Json& entry : value) collect(entry, all);
  }
}

Json odd_value(JsonRandom& random) {
  static const std::vector<Json> values{nullptr,
                                        true,
                                        false,
                                        0,
                                        -0.0,
                                        1,
                                        -1,
                                        0.5,
                                        1e308,
                                        -1e308,
                                        5e-324,
                                        9007199254740993,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::min(),
                                        std::numeric_limits<std::uint64_t>::max(),
                                        4294967296,
                                        "",
                                        "inf",
                                        "-inf",
                                        "nan",
                                        "2",
                                        "1:inf",
                                        "a\nb\x1b[0m",
                                        Json::array(),
                                        Json::object(),
                                        Json::array({Json::array()}),
                                        Json::array({1, "x"})};
  return values[pick(random, values.size())];
}

double odd_number(double value, JsonRandom& random) {
  constexpr double kFactors[] = {0, -1, 0.5, 0.99, 1.01, 2, 1e10, 1e-10, 1e300};
  switch (random() % 3) {
    case 0: return std::nextafter(value, random() % 2 == 0 ? INFINITY : -INFINITY);
    case 1: return std::trunc(value) + static_cast<double>(pick(random, 5)) - 2;
    default: return value * kFactors[pick(random, std::size(kFactors))];
  }
}

void change_members(Json& object, JsonRandom& random) {
  auto& members = object.get_ref<Json::object_t&>();
  if (members.empty()) return;
  const std::size_t at = pick(random, members.size());
  auto member = members.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 4) {
    case 0: members.erase(member); break;
    case 1: members.emplace_back(member->first, Json(member->second)); break;  // there twice
    case 2: members.emplace_back(member->first + "_", odd_value(random)); break;
    default: {
      std::string name = member->first + "2";
      Json value = std::move(member->second);
      members.erase(member);
      members.emplace_back(std::move(name), std::move(value));
    }
  }
}

void change_entries(Json& list, JsonRandom& random) {
  if (list.empty() || random() % 4 == 0) return list.push_back(odd_value(random));
  const std::size_t at = pick(random, list.size());
  if (random() % 2 == 0) {
    list.erase(at);
  } else {
    list.push_back(Json(list[at]));
  }
}

void nest(Json& value, JsonRandom& random) {
  std::size_t times = random() % 8 == 0 ? 40 : 1;
  while (times-- > 0) {
    Json outer = random() % 2 == 0 ? Json::array() : Json::object();
    if (outer.is_array()) {
      outer.push_back(std::move(value));
    } else {
      outer["a"] = std::move(value);
    }
    value = std::move(outer);
  }
}

void change_one(Json& document, JsonRandom& random) {
  std::vector<Json*> all;
  collect(document, all);
  Json& value = *all[pick(random, all.size())];
  switch (random() % 8) {
    case 0: value = odd_value(random); break;
    case 1: nest(value, random); break;
    case 2: value = Json(*all[pick(random, all.size())]); break;
    default:
      if (value.is_object()) return change_members(value, random);
      if (value.is_array()) return change_entries(value, random);
      value = value.is_number_float() || value.is_number_integer()
                  ? Json(odd_number(value.get<double>(), random))
                  : odd_value(random);
  }
}

void sign_again(Json& document) {
  if (!document.is_object() || !document.contains("sha256")) return;
  document.erase("sha256");
  const std::string text = to_canonical_text(document);
  document["sha256"] = sha256(std::as_bytes(std::span(text)));
}

}  // namespace

void mutate_document(Json& document, JsonRandom& random) {
  for (std::size_t times = std::size_t{1} << pick(random, 3); times > 0; --times)
    change_one(document, random);
  if (random() % 8 != 0) sign_again(document);
}

std::size_t mutate_text(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  JsonRandom random(seed);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    Json document = parse_json(text, "input");
    mutate_document(document, random);
    const std::string changed = to_text(document);
    if (changed.size() > max_size) return size;
    std::memcpy(data, changed.data(), changed.size());
    return changed.size();
  } catch (const Error&) {
    return size;
  }
}

}  // namespace lipscope::fuzz
