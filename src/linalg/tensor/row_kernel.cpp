// SPDX-License-Identifier: Apache-2.0
#include "linalg/tensor/row_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "linalg/tensor/row_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lipscope::row_kernel_detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::ScalableTag<double>;
using Vec = hn::Vec<Doubles>;

// Four vectors of each row at a time: their sums stay in registers.
HWY_ATTR void add(const double* HWY_RESTRICT weights, const std::int32_t* HWY_RESTRICT columns,
                  size_t count, const double* HWY_RESTRICT x, size_t width,
                  double* HWY_RESTRICT y) {
  const Doubles d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {
    Vec s0 = hn::LoadU(d, y + i), s1 = hn::LoadU(d, y + i + lanes),
        s2 = hn::LoadU(d, y + i + 2 * lanes), s3 = hn::LoadU(d, y + i + 3 * lanes);
    for (size_t k = 0; k < count; ++k) {
      const double* HWY_RESTRICT from = x + static_cast<size_t>(columns[k]) * width + i;
      const Vec w = hn::Set(d, weights[k]);
      s0 = hn::MulAdd(w, hn::LoadU(d, from), s0);
      s1 = hn::MulAdd(w, hn::LoadU(d, from + lanes), s1);
      s2 = hn::MulAdd(w, hn::LoadU(d, from + 2 * lanes), s2);
      s3 = hn::MulAdd(w, hn::LoadU(d, from + 3 * lanes), s3);
    }
    hn::StoreU(s0, d, y + i);
    hn::StoreU(s1, d, y + i + lanes);
    hn::StoreU(s2, d, y + i + 2 * lanes);
    hn::StoreU(s3, d, y + i + 3 * lanes);
  }
  for (; i + lanes <= width; i += lanes) {
    Vec s = hn::LoadU(d, y + i);
    for (size_t k = 0; k < count; ++k)
      s = hn::MulAdd(hn::Set(d, weights[k]),
                     hn::LoadU(d, x + static_cast<size_t>(columns[k]) * width + i), s);
    hn::StoreU(s, d, y + i);
  }
  // Four sums side by side: one alone waits for each of its additions.
  for (; i < width; ++i) {
    const auto term = [&](size_t k) {
      return weights[k] * x[static_cast<size_t>(columns[k]) * width + i];
    };
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    size_t k = 0;
    for (; k + 4 <= count; k += 4) {
      s0 += term(k);
      s1 += term(k + 1);
      s2 += term(k + 2);
      s3 += term(k + 3);
    }
    for (; k < count; ++k) s0 += term(k);
    y[i] += (s0 + s1) + (s2 + s3);
  }
}

}  // namespace lipscope::row_kernel_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lipscope::row_kernel_detail {
HWY_EXPORT(add);
}  // namespace lipscope::row_kernel_detail

namespace lipscope {

void add_weighted_rows(const double* weights, const std::int32_t* columns, std::size_t count,
                       const double* x, Index width, double* y) {
  using namespace row_kernel_detail;
  HWY_DYNAMIC_DISPATCH(add)(weights, columns, count, x, static_cast<std::size_t>(width), y);
}

}  // namespace lipscope
#endif
