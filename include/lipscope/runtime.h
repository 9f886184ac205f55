// SPDX-License-Identifier: Apache-2.0
// What the library runs on: the processor, and the kernels with which OpenBLAS computes there.
#pragma once

#include <string>

namespace lipscope {

// OpenBLAS chooses its kernels when it is loaded, and a release older than the processor chooses
// old ones: several times slower. Where `recommended` differs from `chosen`, start the process with
// OPENBLAS_CORETYPE set to it, as the program `lipscope` does by itself. Bounds are proved with
// either.
struct BlasKernel {
  std::string chosen;       // "Prescott"
  std::string recommended;  // "SkylakeX"; `chosen` where there is nothing better
};
[[nodiscard]] BlasKernel blas_kernel();

// "Intel(R) Xeon(R) Processor, AVX-512"; empty where it is not known.
[[nodiscard]] std::string processor();

// "0.3.21", and how it was built.
[[nodiscard]] std::string blas_version();
[[nodiscard]] std::string blas_config();

}  // namespace lipscope
