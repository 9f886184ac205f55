// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace lipscope::app {

// Sets the memory limit of the process (bytes) and watches its resident memory from a thread of its
// own: for memory that operator new does not see, such as small blocks and buffers of libraries.
// Above the limit, checkpoint() ends what runs. What does not end within two seconds, or goes 5 %
// and some megabytes beyond the limit, is ended by `give_up`, which must not return. Throws
// kUnsupported where the limit leaves no room to work.
void keep_memory_limit(double limit, std::function<void()> give_up);

}  // namespace lipscope::app
