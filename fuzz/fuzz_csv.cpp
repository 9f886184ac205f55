// SPDX-License-Identifier: Apache-2.0
#include "driver.h"
#include "io/arrays/formats.h"

namespace lipscope::fuzz {

std::vector<Input> seeds() {
  return {input("1,2,3\n4,5,6\n"), input("# title\r\n1.5e-3, -inf\r\n\r\n+2,nan # end\r\n"),
          input("1e-400\n12345678901234567890\n.5\n")};
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] { (void)parse_csv(fuzz::bytes(data, size), "input"); });
}
