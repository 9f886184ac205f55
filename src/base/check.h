// SPDX-License-Identifier: Apache-2.0
// Invariants of this library. A failed check is a defect here, never the user's fault.
#pragma once

#include <source_location>
#include <string_view>

namespace lipscope {

// Throws Error(kInternal) naming the place.
[[noreturn]] void check_failed(std::string_view condition,
                               std::source_location where = std::source_location::current());

}  // namespace lipscope

#define LIPSCOPE_CHECK(condition)           \
  do {                                      \
    if (!(condition)) [[unlikely]]          \
      ::lipscope::check_failed(#condition); \
  } while (false)
