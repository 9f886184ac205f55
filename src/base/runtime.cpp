// SPDX-License-Identifier: Apache-2.0
#include "lipscope/runtime.h"

#include <cblas.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <array>
#include <cstring>

#include "base/kernel_choice.h"

// The kernels of an OpenBLAS that has several; null where the build lacks one.
extern "C" {
extern __attribute__((weak)) char gotoblas_HASWELL;
extern __attribute__((weak)) char gotoblas_ZEN;
extern __attribute__((weak)) char gotoblas_SKYLAKEX;
}

namespace lipscope {
namespace {

bool blas_has(std::string_view kernel) {
  if (kernel == "Haswell") return &gotoblas_HASWELL != nullptr;
  if (kernel == "Zen") return &gotoblas_ZEN != nullptr;
  if (kernel == "SkylakeX") return &gotoblas_SKYLAKEX != nullptr;
  return false;
}

#ifdef __x86_64__
using Registers = std::array<unsigned, 4>;  // eax, ebx, ecx, edx

Registers cpuid(unsigned leaf) {
  Registers r{};
  if (__get_cpuid(leaf, &r[0], &r[1], &r[2], &r[3]) == 0) return {};
  return r;
}

void append_bytes(std::string& text, unsigned bytes) {
  std::array<char, sizeof bytes> characters{};
  std::memcpy(characters.data(), &bytes, sizeof bytes);
  text.append(characters.data(), characters.size());
}

std::string brand() {
  std::string text;
  for (const unsigned leaf : {0x80000002U, 0x80000003U, 0x80000004U}) {
    for (const unsigned r : cpuid(leaf)) append_bytes(text, r);
  }
  text.resize(std::strlen(text.c_str()));
  const std::size_t from = text.find_first_not_of(' '), to = text.find_last_not_of(' ');
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}
#endif

}  // namespace

#ifdef __x86_64__
ProcessorFeatures processor_features() {
  ProcessorFeatures p;
  const Registers names = cpuid(0);
  for (const unsigned r : {names[1], names[3], names[2]}) append_bytes(p.vendor, r);
  const unsigned signature = cpuid(1)[0], family = signature >> 8 & 0xF;
  p.family = static_cast<int>(family == 0xF ? family + (signature >> 20 & 0xFF) : family);
  // These look at what the operating system saves, too.
  __builtin_cpu_init();
  p.avx2 = __builtin_cpu_supports("avx2") != 0;
  p.fma = __builtin_cpu_supports("fma") != 0;
  p.avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
             __builtin_cpu_supports("avx512cd") != 0;
  return p;
}

std::string processor() {
  const ProcessorFeatures p = processor_features();
  const char* const vectors = p.avx512 ? "AVX-512" : p.avx2 ? "AVX2" : "SSE";
  const std::string name = brand();
  return (name.empty() ? p.vendor : name) + ", " + vectors;
}
#else
ProcessorFeatures processor_features() { return {}; }
std::string processor() { return {}; }
#endif

BlasKernel blas_kernel() {
  const std::string chosen = openblas_get_corename();
  return {chosen, std::string(recommended_kernel(processor_features(), chosen, blas_has))};
}

std::string blas_config() { return openblas_get_config(); }

// "OpenBLAS 0.3.21 NO_LAPACKE ..."
std::string blas_version() {
  const std::string config = blas_config();
  const std::size_t from = config.find(' ') + 1;
  return config.substr(from, config.find(' ', from) - from);
}

}  // namespace lipscope
