// SPDX-License-Identifier: Apache-2.0
#include "driver.h"
#include "io/arrays/formats.h"

namespace lipscope::fuzz {

std::vector<Input> seeds() {
  const Tensor matrix(ElementType::kFloat16, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  const std::string fortran_file =
      std::string("\x93NUMPY\x02", 7) + std::string("\0\x38\0\0\0", 5) +
      "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2)}" + "abcdefgh";
  return {input(write_npy(matrix)), input(write_npy(Tensor::scalar(1))),
          input(write_npy(Tensor::zeros(ElementType::kBool, {0, 3}))), input(fortran_file)};
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] { (void)parse_npy(fuzz::bytes(data, size), "input"); });
}
