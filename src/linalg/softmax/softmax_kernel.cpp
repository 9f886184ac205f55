// SPDX-License-Identifier: Apache-2.0
// Rows in vector code, compiled for AVX-512 and AVX2 and chosen at run time. Other processors,
// which lack a fused multiply-add, leave every row to the plain code.
#include "linalg/softmax/softmax_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "linalg/softmax/softmax_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cmath>

#if HWY_TARGET <= HWY_AVX2
#include "linalg/softmax/softmax_exp-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace lipscope::softmax_detail::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX2

// Entries summed before the sum moves on to a double; they stay in the first cache meanwhile.
constexpr size_t kBlock = 2048;
// Rows longer than this, in bytes, do not stay in the last cache: they are read twice, computed
// twice and written past the caches, which is less traffic than to keep the exponentials.
constexpr size_t kLongRow = size_t{1} << 23;
constexpr size_t kAhead = 4096;  // bytes from what is computed to what is fetched
// Short rows go through each phase together, so that the latencies of one overlap with the next.
constexpr size_t kGroup = 16;

// The largest entry, the smallest if kFalling; a NaN may or may not be seen.
template <class T, bool kFalling>
HWY_INLINE T extreme(const T* HWY_RESTRICT x, size_t n) {
  const Tag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto better = [](Pack<T> a, Pack<T> b)
                          HWY_ATTR { return kFalling ? hn::Min(a, b) : hn::Max(a, b); };
  const Pack<T> worst = hn::Set(d, kFalling ? hwy::HighestValue<T>() : hwy::LowestValue<T>());
  Pack<T> m0 = worst, m1 = worst, m2 = worst, m3 = worst;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = better(m0, hn::LoadU(d, x + i));
    m1 = better(m1, hn::LoadU(d, x + i + lanes));
    m2 = better(m2, hn::LoadU(d, x + i + 2 * lanes));
    m3 = better(m3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) m0 = better(m0, hn::LoadU(d, x + i));
  if (i < n) {
    const auto mask = hn::FirstN(d, n - i);
    m1 = better(m1, hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x + i), worst));
  }
  const Pack<T> m = better(better(m0, m1), better(m2, m3));
  return hn::GetLane(kFalling ? hn::MinOfLanes(d, m) : hn::MaxOfLanes(d, m));
}

// False: the row is not for this code. `top` = +-largest finite value stands for "nothing larger":
// such a row is refused, too.
template <class T>
HWY_INLINE bool shift_for(const ExpSetup<T>& setup, T top, ExpShift<T>& shift) {
  using K = ExpConstants<T>;
  const double at = static_cast<double>(top) * setup.per_unit;
  if (!(std::fabs(at) <= K::kMaxExponent)) return false;
  // Adding and subtracting rounds to an integer; the compiler may not remove it.
  shift.exponent = (at + 0x1.8p52) - 0x1.8p52;
  shift.magic = static_cast<T>(K::kMagic + K::kBias - K::kSteps * shift.exponent);
  shift.floor = static_cast<T>((shift.exponent - K::kDepth) * setup.unit);
  return true;
}

// Asks for the four packs `bytes` after x, which may be past the end of the row.
template <class T>
HWY_INLINE void prefetch_packs(const T* x, size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(x) + bytes;
  for (size_t line = 0; line < 4 * sizeof(Pack<T>); line += 64) {
    __builtin_prefetch(reinterpret_cast<const T*>(at + line));
  }
}

// The sum of exp over n <= kBlock entries; kStore: the exponentials go to y; kFetch: the next block
// is fetched meanwhile.
template <bool kStore, bool kFetch = false, class T, bool kAccurate, bool kFalling>
HWY_INLINE Double2 sum_block(const Exponential<T, kAccurate, kFalling>& e, const T* x, T* y,
                             size_t n) {
  const Tag<T> d;
  const size_t lanes = hn::Lanes(d);
  PackSum<T, kAccurate> sum;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    if constexpr (kFetch) prefetch_packs(x + i, kBlock * sizeof(T));
    const Four<Pack<T>> part = e(load_four(x + i));
    if constexpr (kStore) store_four(part, y + i);
    sum.add(part);
  }
  for (; i + lanes <= n; i += lanes) {
    const Pack<T> e0 = e(hn::LoadU(d, x + i));
    if constexpr (kStore) hn::StoreU(e0, d, y + i);
    sum.add(e0);
  }
  if (i < n) {
    const auto mask = hn::FirstN(d, n - i);
    const Pack<T> e0 = e(hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x + i), e.floor()));
    if constexpr (kStore) hn::BlendedStore(e0, mask, d, y + i);
    sum.add(e0);
  }
  return sum.total();
}

