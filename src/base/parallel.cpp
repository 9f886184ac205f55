// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <cblas.h>
#include <omp.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <memory>
#include <thread>

namespace lipscope {

void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (n <= 0) return;
  if (n <= grain) return body(0, n);
  tbb::parallel_for(
      tbb::blocked_range<std::int64_t>(0, n, static_cast<std::size_t>(grain)),
      [&](const tbb::blocked_range<std::int64_t>& part) { body(part.begin(), part.end()); });
}

void set_threads(int count) {
  static std::unique_ptr<tbb::global_control> limit;
  if (count <= 0) count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  limit.reset();
  limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                static_cast<std::size_t>(count));
  openblas_set_num_threads(count);
  omp_set_num_threads(count);
}

SerialBlas::SerialBlas() : threads_(openblas_get_num_threads()) { openblas_set_num_threads(1); }
SerialBlas::~SerialBlas() { openblas_set_num_threads(threads_); }

SerialOpenMp::SerialOpenMp() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
SerialOpenMp::~SerialOpenMp() { omp_set_num_threads(threads_); }

}  // namespace lipscope
