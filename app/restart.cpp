// SPDX-License-Identifier: Apache-2.0
#include "restart.h"

#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lipscope/runtime.h"

// Chooses the kernels; does nothing the second time. Absent in builds of OpenBLAS with one kernel.
extern "C" __attribute__((weak)) void gotoblas_dynamic_init();

namespace lipscope::app {
namespace {

constexpr std::string_view kKernelVariable = "OPENBLAS_CORETYPE";
// "PROCESS NAME" of the process that was started again. Its number stays the same, so that nobody
// else takes the variable for its own; its name, by which ps knows it, would become "exe".
constexpr std::string_view kGuard = "LIPSCOPE_RESTARTED";

std::string own_number() { return std::to_string(getpid()) + " "; }

// The value of a variable; null if there is none.
const char* value_in(char** environment, std::string_view name) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('='))
      return *environment + name.size() + 1;
  }
  return nullptr;
}

bool was_restarted(const char* guard) {
  return guard != nullptr && std::string_view(guard).starts_with(own_number());
}

std::string setting(std::string_view name, const std::string& value) {
  return std::string(name) + "=" + value;
}

void start_again(char** argv, char** environment, const std::string& kernel) {
  std::array<char, 16> name{};
  prctl(PR_GET_NAME, name.data());
  std::string guard = setting(kGuard, own_number() + name.data());
  std::string variable = setting(kKernelVariable, kernel);
  std::vector<char*> all{guard.data(), variable.data()};
  while (*environment != nullptr) all.push_back(*environment++);
  all.push_back(nullptr);
  execve("/proc/self/exe", argv, all.data());  // the program goes on where there is no /proc
}

// Runs before the constructors of all libraries: the C library has no environment of its own yet.
void restart_with_right_kernel(int /*argc*/, char** argv, char** environment) {
  if (gotoblas_dynamic_init == nullptr || value_in(environment, kKernelVariable) != nullptr) return;
  if (was_restarted(value_in(environment, kGuard))) return;
  // Without an interpreter the file that runs is the dynamic loader, and this program its argument.
  if (getauxval(AT_BASE) == 0) return;
  gotoblas_dynamic_init();
  const BlasKernel kernel = blas_kernel();
  if (kernel.recommended != kernel.chosen) start_again(argv, environment, kernel.recommended);
}

__attribute__((section(".preinit_array"),
               used)) void (*const before_libraries)(int, char**,
                                                     char**) = restart_with_right_kernel;

}  // namespace

void forget_restart() {
  const char* const guard = std::getenv(kGuard.data());
  if (!was_restarted(guard)) return;
  prctl(PR_SET_NAME, guard + own_number().size());
  unsetenv(kGuard.data());
  unsetenv(kKernelVariable.data());
}

}  // namespace lipscope::app
