// SPDX-License-Identifier: Apache-2.0
// The one place that knows about threads. Work is cut by problem size, never by thread count, so
// that results do not depend on how many threads there are.
#pragma once

#include <cstdint>
#include <functional>

namespace lipscope {

// Calls body(begin, end) on consecutive pieces of [0, n), each of at least `grain` indices, from
// several threads. Exceptions reach the caller: that of the first piece that has one. A loop inside
// a loop runs on its own thread alone.
void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

// How many threads parallel_for uses, in the whole process. 0: as many as the processors that this
// process may use, by its affinity and by the quota of its control group.
void set_threads(int count);
[[nodiscard]] int threads();
[[nodiscard]] int usable_processors();

}  // namespace lipscope
