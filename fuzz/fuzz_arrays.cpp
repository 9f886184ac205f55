// SPDX-License-Identifier: Apache-2.0
#include "driver.h"
#include "io/arrays/formats.h"
#include "io/arrays/gzip.h"

namespace lipscope::fuzz {

std::vector<Input> seeds() {
  using namespace std::string_view_literals;
  const std::vector<std::byte> npy = write_npy(Tensor::vector({1, 2, 3}));
  const std::vector<NamedTensor> arrays = {{"x", Tensor::scalar(1)}, {"y", Tensor::vector({2})}};
  const std::vector<std::byte> npz = write_npz(arrays, Compression::kDeflated);
  const std::vector<std::byte> cifar(2 * 3073, std::byte{7});
  return {input(npy),
          input(npz),
          input(cifar),
          input("1,2\n3,4\n"),
          input("\0\0\x08\x01\0\0\0\x02wx"sv),
          input(deflate_bytes(npy, DeflateFormat::kGzip)),
          input(deflate_bytes(npz, DeflateFormat::kGzip))};
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] { (void)parse_arrays(fuzz::bytes(data, size), "input"); });
}