// y = f(x) entry by entry; kStream: past the caches.
template <bool kStream, class T, class F>
HWY_INLINE void map_row(const F& f, const T* x, T* y, size_t n) {
  const Tag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if constexpr (kStream) {
    const size_t past = reinterpret_cast<std::uintptr_t>(y) / sizeof(T) % lanes;
    const size_t head = past == 0 ? 0 : lanes - past;
    const auto mask = hn::FirstN(d, head);
    if (head > 0) hn::BlendedStore(f(hn::MaskedLoad(mask, d, x)), mask, d, y);
    i = head;
  }
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    if constexpr (kStream) prefetch_packs(x + i, kAhead);
    const Four<Pack<T>> v = f(load_four(x + i));
    if constexpr (kStream) {
      hn::Stream(v.a, d, y + i);
      hn::Stream(v.b, d, y + i + lanes);
      hn::Stream(v.c, d, y + i + 2 * lanes);
      hn::Stream(v.d, d, y + i + 3 * lanes);
    } else {
      store_four(v, y + i);
    }
  }
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) {
    const auto mask = hn::FirstN(d, n - i);
    hn::BlendedStore(f(hn::MaskedLoad(mask, d, x + i)), mask, d, y + i);
  }
  if constexpr (kStream) hwy::FlushStream();
}

// Multiplies by 1 / sum; in accurate mode the rounding error of the reciprocal is made good.
template <class T, bool kAccurate>
class Share {
 public:
  explicit HWY_INLINE Share(Double2 sum) {
    const double inverse = 1 / sum.hi;
    const double rest = (std::fma(-inverse, sum.hi, 1.0) - inverse * sum.lo) * inverse;
    const T hi = static_cast<T>(inverse);
    hi_ = hn::Set(Tag<T>(), hi);
    lo_ = hn::Set(Tag<T>(), static_cast<T>((inverse - static_cast<double>(hi)) + rest));
  }
  template <class P>
  HWY_INLINE P operator()(P x) const {
    return each(
        [&](Pack<T> e)
            HWY_ATTR { return kAccurate ? hn::MulAdd(e, hi_, hn::Mul(e, lo_)) : hn::Mul(e, hi_); },
        x);
  }

 private:
  Pack<T> hi_, lo_;
};

// lambda x - log sum.
template <class T, bool kAccurate>
class LogShare {
 public:
  HWY_INLINE LogShare(double lambda, Double2 log_sum)
      : lambda_(hn::Set(Tag<T>(), static_cast<T>(lambda))),
        hi_(hn::Set(Tag<T>(), static_cast<T>(log_sum.hi))),
        lo_(hn::Set(Tag<T>(), static_cast<T>(log_sum.lo))) {}
  template <class P>
  HWY_INLINE P operator()(P x) const {
    return each(
        [&](Pack<T> v) HWY_ATTR {
          const Pack<T> y = hn::MulSub(lambda_, v, hi_);
          return kAccurate ? hn::Sub(y, lo_) : y;
        },
        x);
  }

 private:
  Pack<T> lambda_, hi_, lo_;
};
template <>
class LogShare<float, true> {
 public:
  HWY_INLINE LogShare(double lambda, Double2 log_sum)
      : lambda_(hn::Set(Tag<double>(), lambda)), log_sum_(hn::Set(Tag<double>(), log_sum.hi)) {}
  template <class P>
  HWY_INLINE P operator()(P x) const {
    return each([&](Pack<float> v) HWY_ATTR { return one(v); }, x);
  }

 private:
  HWY_INLINE Pack<float> one(Pack<float> x) const {
    const hn::Half<Tag<float>> half;
    const auto part = [&](auto v) HWY_ATTR {
      const Tag<double> d;
      return hn::DemoteTo(half, hn::MulSub(lambda_, hn::PromoteTo(d, v), log_sum_));
    };
    return hn::Combine(Tag<float>(), part(hn::UpperHalf(half, x)), part(hn::LowerHalf(half, x)));
  }
  Pack<double> lambda_, log_sum_;
};

// log((hi + lo) 2^exponent).
HWY_INLINE Double2 log_of(Double2 sum, double exponent) {
  const double log_sum = std::log(sum.hi) + sum.lo / sum.hi;
  const double whole = exponent * kLn2Hi;
  const double part = std::fma(exponent, kLn2Hi, -whole) + exponent * kLn2Lo;
  const Double2 s = add({whole, part}, log_sum);
  const double hi = s.hi + s.lo;
  return {hi, (s.hi - hi) + s.lo};
}

