// SPDX-License-Identifier: Apache-2.0
// Files of earlier samples, as `certify --resume` reads them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "driver.h"
#include "json_mutations.h"
#include "sample_log.h"

namespace lipscope::fuzz {
namespace {

const Json& question() {
  static const Json value{{"schema", "lipscope.certify-samples/2"},
                          {"model", std::string(64, 'a')},
                          {"norm", "2"},
                          {"parts", Json::array()},
                          {"seed", 1}};
  return value;
}

}  // namespace

std::vector<Input> seeds() {
  const std::string asked = to_text(question()), first = asked + "\n";
  SampleWork done{.decision = {.radius = 0.25, .method = "m", .rival = 1, .attack_radius = 0.5},
                  .attacked = true,
                  .complete = true};
  SampleWork open{.decision = {.radius = 0.125, .method = "", .rival = -1}, .whole_failed = 0.5};
  const std::string lines = app::sample_line(asked, std::string(32, 'a'), done) +
                            app::sample_line(asked, std::string(32, 'b'), open);
  return {input(first), input(first + lines + R"({"sample":"c","rad)"), input(first.substr(0, 40))};
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    constexpr Index kClasses = 3;
    const app::EarlierSamples found = app::read_samples(text, "log", fuzz::question(), kClasses);
    for (const auto& [sample, work] : found.samples) {
      if (work.decision.rival >= kClasses || !(work.decision.radius >= 0))
        throw std::logic_error("a sample that no run can have written");
    }
    if (app::read_samples(found.text, "log", fuzz::question(), kClasses).text != found.text)
      throw std::logic_error("a file that is refused when it is kept");
  });
}

// One of the lines changes.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace lipscope::fuzz;
  Input all(data, data + size);
  const auto lines = static_cast<unsigned>(std::count(all.begin(), all.end(), '\n'));
  auto begin = all.begin();
  for (unsigned skip = lines == 0 ? 0 : seed % lines; skip > 0; --skip)
    begin = std::find(begin, all.end(), '\n') + 1;
  const auto end = std::find(begin, all.end(), '\n');
  Input line(begin, end);
  const Input rest(end, all.end());
  line.resize(max_size);
  line.resize(mutate_text(line.data(), static_cast<std::size_t>(end - begin), max_size, seed));
  all.erase(begin, all.end());
  all.insert(all.end(), line.begin(), line.end());
  all.insert(all.end(), rest.begin(), rest.end());
  if (all.size() > max_size) return size;
  std::copy(all.begin(), all.end(), data);
  return all.size();
}
