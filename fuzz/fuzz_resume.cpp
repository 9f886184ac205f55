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
  static const Json value{{"schema", "lipscope.certify-samples/1"},
                          {"model", std::string(64, 'a')},
                          {"data", std::string(64, 'b')},
                          {"norm", "2"},
                          {"attack", true},
                          {"parts", Json::array()},
                          {"seed", 1}};
  return value;
}

}  // namespace

std::vector<Input> seeds() {
  const std::string first = to_text(question()) + "\n";
  return {input(first),
          input(first + R"({"index":0,"radius":0.25,"method":"m","rival":1,"attack_radius":0.5}
{"index":7,"radius":"inf","method":"","rival":-1,"attack_radius":null}
{"index":3,"rad)"),
          input(first.substr(0, 40))};
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const app::LogLimits limits{.samples = 10, .classes = 3};
    const app::EarlierSamples found = app::read_samples(text, "log", fuzz::question(), limits);
    for (const auto& [index, decision] : found.decisions) {
      if (index < 0 || index >= limits.samples || !(decision.radius >= 0))
        throw std::logic_error("a sample that no run can have written");
    }
    if (app::read_samples(found.text, "log", fuzz::question(), limits).text != found.text)
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
