// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

// Reasons may quote the document.
[[noreturn]] void bad_json(std::string_view name, std::string_view path, std::string_view why) {
  throw Error(ErrorCode::kBadFile,
              one_line(path.empty() ? fmt::format("{}: {}", name, why)
                                    : fmt::format("{}: {}: {}", name, path, why)));
}

using JsonMembers = std::vector<Json::object_t::value_type>;  // what an ordered object is

void extend_path(std::string& path, std::string_view key) {
  if (!path.empty()) path += '.';
  path += printable(key);
}
void extend_path(std::string& path, std::size_t index) { path += fmt::format("[{}]", index); }

// What the parser tells, made into a value. It does not recurse, and neither does its source.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, std::string_view name, const JsonLimits& limits)
      : text_(text), name_(name), limits_(limits) {}

  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  // A minus sign brings a number here: zero is -0.
  bool number_integer(std::int64_t value) { return value == 0 ? add(-0.0) : add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string& digits) {
    const std::string_view mantissa =
        std::string_view(digits).substr(0, digits.find_first_of("eE"));
    if (value == 0 && mantissa.find_first_of("123456789") != std::string_view::npos)
      refuse("a number that no double comes near");
    return add(value);
  }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // no JSON
  bool key(std::string& name) {
    open_.back()->get_ref<Json::object_t&>().emplace_back(std::move(name), Json());
    return true;
  }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return open_.pop_back(), true; }
  bool end_object() {
    names_.clear();
    for (const auto& [name, value] : open_.back()->get_ref<const Json::object_t&>())
      names_.push_back(name);
    std::ranges::sort(names_);
    if (const auto twice = std::ranges::adjacent_find(names_); twice != names_.end()) {
      refuse(fmt::format("the field {} is there twice", in_quotes(*twice)), Place::kOpen);
    }
    return open_.pop_back(), true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) {
    constexpr int kBeyondDouble = 406;
    if (error.id == kBeyondDouble) refuse("a number beyond the largest double");
    if (position > text_.size()) bad_json(name_, "", "truncated; copy or make the file again");
    const std::string_view before = text_.substr(0, position == 0 ? 0 : position - 1);
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    bad_json(name_, "",
             fmt::format("not JSON: line {}, column {}", 1 + std::ranges::count(before, '\n'),
                         before.size() - line_start + 1));
  }

 private:
  Json* place(Json&& value) {
    if (++values_ > limits_.values) refuse(fmt::format("more than {} values", limits_.values));
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent.get_ref<Json::object_t&>().back().second = std::move(value));
  }
  bool add(Json&& value) { return place(std::move(value)), true; }
  bool open(Json&& value) {
    if (open_.size() == limits_.depth)
      bad_json(name_, "", fmt::format("more than {} brackets in each other", limits_.depth));
    open_.push_back(place(std::move(value)));
    return true;
  }
  // The bracket opened last, or the value that comes next in it.
  enum class Place : std::uint8_t { kOpen, kNext };
  [[noreturn]] void refuse(std::string_view why, Place place = Place::kNext) const {
    std::string path;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const bool last = i + 1 == open_.size();
      if (last && place == Place::kOpen) break;
      if (open_[i]->is_array()) {
        extend_path(path, open_[i]->size() - (last ? 0 : 1));
      } else {
        extend_path(path, open_[i]->get_ref<const Json::object_t&>().back().first);
      }
    }
    bad_json(name_, path, why);
  }

  std::string_view text_, name_;
  const JsonLimits& limits_;
  Json root_;
  std::vector<Json*> open_;
  std::vector<std::string_view> names_;
  std::size_t values_ = 0;
};

std::string_view type_text(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "a boolean";
    default: return "a number";
  }
}

// Documents are not deep.
bool find_path(const Json& from, const Json* value, std::string& path) {
  if (&from == value) return true;
  const std::size_t length = path.size();
  const auto try_entry = [&](const auto& place, const Json& entry) {
    extend_path(path, place);
    if (find_path(entry, value, path)) return true;
    path.resize(length);
    return false;
  };
  if (from.is_object()) {
    for (const auto& [key, entry] : from.get_ref<const Json::object_t&>()) {
      if (try_entry(key, entry)) return true;
    }
  }
  if (from.is_array()) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (try_entry(i, from[i])) return true;
    }
  }
  return false;
}

// The double that an integer is.
std::optional<double> exact_double(const Json& value) {
  constexpr double kEnd = 0x1p63;
  if (value.is_number_unsigned()) {
    const auto whole = value.get<std::uint64_t>();
    const auto rounded = static_cast<double>(whole);
    const bool exact = rounded < 2 * kEnd && static_cast<std::uint64_t>(rounded) == whole;
    return exact ? std::optional(rounded) : std::nullopt;
  }
  const auto whole = value.get<std::int64_t>();
  const auto rounded = static_cast<double>(whole);
  const bool exact = rounded < kEnd && static_cast<std::int64_t>(rounded) == whole;
  return exact ? std::optional(rounded) : std::nullopt;
}

}  // namespace

