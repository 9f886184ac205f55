// SPDX-License-Identifier: Apache-2.0
#include "report/form.h"

#include <nlohmann/json.hpp>

namespace lipscope::app {

void text_form(const JsonValue& value) { (void)value.text(); }
void flag_form(const JsonValue& value) { (void)value.flag(); }
void whole_form(const JsonValue& value) { (void)value.integer(); }
void count_form(const JsonValue& value) { (void)value.count(); }
void real_form(const JsonValue& value) { (void)value.number(); }

void distance_form(const JsonValue& value) {
  if (!(value.number() >= 0)) value.refuse("expected a number of at least 0");
}

void measure_form(const JsonValue& value) {
  if (!value.is_text() || value.text() != "nan") (void)value.number();
}

Form or_null(Form form) {
  return [form = std::move(form)](const JsonValue& value) {
    if (!value.is_null()) form(value);
  };
}

Form either(Form texts, Form others) {
  return [texts = std::move(texts), others = std::move(others)](const JsonValue& value) {
    value.is_text() ? texts(value) : others(value);
  };
}

Form word_of(std::vector<std::string_view> words) {
  return [words = std::move(words)](const JsonValue& value) { (void)value.one_of(words); };
}

Form list_of(Form entry) {
  return [entry = std::move(entry)](const JsonValue& value) {
    for (std::size_t i = 0; i < value.size(); ++i) entry(value[i]);
  };
}

Form list_of(Form entry, std::size_t size) {
  return [entry = list_of(std::move(entry)), size](const JsonValue& value) {
    entry(value.of_size(size));
  };
}

Form table_of_form(Form entry) {
  return [entry = std::move(entry)](const JsonValue& value) {
    for (const auto& [name, one] : value.entries()) entry(one);
  };
}

Form object_of(FormFields required, FormFields optional) {
  return [required = std::move(required), optional = std::move(optional)](const JsonValue& value) {
    value.object([&](JsonFields& fields) {
      for (const auto& [name, form] : required) form(fields.at(name));
      for (const auto& [name, form] : optional) {
        if (const auto found = fields.find(name)) form(*found);
      }
    });
  };
}

}  // namespace lipscope::app
