// SPDX-License-Identifier: Apache-2.0
#include "driver.h"
#include "io/arrays/formats.h"

namespace lipscope::fuzz {

std::vector<Input> seeds() {
  using namespace std::string_view_literals;
  return {input("\0\0\x08\x02\0\0\0\x02\0\0\0\x02wxyz"sv), input("\0\0\x0d\x01\0\0\0\x01wxyz"sv),
          input("\0\0\x0e\0abcdefgh"sv), input("\0\0\x0b\x01\0\0\0\0"sv)};
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] { (void)parse_idx(fuzz::bytes(data, size), "input"); });
}