// 2^exponent for an integer exponent <= 0.
HWY_INLINE double power_of_two(double exponent) {
  return exponent < -1022 ? 0 : std::ldexp(1.0, static_cast<int>(exponent));
}

// A sum no block of which may overflow: the exponent grows with the blocks.
template <class T, bool kAccurate, bool kFalling>
HWY_INLINE bool sum_long_row(const ExpSetup<T>& setup, const T* x, size_t n, ExpShift<T>& shift,
                             Double2& sum) {
  sum = {0, 0};
  for (size_t i = 0; i < n; i += kBlock) {
    const size_t count = HWY_MIN(kBlock, n - i);
    const T top = extreme<T, kFalling>(x + i, count);
    ExpShift<T> next;
    if (i == 0) {
      // A first block far below the others, masked entries say, must not decide.
      if (!shift_for(setup, top, shift) && !shift_for(setup, extreme<T, kFalling>(x, n), shift)) {
        return false;
      }
    } else if (!shift_for(setup, top, next)) {
      if (!(static_cast<double>(top) * setup.per_unit < 0)) return false;
    } else if (next.exponent > shift.exponent) {
      const double scale = power_of_two(shift.exponent - next.exponent);
      sum = {sum.hi * scale, sum.lo * scale};
      shift = next;
    }
    const Exponential<T, kAccurate, kFalling> e(setup, shift);
    const Double2 part = sum_block<false, true>(e, x + i, static_cast<T*>(nullptr), count);
    sum = add(sum, part.hi);
    sum.lo += part.lo;
  }
  return true;
}

HWY_INLINE bool positive(Double2 sum) {
  return sum.hi > 0 && sum.hi <= hwy::HighestValue<double>();
}

template <class T, bool kAccurate, bool kFalling>
void long_row(const Rows<T>& job, const ExpSetup<T>& setup, Index row, std::vector<Index>& left) {
  const T* x = job.x + row * job.x_stride;
  T* y = job.y + row * job.y_stride;
  const size_t n = static_cast<size_t>(job.length);
  ExpShift<T> shift;
  Double2 sum;
  if (!sum_long_row<T, kAccurate, kFalling>(setup, x, n, shift, sum) || !positive(sum)) {
    left.push_back(row);
    return;
  }
  const bool stream = x != y;
  if (job.output == Output::kSoftmax) {
    const Exponential<T, kAccurate, kFalling> e(setup, shift);
    const Share<T, kAccurate> share(sum);
    const auto f = [&](const auto& v) HWY_ATTR { return share(e(v)); };
    stream ? map_row<true>(f, x, y, n) : map_row<false>(f, x, y, n);
    return;
  }
  const Double2 log_sum = log_of(sum, shift.exponent);
  if (job.output == Output::kLogSumExp) {
    *y = static_cast<T>(log_sum.hi);
    return;
  }
  const LogShare<T, kAccurate> f(job.lambda, log_sum);
  stream ? map_row<true>(f, x, y, n) : map_row<false>(f, x, y, n);
}

template <bool kStore, class T, bool kAccurate, bool kFalling>
HWY_INLINE Double2 sum_row(const Exponential<T, kAccurate, kFalling>& e, const T* x, T* y,
                           size_t n) {
  Double2 sum = sum_block<kStore>(e, x, y, HWY_MIN(kBlock, n));
  for (size_t i = kBlock; i < n; i += kBlock) {
    const Double2 part = sum_block<kStore>(e, x + i, kStore ? y + i : y, HWY_MIN(kBlock, n - i));
    sum = add(sum, part.hi);
    sum.lo += part.lo;
  }
  return sum;
}

