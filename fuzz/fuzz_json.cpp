// SPDX-License-Identifier: Apache-2.0
// The strict reader: what it accepts is written and read again as the same document.
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "driver.h"
#include "json_mutations.h"

namespace lipscope::fuzz {

std::vector<Input> seeds() {
  return {input(R"({"a":[1,-2,0.5,-0,1e308,"x\u00e9\n",null,true],"b":{"c":[[],{}]}})"), input("3"),
          input(R"([9007199254740993,18446744073709551615,-9223372036854775808,"inf"])")};
}

namespace {

// Asks for every value as every type.
void read_all(const JsonValue& value) {
  const auto attempt = [](auto&& read) {
    try {
      read();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadFile) throw;
    }
  };
  attempt([&] { (void)value.text(); });
  attempt([&] { (void)value.number(); });
  attempt([&] { (void)value.count(); });
  attempt([&] {
    for (std::size_t i = 0; i < value.size(); ++i) read_all(value[i]);
  });
  attempt([&] {
    for (const auto& [name, entry] : value.entries()) read_all(entry);
  });
}

}  // namespace
}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const Json document = parse_json(text, "input", {.values = 2000});
    if (size < 2000) fuzz::read_all(JsonValue(document, "input"));
    const std::string written = to_text(document);
    if (to_text(parse_json(written, "again")) != written)
      throw std::logic_error("a document that is another one when written and read again");
    (void)to_canonical_text(document);
  });
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return lipscope::fuzz::mutate_text(data, size, max_size, seed);
}
