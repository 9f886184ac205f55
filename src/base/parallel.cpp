// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

// Of OpenBLAS with threads of its own; absent in its other builds.
extern "C" __attribute__((weak)) int blas_thread_shutdown_();

namespace lipscope {
namespace {

std::atomic<int>& thread_count() {
  static std::atomic<int> count =
      static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return count;
}

#ifdef __SANITIZE_THREAD__
// The thread sanitizer does not see how OpenMP's runtime orders its threads.
thread_local bool in_team = false;
bool in_parallel() { return in_team; }
void run_pieces(std::int64_t pieces, const std::function<void(std::int64_t)>& piece) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::jthread> team;
  for (int t = 0; t < thread_count(); ++t) {
    team.emplace_back([&] {
      in_team = true;
      for (std::int64_t p = next++; p < pieces; p = next++) piece(p);
    });
  }
}
#else
bool in_parallel() { return omp_in_parallel() != 0; }
void run_pieces(std::int64_t pieces, const std::function<void(std::int64_t)>& piece) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(thread_count().load())
  for (std::int64_t p = 0; p < pieces; ++p) piece(p);
}
#endif

}  // namespace

// OpenMP, because oneDNN brings its threads anyway and they are awake when a short loop comes; a
// second pool would have to be woken each time. A loop inside a loop runs on its own thread alone.
void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (n <= 0) return;
  if (n <= grain || thread_count() == 1 || in_parallel()) return body(0, n);
  constexpr std::int64_t kMostPieces = 64;
  const std::int64_t pieces =
      std::min((n + grain - 1) / std::max<std::int64_t>(grain, 1), kMostPieces);
  std::exception_ptr failure;
  std::mutex mutex;
  run_pieces(pieces, [&](std::int64_t p) {
    try {
      body(n * p / pieces, n * (p + 1) / pieces);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void set_threads(int count) {
  if (count <= 0) count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  thread_count() = count;
  openblas_set_num_threads(count);
  // Its threads start with the program and look for work until told otherwise.
  if (count == 1 && blas_thread_shutdown_ != nullptr) (void)blas_thread_shutdown_();
  omp_set_num_threads(count);
}

int threads() { return thread_count(); }

// Setting the number starts threads that were ended, even for one.
SerialBlas::SerialBlas() : threads_(openblas_get_num_threads()) {
  if (threads_ > 1) openblas_set_num_threads(1);
}
SerialBlas::~SerialBlas() {
  if (threads_ > 1) openblas_set_num_threads(threads_);
}

SerialOpenMp::SerialOpenMp() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
SerialOpenMp::~SerialOpenMp() { omp_set_num_threads(threads_); }

}  // namespace lipscope
