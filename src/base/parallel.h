// SPDX-License-Identifier: Apache-2.0
// The one place that knows about threads. Work is cut by problem size, never by thread count, so
// that results do not depend on how many threads there are.
#pragma once

#include <cstdint>
#include <functional>

namespace lipscope {

// Calls body(begin, end) on consecutive pieces of [0, n), each of at least `grain` indices, from
// several threads. Exceptions reach the caller.
void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

// Sets every thread pool of the process (OpenMP, OpenBLAS). 0: all cores.
void set_threads(int count);
[[nodiscard]] int threads();

// While alive, BLAS calls of this process run on one thread: for use around parallel regions of our
// own that call it.
class SerialBlas {
 public:
  SerialBlas();
  ~SerialBlas();
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;

 private:
  int threads_;
};

// While alive, OpenMP regions the current thread starts run on it alone.
class SerialOpenMp {
 public:
  SerialOpenMp();
  ~SerialOpenMp();
  SerialOpenMp(const SerialOpenMp&) = delete;
  SerialOpenMp& operator=(const SerialOpenMp&) = delete;

 private:
  int threads_;
};

}  // namespace lipscope
