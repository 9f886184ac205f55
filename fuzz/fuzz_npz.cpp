// SPDX-License-Identifier: Apache-2.0
#include "driver.h"
#include "io/arrays/formats.h"

namespace lipscope::fuzz {

std::vector<Input> seeds() {
  const std::vector<NamedTensor> arrays = {{"x", Tensor::vector({1, 2, 3})},
                                           {"y", Tensor::integers({2}, {4, 5})}};
  return {input(write_npz(arrays)), input(write_npz(arrays, Compression::kDeflated)),
          input(write_npz({}))};
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] { (void)parse_npz(fuzz::bytes(data, size), "input", {}); });
}
