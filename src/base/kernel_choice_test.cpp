// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_choice.h"

#include <gtest/gtest.h>

#include "lipscope/runtime.h"

namespace lipscope {
namespace {

ProcessorFeatures intel(bool avx2, bool avx512) {
  return {.vendor = "GenuineIntel", .family = 6, .avx2 = avx2, .fma = avx2, .avx512 = avx512};
}
ProcessorFeatures amd(int family, bool avx512 = false) {
  return {.vendor = "AuthenticAMD", .family = family, .avx2 = true, .fma = true, .avx512 = avx512};
}
bool all_kernels(std::string_view) { return true; }

struct KernelCase {
  ProcessorFeatures processor;
  std::string_view chosen, recommended;
};

TEST(KernelChoice, TakesTheWidestVectorsOfTheProcessor) {
  const std::vector<KernelCase> table{
      {intel(true, true), "Prescott", "SkylakeX"},
      {intel(true, true), "Nehalem", "SkylakeX"},
      {intel(true, true), "Sandybridge", "SkylakeX"},
      {intel(true, true), "Haswell", "SkylakeX"},
      {intel(true, false), "Prescott", "Haswell"},
      {intel(true, false), "Sandybridge", "Haswell"},
      {amd(0x17), "Prescott", "Zen"},
      {amd(0x19), "Barcelona", "Zen"},
      {amd(0x19, true), "Zen", "SkylakeX"},
      {amd(0x1A, true), "Prescott", "SkylakeX"},
      {{.vendor = "HygonGenuine", .family = 0x18, .avx2 = true, .fma = true}, "Prescott", "Zen"}};
  for (const KernelCase& row : table) {
    EXPECT_EQ(recommended_kernel(row.processor, row.chosen, all_kernels), row.recommended)
        << row.processor.vendor << " " << row.chosen;
  }
}

TEST(KernelChoice, KeepsWhatIsAsGood) {
  const std::vector<KernelCase> table{
      {intel(true, true), "SkylakeX", "SkylakeX"},
      {intel(true, true), "Cooperlake", "Cooperlake"},
      {intel(true, true), "Sapphirerapids", "Sapphirerapids"},
      {intel(true, false), "Haswell", "Haswell"},
      {intel(true, false), "Zen", "Zen"},
      {intel(true, false), "SkylakeX", "SkylakeX"},  // it knows better
      {intel(false, false), "Prescott", "Prescott"},
      {intel(false, false), "Sandybridge", "Sandybridge"},
      {amd(0x17), "Zen", "Zen"},
      {amd(0x17), "Haswell", "Haswell"},
      {amd(0x15), "Excavator", "Excavator"},
      {amd(0x15), "Prescott", "Prescott"},
      {{.vendor = "CentaurHauls", .family = 7, .avx2 = true, .fma = true}, "Nehalem", "Nehalem"},
      {{.vendor = "GenuineIntel", .family = 6, .avx2 = true}, "Prescott", "Prescott"},  // no FMA
      {{.vendor = "GenuineIntel", .family = 6, .avx512 = true}, "Prescott", "Prescott"},
      {{}, "Prescott", "Prescott"},
      {intel(true, true), "Graniterapids", "Graniterapids"},
      {intel(true, true), "armv8", "armv8"},
      {intel(true, true), "", ""}};
  for (const KernelCase& row : table) {
    EXPECT_EQ(recommended_kernel(row.processor, row.chosen, all_kernels), row.recommended)
        << row.processor.vendor << " " << row.chosen;
  }
}

TEST(KernelChoice, NamesNoKernelThatTheBuildLacks) {
  const auto no_avx512 = [](std::string_view kernel) { return kernel != "SkylakeX"; };
  const auto only_haswell = [](std::string_view kernel) { return kernel == "Haswell"; };
  const auto nothing = [](std::string_view) { return false; };
  EXPECT_EQ(recommended_kernel(intel(true, true), "Prescott", no_avx512), "Haswell");
  EXPECT_EQ(recommended_kernel(intel(true, true), "Haswell", no_avx512), "Haswell");
  EXPECT_EQ(recommended_kernel(amd(0x19, true), "Prescott", no_avx512), "Zen");
  EXPECT_EQ(recommended_kernel(amd(0x19), "Prescott", only_haswell), "Haswell");
  EXPECT_EQ(recommended_kernel(intel(true, true), "Prescott", nothing), "Prescott");
}

TEST(KernelChoice, TellsWhatThisProcessRunsOn) {
  const BlasKernel kernel = blas_kernel();
  EXPECT_FALSE(kernel.chosen.empty());
  EXPECT_FALSE(kernel.recommended.empty());
  EXPECT_NE(blas_config().find(blas_version()), std::string::npos);
  EXPECT_TRUE(std::isdigit(static_cast<unsigned char>(blas_version()[0]))) << blas_version();
#ifdef __x86_64__
  EXPECT_FALSE(processor().empty());
  EXPECT_GT(processor_features().family, 0);
#endif
}

}  // namespace
}  // namespace lipscope
