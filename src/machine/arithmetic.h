// SPDX-License-Identifier: Apache-2.0
// Numbers as a machine computes them: how far they can be from the real ones [robustness-6].
//
//   const Computed y = machine.add(machine.mul(machine.stored(alpha), x), machine.stored(beta));
//   if (y.error < kInf) ...   // no overflow, no invalid operation
//
// A number of the file becomes a Computed by stored() alone, which rounds it to the format and
// looks at its range: what an operator stores cannot be used without being rounded.
#pragma once

#include <functional>

#include "base/interval.h"
#include "machine/number_format.h"

namespace lipscope {

// The real number lies in `real`, the one computed for it is no farther away than `error`.
// Infinity: it may be anything, NaN and the infinities included.
struct Computed {
  Interval real;
  double error = 0;

  // Of what is computed, at most.
  [[nodiscard]] double size() const { return add_up(magnitude(real), error); }
  // Where what is computed lies.
  [[nodiscard]] Interval seen() const { return {sub_down(real.lo, error), add_up(real.hi, error)}; }
};

class Machine {
 public:
  // Sums of many terms are kept in a format of their own until they are complete. `flush`: numbers
  // below the normal ones may be taken for zero, as operands and as results.
  Machine(const NumberFormat& values, const NumberFormat& sums, bool flush)
      : values_(values), sums_(sums), flush_(flush) {}

  [[nodiscard]] const NumberFormat& values() const noexcept { return values_; }
  [[nodiscard]] const NumberFormat& sums() const noexcept { return sums_; }
  [[nodiscard]] bool flush() const noexcept { return flush_; }
  // What a small result can be off by.
  [[nodiscard]] double lost(const NumberFormat& format) const {
    return flush_ ? format.normal : format.tiny;
  }

  // A number of the file, or of the input, rounded to the format or kept as it is.
  [[nodiscard]] Computed stored(double number) const { return stored(point(number)); }
  [[nodiscard]] Computed stored(const Interval& number) const;

  // Operations whose result is rounded to the format of values.
  [[nodiscard]] Computed add(const Computed& a, const Computed& b) const;
  [[nodiscard]] Computed sub(const Computed& a, const Computed& b) const;
  [[nodiscard]] Computed mul(const Computed& a, const Computed& b) const;
  // Also as a product with the reciprocal.
  [[nodiscard]] Computed div(const Computed& a, const Computed& b) const;
  [[nodiscard]] Computed sqrt(const Computed& a) const;
  // The value of a function of the library, four units in the last place off at most, and
  // `absolute` besides; `real` its values, `error` what comes from the argument.
  [[nodiscard]] Computed library(const Interval& real, double error, double absolute = 0) const;

  // Exact: comparisons and signs.
  [[nodiscard]] static Computed max(const Computed& a, const Computed& b);
  [[nodiscard]] static Computed min(const Computed& a, const Computed& b);

  // A function that is one thing for numbers below a boundary and another for the rest.
  using Branch = std::function<Computed(const Computed&)>;
  [[nodiscard]] static Computed branch(const Computed& x, double boundary, const Branch& below,
                                       const Branch& from);

 private:
  [[nodiscard]] Computed rounded(const Interval& real, double error, bool may_underflow) const;
  [[nodiscard]] Computed quotient(const Computed& a, const Computed& b) const;

  NumberFormat values_, sums_;
  bool flush_;
};

// Nothing is known of it.
[[nodiscard]] inline Computed unknown(const Interval& real) { return {real, kInf}; }

// Errors of functions of the library [robustness-6]: in units in the last place, and of rational
// approximations in float32 besides.
inline constexpr double kLibraryUlps = 4;
inline constexpr double kApproximation = 0x1p-21;

}  // namespace lipscope
