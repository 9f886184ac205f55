// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace lipscope::app {

// Watches the resident memory of the process from a thread of its own, fifty times a second. Above
// the limit (bytes) it asks the command to stop with what it has; one that does not end within two
// seconds, or goes half as far again, is ended by `give_up`, which must not return.
void watch_memory(double limit, std::function<void()> give_up);

}  // namespace lipscope::app
