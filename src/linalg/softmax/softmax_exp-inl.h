// SPDX-License-Identifier: Apache-2.0
// The exponential and the sums of softmax_kernel.cpp, once per instruction set (Highway includes
// this file several times). Proofs: docs/theory/softmax-kernel.md.

#if defined(LIPSCOPE_SOFTMAX_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LIPSCOPE_SOFTMAX_EXP_INL_H
#undef LIPSCOPE_SOFTMAX_EXP_INL_H
#else
#define LIPSCOPE_SOFTMAX_EXP_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "linalg/softmax/softmax_exp.h"

HWY_BEFORE_NAMESPACE();
namespace lipscope::softmax_detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using std::size_t;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
using Pack = hn::Vec<Tag<T>>;

template <class V>
struct Four {
  V a, b, c, d;
};
template <class F, class V>
HWY_INLINE V each(const F& f, V x) {
  return f(x);
}
template <class F, class V>
HWY_INLINE V each(const F& f, V x, V y) {
  return f(x, y);
}
template <class F, class V>
HWY_INLINE Four<V> each(const F& f, const Four<V>& x) {
  return {f(x.a), f(x.b), f(x.c), f(x.d)};
}
template <class F, class V>
HWY_INLINE Four<V> each(const F& f, const Four<V>& x, const Four<V>& y) {
  return {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)};
}
template <class T>
HWY_INLINE Four<Pack<T>> load_four(const T* x) {
  const Tag<T> d;
  const size_t n = hn::Lanes(d);
  return {hn::LoadU(d, x), hn::LoadU(d, x + n), hn::LoadU(d, x + 2 * n), hn::LoadU(d, x + 3 * n)};
}
template <class T>
HWY_INLINE void store_four(const Four<Pack<T>>& v, T* y) {
  const Tag<T> d;
  const size_t n = hn::Lanes(d);
  hn::StoreU(v.a, d, y);
  hn::StoreU(v.b, d, y + n);
  hn::StoreU(v.c, d, y + 2 * n);
  hn::StoreU(v.d, d, y + 3 * n);
}

// Lane i: table[the lowest three bits of index lane i].
HWY_INLINE Pack<float> pick_of_eight(Pack<float> table, Pack<float> index) {
#if HWY_TARGET == HWY_AVX2
  return Pack<float>{_mm256_permutevar8x32_ps(table.raw, _mm256_castps_si256(index.raw))};
#else  // AVX-512: the second half of the table repeats the first
  return Pack<float>{_mm512_permutexvar_ps(_mm512_castps_si512(index.raw), table.raw)};
#endif
}

// x -> exp(lambda x) 2^-exponent for rows whose entries have lambda x at most about
// (exponent + 1/2) ln 2; exactly 0 where lambda x is smaller than (exponent - kDepth) ln 2, and NaN
// for NaN. kFalling: lambda < 0.
template <class T, bool kAccurate, bool kFalling>
class Exponential {
  using K = ExpConstants<T>;
  using D = Tag<T>;
  using V = Pack<T>;

 public:
  HWY_INLINE Exponential(const ExpSetup<T>& setup, const ExpShift<T>& shift)
      : scale_(hn::Set(D(), setup.scale)),
        magic_(hn::Set(D(), shift.magic)),
        floor_(hn::Set(D(), shift.floor)),
        step_hi_(hn::Set(D(), setup.step_hi)),
        step_lo_(hn::Set(D(), setup.step_lo)),
        table_(hn::LoadU(D(), setup.table)) {
    for (size_t k = 1; k <= K::degree(kAccurate); ++k) a_[k] = hn::Set(D(), setup.a[k]);
  }

  HWY_INLINE V floor() const { return floor_; }

  // A pack, or four that go through each step together: a chain of dependent operations is ten
  // times as long as one of them.
  template <class P>
  HWY_INLINE P operator()(P x) const {
    // The order of the operands matters: max and min return the second one if there is a NaN.
    const P z =
        each([&](V v) HWY_ATTR { return kFalling ? hn::Min(floor_, v) : hn::Max(floor_, v); }, x);
    // The low bits of k: steps above 2^exponent.
    const P k = each([&](V v) HWY_ATTR { return hn::MulAdd(v, scale_, magic_); }, z);
    const P steps = each([&](V v) HWY_ATTR { return hn::Sub(v, magic_); }, k);
    P r = each([&](V n, V v) HWY_ATTR { return hn::NegMulAdd(n, step_hi_, v); }, steps, z);
    r = each([&](V n, V v) HWY_ATTR { return hn::NegMulAdd(n, step_lo_, v); }, steps, r);
    constexpr size_t kDegree = K::degree(kAccurate);
    P q = each([&](V v) HWY_ATTR { return hn::MulAdd(a_[kDegree], v, a_[kDegree - 1]); }, r);
    for (size_t j = kDegree - 2; j >= 1; --j) {
      q = each([&](V v, V w) HWY_ATTR { return hn::MulAdd(v, w, a_[j]); }, q, r);
    }
    q = each([&](V v, V w) HWY_ATTR { return hn::Mul(v, w); }, q, r);
    const P p = each([&](V v) HWY_ATTR { return power(v); }, k);
    return each([&](V v, V w) HWY_ATTR { return hn::MulAdd(v, w, v); }, p, q);
  }

