// SPDX-License-Identifier: Apache-2.0
// operator new and delete of the program: blocks of some size are counted, and refused where they
// would break the memory limit. Small ones always succeed, so that what was found can be written;
// the watch of memory_guard.h sees those. Sanitizers have their own.
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/memory_budget.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)

namespace {

using lipscope::kCountedBlock;

// No block below half the threshold has room for the whole.
bool is_large(std::size_t bytes) { return bytes >= kCountedBlock / 2; }

// Null where there is no memory or the limit forbids it.
template <class Allocate>
void* allocate_large(std::size_t bytes, const Allocate& allocate) noexcept {
  if (!lipscope::admit_memory(bytes)) return nullptr;
  void* block = allocate();
  const std::size_t got = block != nullptr ? malloc_usable_size(block) : 0;
  const std::size_t counted = got >= kCountedBlock ? got : 0;
  if (counted > bytes) lipscope::count_memory(counted - bytes);
  if (counted < bytes) lipscope::release_memory(bytes - counted);
  return block;
}

void* allocate_block(std::size_t bytes) noexcept {
  const auto allocate = [&] { return std::malloc(std::max<std::size_t>(bytes, 1)); };
  return is_large(bytes) ? allocate_large(bytes, allocate) : allocate();
}

void* allocate_block(std::size_t bytes, std::align_val_t align) noexcept {
  const auto allocate = [&]() -> void* {
    void* block = nullptr;
    const auto places = std::max(static_cast<std::size_t>(align), sizeof(void*));
    return posix_memalign(&block, places, std::max<std::size_t>(bytes, 1)) == 0 ? block : nullptr;
  };
  return is_large(bytes) ? allocate_large(bytes, allocate) : allocate();
}

void* or_throw(void* block) {
  if (block != nullptr) [[likely]]
    return block;
  lipscope::count_memory_refusal();
  throw lipscope::MemoryLimitReached();
}

void free_block(void* block) noexcept {
  if (block == nullptr) return;
  const std::size_t size = malloc_usable_size(block);
  if (size >= kCountedBlock) lipscope::release_memory(size);
  std::free(block);
}

}  // namespace

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

void* operator new(size_t n) { return or_throw(allocate_block(n)); }
void* operator new[](size_t n) { return or_throw(allocate_block(n)); }
void* operator new(size_t n, align_val_t a) { return or_throw(allocate_block(n, a)); }
void* operator new[](size_t n, align_val_t a) { return or_throw(allocate_block(n, a)); }
void* operator new(size_t n, const nothrow_t&) noexcept { return allocate_block(n); }
void* operator new[](size_t n, const nothrow_t&) noexcept { return allocate_block(n); }
void* operator new(size_t n, align_val_t a, const nothrow_t&) noexcept {
  return allocate_block(n, a);
}
void* operator new[](size_t n, align_val_t a, const nothrow_t&) noexcept {
  return allocate_block(n, a);
}
void operator delete(void* p) noexcept { free_block(p); }
void operator delete[](void* p) noexcept { free_block(p); }
void operator delete(void* p, size_t) noexcept { free_block(p); }
void operator delete[](void* p, size_t) noexcept { free_block(p); }
void operator delete(void* p, align_val_t) noexcept { free_block(p); }
void operator delete[](void* p, align_val_t) noexcept { free_block(p); }
void operator delete(void* p, size_t, align_val_t) noexcept { free_block(p); }
void operator delete[](void* p, size_t, align_val_t) noexcept { free_block(p); }
void operator delete(void* p, const nothrow_t&) noexcept { free_block(p); }
void operator delete[](void* p, const nothrow_t&) noexcept { free_block(p); }
void operator delete(void* p, align_val_t, const nothrow_t&) noexcept { free_block(p); }
void operator delete[](void* p, align_val_t, const nothrow_t&) noexcept { free_block(p); }

#endif
