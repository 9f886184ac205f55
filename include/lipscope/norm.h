// SPDX-License-Identifier: Apache-2.0
// Norms, domains and bounds: what a number about a network has to say to mean anything.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "lipscope/tensor.h"

namespace lipscope {

// An lp norm on vectors, 1 <= p <= infinity.
class Norm {
 public:
  // Throws kUsage unless p >= 1 (NaN included).
  explicit Norm(double p);
  [[nodiscard]] static Norm infinity() { return Norm(std::numeric_limits<double>::infinity()); }
  [[nodiscard]] double p() const noexcept { return p_; }
  // 1/p + 1/q = 1, rounded to nearest. Exact for p = 1, 2 and infinity.
  [[nodiscard]] Norm dual() const;
  // Shortest decimal: "2", "1.5", "inf".
  [[nodiscard]] std::string name() const;
  friend bool operator==(const Norm&, const Norm&) = default;

 private:
  double p_;
};

struct NormPair {
  Norm in, out;
  // "2:2", "1:inf".
  [[nodiscard]] std::string name() const;
  friend bool operator==(const NormPair&, const NormPair&) = default;
};

// "2", "inf", "1:inf", "3:1.5"; throws kUsage with the allowed forms otherwise.
[[nodiscard]] NormPair parse_norms(std::string_view text);

// Every point x with lower <= x <= upper, entry by entry. A constant is a box of width zero, or of
// the width of the rounding that produced it.
struct Box {
  Tensor lower, upper;
};

enum class Guarantee {
  kEstimate,  // statistical or heuristic
  kReal,      // sound in real arithmetic, rounding not accounted for
  kProved,    // sound, every rounding error included
};
[[nodiscard]] std::string_view to_string(Guarantee guarantee);

struct Bound {
  double value;
  Guarantee guarantee;
  std::string method;
};

// Makes a bracket of two ends found in different ways: where they cross, the end with the weaker
// guarantee moves to the other one. Two proofs that cross are a defect: throws kInternal.
void uncross(std::optional<Bound>& lower, std::optional<Bound>& upper);

}  // namespace lipscope
