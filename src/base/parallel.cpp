// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <cblas.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#ifndef __SANITIZE_THREAD__
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>
#endif

#include "base/checkpoint.h"

// Of OpenBLAS with threads of its own; absent in its other builds.
extern "C" __attribute__((weak)) int blas_thread_shutdown_();

namespace lipscope {
namespace {

// One pool: OpenBLAS and oneDNN run on the thread that calls them. Their own threads would fight
// ours for the processors, look for work while they wait, and cut sums by how many they are.
const bool alone = [] {
  openblas_set_num_threads(1);
  if (blas_thread_shutdown_ != nullptr) (void)blas_thread_shutdown_();
  return true;
}();

thread_local bool in_piece = false;

std::atomic<int>& thread_count() {
  static std::atomic<int> count = usable_processors();
  return count;
}

#ifdef __SANITIZE_THREAD__
// The thread sanitizer does not see how TBB orders its threads.
void run_pieces(std::int64_t pieces, const std::function<void(std::int64_t)>& piece) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::jthread> team;
  for (int t = 0; t < thread_count(); ++t) {
    team.emplace_back([&] {
      for (std::int64_t p = next++; p < pieces; p = next++) piece(p);
    });
  }
}
#else
std::shared_ptr<tbb::task_arena> arena(int count) {
  static std::mutex mutex;
  static std::unique_ptr<tbb::global_control> limit;
  static std::shared_ptr<tbb::task_arena> made;
  static int size = 0;
  const std::lock_guard lock(mutex);
  if (size != count) {
    // More threads than processors, where somebody wants them; TBB says on standard error what it
    // leaves out.
    limit.reset();
    limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                  static_cast<std::size_t>(count));
    made = std::make_shared<tbb::task_arena>(count);
    size = count;
  }
  return made;
}

void run_pieces(std::int64_t pieces, const std::function<void(std::int64_t)>& piece) {
  const auto pool = arena(thread_count());
  pool->execute([&] {
    // One piece per task, and no other loop's tasks while this one waits.
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::int64_t>(0, pieces, 1),
          [&](const tbb::blocked_range<std::int64_t>& range) {
            for (std::int64_t p = range.begin(); p < range.end(); ++p) piece(p);
          },
          tbb::simple_partitioner());
    });
  });
}
#endif

// Runs a piece for the caller's run. `work`: how much it did, also when it is ended.
void run_piece(const Errand& caller, double& work, const std::function<void()>& body) {
  Errand& mine = errand();
  const Errand before = mine;
  const bool was_in_piece = in_piece;
  mine = caller;
  in_piece = true;
  const auto restore = [&] {
    work = mine.work - caller.work;
    mine = before;
    in_piece = was_in_piece;
  };
  try {
    checkpoint();
    body();
  } catch (...) {
    restore();
    throw;
  }
  restore();
}

// Processors of the quota of a control group; no limit where there is none or it cannot be read.
double quota_of(const std::string& folder) {
  const std::string root = "/sys/fs/cgroup";
  double quota = 0, period = 0;
  std::string word;
  if (std::ifstream file(root + folder + "/cpu.max"); file >> word >> period) {
    if (word == "max" || !(std::istringstream(word) >> quota)) return HUGE_VAL;
  } else {
    std::ifstream(root + "/cpu" + folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(root + "/cpu" + folder + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : HUGE_VAL;
}

double cgroup_processors() {
  double least = quota_of("");
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.rfind(':');
    if (colon == std::string::npos) continue;
    // A group is limited by those above it, too.
    for (std::string folder = line.substr(colon + 1); folder.size() > 1;
         folder.resize(folder.rfind('/'))) {
      least = std::min(least, quota_of(folder));
    }
  }
  return least;
}

}  // namespace

int usable_processors() {
  cpu_set_t set;
  int count = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
  const double quota = std::ceil(cgroup_processors());
  return std::max(1, quota < count ? static_cast<int>(quota) : count);
}

void parallel_for(std::int64_t n, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (n <= 0) return;
  if (n <= grain || in_piece) return body(0, n);
  constexpr std::int64_t kMostPieces = 64;
  const std::int64_t pieces =
      std::min((n + grain - 1) / std::max<std::int64_t>(grain, 1), kMostPieces);
  const Errand caller = errand();
  std::vector<double> work(static_cast<std::size_t>(pieces));
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(pieces));
  std::atomic<bool> failed = false;
  const auto piece = [&](std::int64_t p) {
    const auto at = static_cast<std::size_t>(p);
    try {
      run_piece(caller, work[at], [&] { body(n * p / pieces, n * (p + 1) / pieces); });
    } catch (...) {
      failures[at] = std::current_exception();
      failed = true;
    }
  };
  if (thread_count() == 1 || pieces == 1) {
    for (std::int64_t p = 0; p < pieces; ++p) piece(p);
  } else {
    run_pieces(pieces, piece);
  }
  for (const double w : work) errand().work += w;
  if (!failed) return;
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void set_threads(int count) { thread_count() = count > 0 ? count : usable_processors(); }

int threads() { return thread_count(); }

}  // namespace lipscope
