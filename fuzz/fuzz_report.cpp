// SPDX-License-Identifier: Apache-2.0
// Result documents as `report` reads and draws them, from the results in seeds/report.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "driver.h"
#include "json_mutations.h"
#include "report/report.h"

namespace lipscope::fuzz {

std::vector<Input> seeds() {
  std::vector<Input> results;
  for (const auto& entry : std::filesystem::directory_iterator(LIPSCOPE_FUZZ_SEEDS "/report")) {
    std::ifstream file(entry.path(), std::ios::binary);
    results.push_back(input(std::string{std::istreambuf_iterator<char>(file), {}}));
  }
  return results;
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const app::Report report = app::make_report(parse_json(text, "input"), "input");
    (void)app::to_html(report);
    (void)app::to_markdown(report);
    (void)app::to_csv(report);
    (void)app::to_svg(report);
  });
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return lipscope::fuzz::mutate_text(data, size, max_size, seed);
}
