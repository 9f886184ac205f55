// SPDX-License-Identifier: Apache-2.0
#include "base/memory_budget.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "lipscope/error.h"

namespace lipscope {
namespace {

constexpr double kDefaultShare = 0.8;

// Numbers of bytes. All but the limit move all the time.
struct Meter {
  std::atomic<double> limit = 0;              // 0: not known yet
  std::atomic<double> base = 0;               // resident when the limit was set
  std::atomic<double> reserve = 0;            // beyond the limit
  std::atomic<std::int64_t> counted = 0;      // in blocks that are alive
  std::atomic<std::int64_t> seen = 0;         // resident at the last look
  std::atomic<std::int64_t> asked_since = 0;  // after the last look
  std::atomic<int> refusals = 0;
  std::atomic<bool> exceeded = false;
};
constinit Meter meter;

std::optional<std::string> text_of_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

double machine_memory() {
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const double bytes = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return bytes > 0 ? bytes : HUGE_VAL;
}

double default_limit() {
  const double group =
      control_group_memory(text_of_file("/proc/self/cgroup").value_or(""), text_of_file);
  return kDefaultShare * std::min(machine_memory(), group);
}

void look() noexcept {
  meter.asked_since = 0;
  meter.seen = static_cast<std::int64_t>(resident_memory());
}

double in_use() noexcept {
  return std::max(resident_memory(), meter.base + static_cast<double>(meter.counted.load()));
}

// "max" or a number.
double limit_in(const std::optional<std::string>& text) {
  double bytes = 0;
  return text && std::istringstream(*text) >> bytes && bytes >= 0 ? bytes : HUGE_VAL;
}

// A group is limited by those above it, too.
template <class Limit>
double least_upwards(std::string folder, const Limit& limit) {
  double least = limit("");
  for (; folder.size() > 1 && folder.front() == '/'; folder.resize(folder.rfind('/')))
    least = std::min(least, limit(folder));
  return least;
}

}  // namespace

double control_group_memory(const std::string& groups, const FileText& read) {
  const std::string root = "/sys/fs/cgroup";
  double least = HUGE_VAL;
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string folder = line.substr(second + 1);
    if (controllers == ",,") {
      least = std::min(least, least_upwards(folder, [&](const std::string& at) {
                         return std::min(limit_in(read(root + at + "/memory.max")),
                                         limit_in(read(root + at + "/memory.high")));
                       }));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, least_upwards(folder, [&](const std::string& at) {
                         return limit_in(read(root + "/memory" + at + "/memory.limit_in_bytes"));
                       }));
    }
  }
  return least;
}

double memory_limit() {
  double limit = meter.limit;
  if (limit > 0) return limit;
  const double found = default_limit();
  return meter.limit.compare_exchange_strong(limit, found) ? found : limit;
}

void set_memory_limit(double bytes) {
  look();
  meter.base = std::max(0.0, static_cast<double>(meter.seen - meter.counted));
  meter.limit = bytes;
}

double memory_left() { return std::max(0.0, memory_limit() - in_use()); }

std::string memory_text(double bytes) {
  if (bytes < 0.95e9) return fmt::format("{:.0f} MB", bytes / 1e6);
  return bytes < 1e12 ? fmt::format("{:.3g} GB", bytes / 1e9)
                      : fmt::format("{:.2g} GB", bytes / 1e9);
}

std::string over_memory_limit() {
  return fmt::format("more than the memory limit of {} leaves; raise --memory",
                     memory_text(memory_limit()));
}

void require_memory(double bytes, const std::string& what) {
  constexpr double kSmall = 1e6;  // not worth a look
  if (bytes <= kSmall) return;
  if (bytes <= memory_limit() && bytes <= memory_left()) return;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("{} would take {}, {}", what, memory_text(bytes), over_memory_limit()));
}

void relieve_memory() noexcept {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  look();
  if (static_cast<double>(meter.seen) <= memory_ceiling()) set_memory_exceeded(false);
}

int memory_refusals() noexcept { return meter.refusals; }
void count_memory_refusal() noexcept { ++meter.refusals; }

bool memory_exceeded() noexcept { return meter.exceeded.load(std::memory_order_relaxed); }
void set_memory_exceeded(bool exceeded) noexcept { meter.exceeded = exceeded; }

bool admit_memory(std::size_t bytes) noexcept {
  const double limit = memory_ceiling();
  const auto block = static_cast<std::int64_t>(bytes);
  if (!(static_cast<double>(bytes) <= limit)) return false;
  const std::int64_t counted = meter.counted.fetch_add(block) + block;
  const std::int64_t since = meter.asked_since.fetch_add(block) + block;
  if (meter.base + static_cast<double>(counted) <= limit) {
    if (static_cast<double>(meter.seen + since) <= limit) return true;
    look();
    if (static_cast<double>(meter.seen + block) > limit) relieve_memory();
    meter.asked_since += block;
    if (static_cast<double>(meter.seen + block) <= limit) return true;
  }
  meter.counted -= block;
  return false;
}

void release_memory(std::size_t bytes) noexcept {
  meter.counted.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}
void count_memory(std::size_t bytes) noexcept {
  meter.counted.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

// operator new asks: no allocation, no exception.
double resident_memory() noexcept {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> text{};
  const ssize_t got = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (got <= 0) return 0;
  char* at = text.data();
  (void)std::strtoull(at, &at, 10);
  return static_cast<double>(std::strtoull(at, nullptr, 10)) *
         static_cast<double>(sysconf(_SC_PAGESIZE));
}

MemoryReserve::MemoryReserve() { meter.reserve = 0.02 * std::min(memory_limit(), 1e12) + 1e7; }
MemoryReserve::~MemoryReserve() { meter.reserve = 0; }

// Before the limit is known, nothing is refused.
double memory_ceiling() noexcept {
  const double limit = meter.limit.load(std::memory_order_relaxed);
  return limit > 0 ? limit + meter.reserve.load(std::memory_order_relaxed) : HUGE_VAL;
}

}  // namespace lipscope
