// SPDX-License-Identifier: Apache-2.0
// Which kernels of OpenBLAS a processor should run.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lipscope {

// What the processor and the operating system support together.
struct ProcessorFeatures {
  std::string vendor;  // as CPUID says: "GenuineIntel"
  int family = 0;      // extended family included: 0x17 for the first Zen
  bool avx2 = false, fma = false;
  bool avx512 = false;  // F, DQ, BW, VL and CD
};

// The name for OPENBLAS_CORETYPE, or `chosen` where OpenBLAS did as well. `has` says which kernels
// this build of OpenBLAS holds.
[[nodiscard]] std::string_view recommended_kernel(const ProcessorFeatures& processor,
                                                  std::string_view chosen,
                                                  const std::function<bool(std::string_view)>& has);

[[nodiscard]] ProcessorFeatures processor_features();

}  // namespace lipscope
