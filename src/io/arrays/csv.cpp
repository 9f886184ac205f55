// SPDX-License-Identifier: Apache-2.0
// Comma-separated numbers, one row per line; '#' begins a comment, blank lines are skipped.
#include <charconv>
#include <cmath>

#include "io/arrays/formats.h"

namespace lipscope {
namespace {

constexpr std::string_view kBlank = " \t\r\f\v";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// One user at a time.
class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // byte order mark
  }

  Tensor parse() {
    while (!text_.empty()) parse_line(next_line());
    if (rows_ == 0) bad_file(name_, "no numbers in it; give a file with comma-separated numbers");
    return Tensor(ElementType::kFloat64, {rows_, columns_}, std::move(values_));
  }

 private:
  std::string_view next_line() {
    ++line_;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    std::string_view line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    line = line.substr(0, line.find('#'));
    return trimmed(line);
  }

  void parse_line(std::string_view line) {
    if (line.empty()) return;
    Index columns = 0;
    for (bool more = true; more; ++columns) {
      const std::size_t comma = line.find(',');
      values_.push_back(parse_number(trimmed(line.substr(0, comma))));
      more = comma != std::string_view::npos;
      if (more) line.remove_prefix(comma + 1);
    }
    if (rows_ == 0) {
      columns_ = columns;
      first_line_ = line_;
    }
    if (columns != columns_) {
      bad_file(name_, "line {}: {} numbers where line {} has {}; give every row the same number",
               line_, columns, first_line_, columns_);
    }
    ++rows_;
  }

  double parse_number(std::string_view field) const {
    std::string_view digits = field;
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    double value = 0.0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (stop != end || error == std::errc::invalid_argument) not_a_number(field);
    if (error == std::errc::result_out_of_range) return parse_extreme(field, digits);
    return value;
  }

  // from_chars does not say on which side a number is out of range; long double does.
  double parse_extreme(std::string_view field, std::string_view digits) const {
    long double value = 0.0L;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ec != std::errc() || std::fabs(value) > 1.0L) {
      bad_file(name_, "line {}: {} does not fit a float64; rescale the data", line_,
               in_quotes(field, 40));
    }
    return static_cast<double>(value);
  }

  [[noreturn]] void not_a_number(std::string_view field) const {
    if (field.empty()) bad_file(name_, "line {}: a field is empty; fill in a number", line_);
    std::string_view advice = "give numbers separated by commas";
    if (rows_ == 0 && field.find_first_of(" \t;") == std::string_view::npos) {
      advice = "remove the header line, or begin it with '#', and separate numbers by commas";
    }
    bad_file(name_, "line {}: {} is not a number; {}", line_, in_quotes(field, 40), advice);
  }

  std::string_view text_;
  const std::string& name_;
  std::vector<double> values_;
  Index rows_ = 0;
  Index columns_ = 0;
  Index line_ = 0;
  Index first_line_ = 0;
};

}  // namespace

Tensor parse_csv(Bytes bytes, const std::string& name) {
  return CsvParser(as_text(bytes), name).parse();
}

}  // namespace lipscope
