// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_choice.h"

#include <algorithm>
#include <array>

namespace lipscope {
namespace {

enum class Vectors { kUnknown, kSse, kAvx, kAvx2, kAvx512 };

struct KernelRow {
  std::string_view name;
  Vectors vectors;
};

// The names of OpenBLAS for x86, with the widest vectors their kernels use.
constexpr std::array kKernels{
    KernelRow{"Katmai", Vectors::kSse},        KernelRow{"Coppermine", Vectors::kSse},
    KernelRow{"Northwood", Vectors::kSse},     KernelRow{"Prescott", Vectors::kSse},
    KernelRow{"Banias", Vectors::kSse},        KernelRow{"Atom", Vectors::kSse},
    KernelRow{"Core2", Vectors::kSse},         KernelRow{"Penryn", Vectors::kSse},
    KernelRow{"Dunnington", Vectors::kSse},    KernelRow{"Nehalem", Vectors::kSse},
    KernelRow{"Athlon", Vectors::kSse},        KernelRow{"Opteron", Vectors::kSse},
    KernelRow{"Opteron_SSE3", Vectors::kSse},  KernelRow{"Barcelona", Vectors::kSse},
    KernelRow{"Nano", Vectors::kSse},          KernelRow{"Bobcat", Vectors::kSse},
    KernelRow{"Sandybridge", Vectors::kAvx},   KernelRow{"Bulldozer", Vectors::kAvx},
    KernelRow{"Piledriver", Vectors::kAvx},    KernelRow{"Steamroller", Vectors::kAvx},
    KernelRow{"Excavator", Vectors::kAvx},     KernelRow{"Haswell", Vectors::kAvx2},
    KernelRow{"Zen", Vectors::kAvx2},          KernelRow{"SkylakeX", Vectors::kAvx512},
    KernelRow{"Cooperlake", Vectors::kAvx512}, KernelRow{"Sapphirerapids", Vectors::kAvx512}};

Vectors vectors_of(std::string_view kernel) {
  const auto* const row = std::ranges::find(kKernels, kernel, &KernelRow::name);
  return row == kKernels.end() ? Vectors::kUnknown : row->vectors;
}

// Of the processors with AVX2 before Zen, AMD's have FMA4, for which OpenBLAS has kernels.
bool is_zen(const ProcessorFeatures& processor) {
  return (processor.vendor == "AuthenticAMD" || processor.vendor == "HygonGenuine") &&
         processor.family >= 0x17;
}

}  // namespace

std::string_view recommended_kernel(const ProcessorFeatures& processor, std::string_view chosen,
                                    const std::function<bool(std::string_view)>& has) {
  const Vectors now = vectors_of(chosen);
  if (now == Vectors::kUnknown) return chosen;  // newer than this table, or no x86
  const bool fused = processor.avx2 && processor.fma;
  const auto better = [&](std::string_view name) { return now < vectors_of(name) && has(name); };
  if (fused && processor.avx512 && better("SkylakeX")) return "SkylakeX";
  if (fused && processor.vendor == "GenuineIntel" && better("Haswell")) return "Haswell";
  if (fused && is_zen(processor)) {
    if (better("Zen")) return "Zen";
    if (better("Haswell")) return "Haswell";
  }
  return chosen;
}

}  // namespace lipscope