Json parse_json(std::string_view text, std::string_view name, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    bad_json(name, "", fmt::format("{} bytes; {} are read at most", text.size(), limits.bytes));
  }
  // The parser takes a zero byte for the end.
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos)
    bad_json(name, "", fmt::format("not JSON: byte {} is zero", zero));
  JsonBuilder builder(text, name, limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) bad_json(name, "", "not JSON");
  return builder.take();
}

void JsonValue::refuse(std::string_view why) const {
  std::string path;
  find_path(*document_, value_, path);
  bad_json(name_, path, why);
}

void JsonValue::refuse_type(std::string_view expected) const {
  refuse(fmt::format("expected {}, found {}", expected, type_text(*value_)));
}

bool JsonValue::is_null() const { return value_->is_null(); }
bool JsonValue::is_text() const { return value_->is_string(); }
bool JsonValue::is_object() const { return value_->is_object(); }

const std::string& JsonValue::text() const {
  if (!value_->is_string()) refuse_type("a string");
  return value_->get_ref<const std::string&>();
}

std::string JsonValue::text_or_null() const {
  if (value_->is_null()) return "";
  if (!value_->is_string()) refuse_type("a string or null");
  return value_->get<std::string>();
}

std::string_view JsonValue::one_of(std::span<const std::string_view> words) const {
  const auto found = std::ranges::find(words, text());
  if (found == words.end()) {
    refuse(fmt::format("{} is none of '{}'", in_quotes(text()), fmt::join(words, "', '")));
  }
  return *found;
}

bool JsonValue::flag() const {
  if (!value_->is_boolean()) refuse_type("true or false");
  return value_->get<bool>();
}

double JsonValue::finite() const {
  if (!value_->is_number()) refuse_type("a number");
  if (value_->is_number_float()) return value_->get<double>();
  const auto exact = exact_double(*value_);
  if (!exact) refuse("an integer that is no double");
  return *exact;
}

double JsonValue::number() const {
  if (!value_->is_string() && !value_->is_number()) refuse_type("a number, \"inf\" or \"-inf\"");
  if (!value_->is_string()) return finite();
  if (text() == "inf") return std::numeric_limits<double>::infinity();
  if (text() == "-inf") return -std::numeric_limits<double>::infinity();
  refuse(fmt::format("{} is no number", in_quotes(text())));
}

std::int64_t JsonValue::integer() const {
  if (!value_->is_number_integer()) {
    value_->is_number() ? refuse("expected a whole number") : refuse_type("a whole number");
  }
  if (value_->is_number_unsigned() &&
      value_->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    refuse("a whole number beyond 2^63");
  return value_->get<std::int64_t>();
}

std::size_t JsonValue::count() const {
  const std::int64_t value = integer();
  if (value < 0) refuse("expected a whole number of at least 0");
  return static_cast<std::size_t>(value);
}

std::vector<double> JsonValue::numbers() const {
  return list([](const JsonValue& entry) { return entry.number(); });
}

std::vector<std::size_t> JsonValue::counts() const {
  return list([](const JsonValue& entry) { return entry.count(); });
}

std::size_t JsonValue::size() const {
  if (!value_->is_array()) refuse_type("an array");
  return value_->size();
}

JsonValue JsonValue::operator[](std::size_t entry) const {
  if (entry >= size()) refuse(fmt::format("there is no entry {}", entry));
  return {*this, (*value_)[entry]};
}

const JsonValue& JsonValue::of_size(std::size_t expected) const {
  if (size() != expected) refuse(fmt::format("expected {} entries, found {}", expected, size()));
  return *this;
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::entries() const {
  if (!value_->is_object()) refuse_type("an object");
  std::vector<std::pair<std::string, JsonValue>> result;
  for (const auto& [key, entry] : value_->get_ref<const Json::object_t&>())
    result.emplace_back(key, JsonValue(*this, entry));
  return result;
}

JsonFields::JsonFields(const JsonValue& object) : object_(object) {
  if (!object.is_object()) object.refuse_type("an object");
  asked_.resize(object.json().size());
}

std::optional<JsonValue> JsonFields::find(std::string_view field) {
  const JsonMembers& members = object_.json().get_ref<const Json::object_t&>();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].first != field) continue;
    asked_[i] = true;
    return JsonValue(object_, members[i].second);
  }
  return std::nullopt;
}

JsonValue JsonFields::at(std::string_view field) {
  const auto found = find(field);
  if (!found) object_.refuse(fmt::format("there is no field '{}'", field));
  return *found;
}

void JsonFields::finish() const {
  const JsonMembers& members = object_.json().get_ref<const Json::object_t&>();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!asked_[i]) object_.refuse(fmt::format("unknown field {}", in_quotes(members[i].first)));
  }
}

}  // namespace lipscope
