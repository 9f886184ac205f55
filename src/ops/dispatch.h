// SPDX-License-Identifier: Apache-2.0
// From run-time storage to static scalar type, and loops over the samples of a batch.
#pragma once

#include "base/check.h"
#include "base/parallel.h"
#include "lipscope/op.h"

namespace lipscope {

// f is called with a value of the scalar type: double, float or Index.
template <class F>
void for_storage(Storage storage, F&& f) {
  switch (storage) {
    case Storage::kDouble: return f(double{});
    case Storage::kFloat: return f(float{});
    case Storage::kInt64: return f(Index{});
  }
}

// double or float only.
template <class F>
void for_real(Storage storage, F&& f) {
  LIPSCOPE_CHECK(storage != Storage::kInt64);
  if (storage == Storage::kDouble) return f(double{});
  f(float{});
}

// Entries a piece of parallel work should have to be worth a thread.
inline constexpr Index kParallelGrain = Index{1} << 15;

// body(b) for each sample, on several threads when a sample is worth it.
template <class Body>
void for_each_sample(Index count, Index work_per_sample, Body&& body) {
  const Index grain = std::max<Index>(1, kParallelGrain / std::max<Index>(1, work_per_sample));
  parallel_for(count, grain, [&](Index begin, Index end) {
    for (Index b = begin; b < end; ++b) body(b);
  });
}

// Sets every sample of a view to zero.
inline void fill_zero(const MutView& view, Index count) {
  for_storage(view.storage, [&](auto zero) {
    using T = decltype(zero);
    for (Index b = 0; b < count; ++b) std::fill_n(view.sample<T>(b), view.size, T{});
  });
}

}  // namespace lipscope
