// SPDX-License-Identifier: Apache-2.0
// Tools for the range and gain facets of operators that combine entries. Theory: [pointwise-*] and
// [normalisation-*] in docs/theory.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/interval.h"
#include "lipscope/op.h"

namespace lipscope {

// Reads a box entry by entry, whatever the storage. A NaN reads as the whole line, an infinite
// constant as the half line beyond the largest double.
class BoxEntries {
 public:
  explicit BoxEntries(const Box& box);
  BoxEntries(const BoxEntries&) = delete;
  BoxEntries& operator=(const BoxEntries&) = delete;

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(lower_.size()); }
  [[nodiscard]] Interval operator[](Index i) const {
    const auto k = static_cast<std::size_t>(i);
    const double lo = lower_[k], hi = upper_[k];
    if (lo != lo || hi != hi) return kEntire;
    return {lo == kInf ? kMaxDouble : lo, hi == -kInf ? -kMaxDouble : hi};
  }
  // False for an entry that is one number.
  [[nodiscard]] bool moves(Index i) const {
    const auto k = static_cast<std::size_t>(i);
    return !(lower_[k] == upper_[k]);
  }
  [[nodiscard]] bool moves() const;

 private:
  std::vector<double> own_lower_, own_upper_;
  std::span<const double> lower_, upper_;
};

// Collects the entries of a box; NaN is stored as the whole line.
class BoxBuilder {
 public:
  explicit BoxBuilder(Shape shape);
  void set(Index i, const Interval& value) {
    const auto k = static_cast<std::size_t>(i);
    const bool nan = is_nan(value);
    lower_[k] = nan ? -kInf : value.lo == kInf ? kMaxDouble : value.lo;
    upper_[k] = nan ? kInf : value.hi == -kInf ? -kMaxDouble : value.hi;
  }
  [[nodiscard]] Interval at(Index i) const {
    const auto k = static_cast<std::size_t>(i);
    return {lower_[k], upper_[k]};
  }
  [[nodiscard]] Box finish() &&;

 private:
  Shape shape_;
  std::vector<double> lower_, upper_;
};

// Gain of a map in which each output entry follows one entry of the moved input, and changes by at
// most `rate` times as much [pointwise-1]. Inputs that are one number do not count.
class EntryGain {
 public:
  explicit EntryGain(const BoxEntries& moved) : moved_(moved) {}
  // Once per output entry.
  void follow(Index input, double rate) {
    if (rate == 0 || !moved_.moves(input)) return;
    input_.push_back(input);
    rate_.push_back(rate);
  }
  [[nodiscard]] double value(const NormPair& norms) const;

 private:
  const BoxEntries& moved_;
  std::vector<Index> input_;
  std::vector<double> rate_;
};

// Every value of an integer type, as reals.
[[nodiscard]] Interval integer_hull(ElementType type);
// All tensors of such values.
[[nodiscard]] Box integer_box(const ValueType& type);

// Gain of a function with steps [pointwise-3]: 0 where the output is known to be one point.
[[nodiscard]] Gain step_gain(const Box& output);

// The exponent dual to p, rounded down: norms with it are not below those with the exact one.
[[nodiscard]] double dual_exponent_down(Norm p);

// Upper bounds of five norms of a family of matrices, the last valid over complex vectors too.
struct CornerNorms {
  double one_one = kInf, inf_inf = kInf, two_two = kInf, one_inf = kInf, inf_one = kInf;
};
// Upper bound of the p -> q norm of the family [normalisation-2].
[[nodiscard]] double interpolated_norm_up(const CornerNorms& corners, const NormPair& norms);

}  // namespace lipscope
