// SPDX-License-Identifier: Apache-2.0
// How much memory the process may use, and how much of it is left.
//
//   require_memory(8.0 * rows * columns, "the matrix of 'conv1'");   // before it is allocated
#pragma once

#include <cstddef>
#include <functional>
#include <new>
#include <optional>
#include <string>

namespace lipscope {

// Bytes: as set, else 80 % of what the machine or the control group of the process has.
[[nodiscard]] double memory_limit();
void set_memory_limit(double bytes);  // infinity: none

// What the limit leaves: of the resident memory, or of what was counted if that is more.
[[nodiscard]] double memory_left();

// Throws kUnsupported where `bytes` are more than the limit leaves. `what` is the subject of the
// sentence. For sizes that come out of files; any number is fine, infinity included.
void require_memory(double bytes, const std::string& what);

// "1.5 GB", "20 MB".
[[nodiscard]] std::string memory_text(double bytes);
// "more than the memory limit of 1.5 GB; raise --memory or ...": the end of a sentence.
[[nodiscard]] std::string over_memory_limit();

// Thrown by operator new of a program that keeps the limit. Whoever does without what it was
// working on catches std::bad_alloc.
struct MemoryLimitReached : std::bad_alloc {
  [[nodiscard]] const char* what() const noexcept override { return "memory limit reached"; }
};

// Frees what can be given back to the system and looks whether the memory fits its limit again: to
// be called by whoever has caught a std::bad_alloc or a Stopped for memory and goes on.
void relieve_memory() noexcept;

// How often the limit has ended something.
[[nodiscard]] int memory_refusals() noexcept;
void count_memory_refusal() noexcept;

// Whether checkpoint() ends what runs, for memory that operator new does not see.
[[nodiscard]] bool memory_exceeded() noexcept;
void set_memory_exceeded(bool exceeded) noexcept;

// Of this size on, blocks are counted: smaller ones show in the resident memory.
inline constexpr std::size_t kCountedBlock = std::size_t{32} << 10U;
// Whether a block fits; if so, it is counted. Allocates nothing.
[[nodiscard]] bool admit_memory(std::size_t bytes) noexcept;
void release_memory(std::size_t bytes) noexcept;
// The block has turned out to be larger than asked for.
void count_memory(std::size_t bytes) noexcept;

[[nodiscard]] double resident_memory() noexcept;  // 0 where the system does not tell

// While alive, some megabytes more may be used, to write down what was found.
class MemoryReserve {
 public:
  MemoryReserve();
  ~MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;
};
// Of the limit and the reserve, where there is one.
[[nodiscard]] double memory_ceiling() noexcept;

// The least limit of the control groups of a process, versions 1 and 2; infinity for none.
// `groups`: what /proc/self/cgroup says; `read` gives the contents of a file, if it is there.
using FileText = std::function<std::optional<std::string>(const std::string& path)>;
[[nodiscard]] double control_group_memory(const std::string& groups, const FileText& read);

}  // namespace lipscope
