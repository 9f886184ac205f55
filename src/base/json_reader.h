// SPDX-License-Identifier: Apache-2.0
// JSON out of a file that may be anything. What is not read exactly as it stands is refused: too
// large, too deep, a field twice, a field nobody asked for, a field of another type, a number that
// is no double. Every refusal is kBadFile on one line that names the place:
// "certificate: query.wrt: expected a string or null, found an array".
//
//   const Json document = parse_json(text, "certificate");
//   const Query query = JsonValue(document, "certificate").object([](JsonFields& fields) {
//     return Query{.norm = fields.at("norm").text(), .logits = fields.at("logits").flag()};
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"

namespace lipscope {

// No document this program writes comes near these. A value takes up to 100 bytes in memory.
struct JsonLimits {
  std::size_t bytes = std::size_t{256} << 20U;  // of the text
  std::size_t depth = 32;                       // of objects and arrays in each other
  std::size_t values = std::size_t{1} << 25U;
};

// The whole text as one value. Keeps -0 as the double -0.0. `name` is how messages call it.
[[nodiscard]] Json parse_json(std::string_view text, std::string_view name,
                              const JsonLimits& limits = {});

class JsonFields;

// A value of a document and the way to it. A view: document and name outlive it.
class JsonValue {
 public:
  JsonValue(const Json& document, std::string_view name)
      : document_(&document), value_(&document), name_(name) {}

  // "NAME: PATH: why" as kBadFile.
  [[noreturn]] void refuse(std::string_view why) const;

  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_text() const;
  [[nodiscard]] bool is_object() const;
  [[nodiscard]] const Json& json() const { return *value_; }

  // Each refuses every other type.
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::string text_or_null() const;  // null: empty
  [[nodiscard]] std::string_view one_of(std::span<const std::string_view> words) const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] double finite() const;
  [[nodiscard]] double number() const;  // infinities, too, which are strings
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] std::size_t count() const;  // an integer of at least 0
  [[nodiscard]] std::vector<double> numbers() const;
  [[nodiscard]] std::vector<std::size_t> counts() const;

  // A list, entry by entry.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] JsonValue operator[](std::size_t entry) const;  // refused when there is none
  template <class Read>
  auto list(Read&& read) const {
    std::vector<std::decay_t<decltype(read((*this)[0]))>> result;
    result.reserve(size());
    for (std::size_t i = 0; i < size(); ++i) result.push_back(read((*this)[i]));
    return result;
  }
  // A list of exactly so many entries.
  [[nodiscard]] const JsonValue& of_size(std::size_t size) const;

  // An object, field by field; those that were not asked for are refused in the end.
  template <class Read>
  auto object(Read&& read) const;
  // An object whose names are free, such as sizes by dimension.
  [[nodiscard]] std::vector<std::pair<std::string, JsonValue>> entries() const;

 private:
  friend class JsonFields;
  JsonValue(const JsonValue& from, const Json& value)
      : document_(from.document_), value_(&value), name_(from.name_) {}
  [[noreturn]] void refuse_type(std::string_view expected) const;

  const Json* document_;
  const Json* value_;
  std::string_view name_;
};

// The fields of one object, each to be asked for by name. See JsonValue::object.
class JsonFields {
 public:
  explicit JsonFields(const JsonValue& object);
  // Refused when there is none.
  [[nodiscard]] JsonValue at(std::string_view field);
  // Nothing when there is none.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view field);
  [[nodiscard]] const JsonValue& object() const { return object_; }
  // Refuses the first field that was not asked for.
  void finish() const;

 private:
  JsonValue object_;
  std::vector<bool> asked_;
};

template <class Read>
auto JsonValue::object(Read&& read) const {
  JsonFields fields(*this);
  if constexpr (std::is_void_v<decltype(read(fields))>) {
    read(fields);
    fields.finish();
  } else {
    auto result = read(fields);
    fields.finish();
    return result;
  }
}

}  // namespace lipscope
