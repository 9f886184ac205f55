// SPDX-License-Identifier: Apache-2.0
#include "driver.h"
#include "io/arrays/gzip.h"

namespace lipscope::fuzz {

std::vector<Input> seeds() {
  const Input text = input("some text, some text, some text");
  const auto raw = std::as_bytes(std::span(text));
  const std::vector<std::byte> once = deflate_bytes(raw, DeflateFormat::kGzip);
  std::vector<std::byte> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  const std::vector<std::byte> zeros(100000);
  return {input(once), input(twice), input(deflate_bytes(zeros, DeflateFormat::kGzip))};
}

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] { (void)gunzip_if_gzip(fuzz::bytes(data, size), "input", 1U << 24U); });
}