 private:
  // 2^(steps / kSteps) from the low bits of k.
  HWY_INLINE V power(V k) const {
    const hn::RebindToUnsigned<D> bits;
    auto out = hn::ShiftLeft<K::kShift>(hn::BitCast(bits, k));
    if constexpr (K::kTable) out = hn::Add(out, hn::BitCast(bits, pick_of_eight(table_, k)));
    return hn::BitCast(D(), out);
  }

  V scale_, magic_, floor_, step_hi_, step_lo_, table_;
  V a_[K::kMaxDegree + 1];
};

struct Double2 {
  double hi, lo;
};
// hi + lo + x, without losing the rounding error of the sum.
HWY_INLINE Double2 add(Double2 s, double x) {
  const double t = s.hi + x, b = t - s.hi;
  return {t, s.lo + ((s.hi - (t - b)) + (x - b))};
}

// Sums of non-negative packs; total() is over all lanes.
template <class T, bool kAccurate>
class PackSum {  // double and float, as they come
  using D = Tag<T>;
  using V = Pack<T>;

 public:
  HWY_INLINE PackSum() : s0_(hn::Zero(D())), s1_(s0_), s2_(s0_), s3_(s0_) {}
  HWY_INLINE void add(const Four<V>& x) {
    s0_ = hn::Add(s0_, x.a);
    s1_ = hn::Add(s1_, x.b);
    s2_ = hn::Add(s2_, x.c);
    s3_ = hn::Add(s3_, x.d);
  }
  HWY_INLINE void add(V a) { s0_ = hn::Add(s0_, a); }
  HWY_INLINE Double2 total() const {
    const V s = hn::Add(hn::Add(s0_, s1_), hn::Add(s2_, s3_));
    return {static_cast<double>(hn::GetLane(hn::SumOfLanes(D(), s))), 0};
  }

 private:
  V s0_, s1_, s2_, s3_;
};

template <>
class PackSum<float, true> {  // four packs at a time in float, then in double
  using V = Pack<float>;
  using W = Pack<double>;
  using D = Tag<double>;

 public:
  HWY_INLINE PackSum() : s0_(hn::Zero(D())), s1_(s0_) {}
  HWY_INLINE void add(const Four<V>& x) { add(hn::Add(hn::Add(x.a, x.b), hn::Add(x.c, x.d))); }
  HWY_INLINE void add(V a) {
    const hn::Half<Tag<float>> half;
    s0_ = hn::Add(s0_, hn::PromoteTo(D(), hn::LowerHalf(half, a)));
    s1_ = hn::Add(s1_, hn::PromoteTo(D(), hn::UpperHalf(half, a)));
  }
  HWY_INLINE Double2 total() const {
    return {hn::GetLane(hn::SumOfLanes(D(), hn::Add(s0_, s1_))), 0};
  }

 private:
  W s0_, s1_;
};

template <>
class PackSum<double, true> {  // compensated: Knuth's two-sum in each lane
  using D = Tag<double>;
  using V = Pack<double>;

 public:
  HWY_INLINE PackSum() : s0_(hn::Zero(D())), c0_(s0_), s1_(s0_), c1_(s0_) {}
  HWY_INLINE void add(const Four<V>& x) {
    two_sum(s0_, c0_, x.a);
    two_sum(s1_, c1_, x.b);
    two_sum(s0_, c0_, x.c);
    two_sum(s1_, c1_, x.d);
  }
  HWY_INLINE void add(V a) { two_sum(s0_, c0_, a); }
  HWY_INLINE Double2 total() const {
    V s = s0_, c = hn::Add(c0_, c1_);
    two_sum(s, c, s1_);
    HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(s, D(), lanes);
    Double2 sum{0, hn::GetLane(hn::SumOfLanes(D(), c))};
    for (size_t i = 0; i < hn::Lanes(D()); ++i) sum = HWY_NAMESPACE::add(sum, lanes[i]);
    return sum;
  }

 private:
  static HWY_INLINE void two_sum(V& s, V& c, V x) {
    const V t = hn::Add(s, x), b = hn::Sub(t, s);
    c = hn::Add(c, hn::Add(hn::Sub(s, hn::Sub(t, b)), hn::Sub(x, b)));
    s = t;
  }
  V s0_, c0_, s1_, c1_;
};

}  // namespace lipscope::softmax_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