// Up to kGroup rows, phase by phase.
template <class T, bool kAccurate, bool kFalling>
void group_of_rows(const Rows<T>& job, const ExpSetup<T>& setup, Index first, size_t count,
                   std::vector<Index>& left) {
  const size_t n = static_cast<size_t>(job.length);
  const auto x = [&](size_t i) { return job.x + (first + static_cast<Index>(i)) * job.x_stride; };
  const auto y = [&](size_t i) { return job.y + (first + static_cast<Index>(i)) * job.y_stride; };
  ExpShift<T> shift[kGroup];
  Double2 sum[kGroup];
  bool fits[kGroup];
  T top[kGroup];
  for (size_t i = 0; i < count; ++i) top[i] = extreme<T, kFalling>(x(i), n);
  for (size_t i = 0; i < count; ++i) fits[i] = shift_for(setup, top[i], shift[i]);
  for (size_t i = 0; i < count; ++i) {
    sum[i] = {0, 0};
    if (!fits[i]) continue;
    const Exponential<T, kAccurate, kFalling> e(setup, shift[i]);
    sum[i] = job.output == Output::kSoftmax ? sum_row<true>(e, x(i), y(i), n)
                                            : sum_row<false>(e, x(i), y(i), n);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!fits[i] || !positive(sum[i])) {
      left.push_back(first + static_cast<Index>(i));
    } else if (job.output == Output::kSoftmax) {
      map_row<false>(Share<T, kAccurate>(sum[i]), y(i), y(i), n);
    } else if (const Double2 log_sum = log_of(sum[i], shift[i].exponent);
               job.output == Output::kLogSumExp) {
      *y(i) = static_cast<T>(log_sum.hi);
    } else {
      map_row<false>(LogShare<T, kAccurate>(job.lambda, log_sum), x(i), y(i), n);
    }
  }
}

template <class T, bool kAccurate, bool kFalling>
void all_rows(const Rows<T>& job, const ExpSetup<T>& setup, std::vector<Index>& left) {
  const size_t n = static_cast<size_t>(job.length);
  if (n * sizeof(T) >= kLongRow) {
    for (Index row = 0; row < job.rows; ++row)
      long_row<T, kAccurate, kFalling>(job, setup, row, left);
    return;
  }
  const Index group = static_cast<Index>(HWY_MIN(kGroup, HWY_MAX(size_t{1}, kBlock / n)));
  for (Index row = 0; row < job.rows; row += group) {
    group_of_rows<T, kAccurate, kFalling>(
        job, setup, row, static_cast<size_t>(HWY_MIN(group, job.rows - row)), left);
  }
}

template <class T>
bool rows_of(const Rows<T>& job, std::vector<Index>& left) {
  ExpSetup<T> setup;
  if (job.length == 0 || !setup.set(job.lambda, job.accurate)) return false;
  if (job.accurate) {
    job.lambda < 0 ? all_rows<T, true, true>(job, setup, left)
                   : all_rows<T, true, false>(job, setup, left);
  } else {
    job.lambda < 0 ? all_rows<T, false, true>(job, setup, left)
                   : all_rows<T, false, false>(job, setup, left);
  }
  return true;
}

bool float_rows(const Rows<float>& job, std::vector<Index>& left) { return rows_of(job, left); }
bool double_rows(const Rows<double>& job, std::vector<Index>& left) { return rows_of(job, left); }

bool double_sum(const double* x, Index length, double lambda, RowSum& out) {
  ExpSetup<double> setup;
  if (length == 0 || !setup.set(lambda, true)) return false;
  ExpShift<double> shift;
  Double2 sum;
  const size_t n = static_cast<size_t>(length);
  if (!(lambda < 0 ? sum_long_row<double, true, true>(setup, x, n, shift, sum)
                   : sum_long_row<double, true, false>(setup, x, n, shift, sum))) {
    return false;
  }
  out = {sum.hi, sum.lo, shift.exponent};
  return positive(sum);
}

#else

bool float_rows(const Rows<float>&, std::vector<Index>&) { return false; }
bool double_rows(const Rows<double>&, std::vector<Index>&) { return false; }
bool double_sum(const double*, Index, double, RowSum&) { return false; }

#endif

}  // namespace lipscope::softmax_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace lipscope::softmax_detail {
namespace {

HWY_EXPORT(float_rows);
HWY_EXPORT(double_rows);
HWY_EXPORT(double_sum);

void all_left(Index rows, std::vector<Index>& left) {
  for (Index row = 0; row < rows; ++row) left.push_back(row);
}

}  // namespace

void vector_rows(const Rows<float>& job, std::vector<Index>& left) {
  if (!HWY_DYNAMIC_DISPATCH(float_rows)(job, left)) all_left(job.rows, left);
}
void vector_rows(const Rows<double>& job, std::vector<Index>& left) {
  if (!HWY_DYNAMIC_DISPATCH(double_rows)(job, left)) all_left(job.rows, left);
}
bool vector_sum(const double* x, Index length, double lambda, RowSum& sum) {
  return HWY_DYNAMIC_DISPATCH(double_sum)(x, length, lambda, sum);
}

}  // namespace lipscope::softmax_detail

#endif
