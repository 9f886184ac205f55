// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

namespace lipscope::app {

inline constexpr int kExitInterrupted = 130;

// A token that the first Ctrl-C or SIGTERM sets; the second one ends the program at once.
[[nodiscard]] std::stop_token stop_on_interrupt();

}  // namespace lipscope::app
