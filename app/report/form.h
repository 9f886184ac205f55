// SPDX-License-Identifier: Apache-2.0
// What a value of a document may be, put together from small forms:
//
//   const Form point = object_of({{"x", real_form}}, {{"name", text_form}});
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.h"

namespace lipscope::app {

// Refuses a value of another form: kBadFile with the way to it.
using Form = std::function<void(const JsonValue&)>;
using FormFields = std::vector<std::pair<std::string_view, Form>>;

void text_form(const JsonValue& value);
void flag_form(const JsonValue& value);
void whole_form(const JsonValue& value);     // an integer
void count_form(const JsonValue& value);     // of at least 0
void real_form(const JsonValue& value);      // a number or an infinity
void distance_form(const JsonValue& value);  // of at least 0
void measure_form(const JsonValue& value);   // the same, or "nan"

[[nodiscard]] Form or_null(Form form);
[[nodiscard]] Form either(Form texts, Form others);  // by whether it is a string
[[nodiscard]] Form word_of(std::vector<std::string_view> words);
[[nodiscard]] Form list_of(Form entry);
[[nodiscard]] Form list_of(Form entry, std::size_t size);
// Free names, one form.
[[nodiscard]] Form table_of_form(Form entry);
// The first have to be there, the others may; no field besides.
[[nodiscard]] Form object_of(FormFields required, FormFields optional);

// Refuses, naming the place, what is no result this program can have written: another kind or
// version, a field that is unknown or of another type, or one without which it says nothing.
void check_result_form(const JsonValue& document);

}  // namespace lipscope::app
