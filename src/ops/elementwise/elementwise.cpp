// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ops/kind.h"

namespace lipscope {
namespace {

// -1 where the function has no value.
double largest_slope(const Elementwise& op, const Interval& x) {
  const Interval slopes = *op.slopes(x);
  return is_nan(slopes) ? -1 : magnitude(slopes);
}

// Where to cut an interval: at 0, then at powers of two until it is bounded, then in the middle.
double cut(const Interval& x) {
  if (x.lo < 0 && x.hi > 0) return 0;
  if (x.hi == kInf) return x.lo < 1 ? 1 : x.lo * 2;
  if (x.lo == -kInf) return x.hi > -1 ? -1 : x.hi * 2;
  return 0.5 * x.lo + 0.5 * x.hi;
}

// Follows the part in which the slopes are steepest, the one nearer to 0 where both are. A slope
// that is only approached looks, after rounding, as if it were taken: then the far points decide.
double steepest(const Elementwise& op, double lipschitz) {
  Interval x = kEntire;
  for (;;) {
    const double middle = cut(x);
    if (!(x.lo < middle && middle < x.hi)) break;
    const Interval left{x.lo, middle}, right{middle, x.hi};
    const double a = largest_slope(op, left), b = largest_slope(op, right);
    x = a > b || (a == b && x.lo >= 0) ? left : right;
  }
  const double found =
      largest_slope(op, point(x.lo)) >= largest_slope(op, point(x.hi)) ? x.lo : x.hi;
  for (const double t : {next_down(found), found, next_up(found)}) {
    if (mignitude(*op.slopes(point(t))) >= lipschitz) return found;
  }
  for (const double side : {1.0, -1.0}) {
    const double far = std::min(largest_slope(op, point(side * 0x1p100)),
                                largest_slope(op, point(side * 0x1p500)));
    if (far >= lipschitz) return side * kInf;
  }
  return found;
}

std::string text_of(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) {
    if (!text.empty()) text += " ";
    if (const auto* integer = std::get_if<Index>(&value)) {
      text += fmt::format("{}={}", name, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      text += fmt::format("{}={}", name, *real);
    } else if (const auto* word = std::get_if<std::string>(&value)) {
      text += fmt::format("{}={}", name, *word);
    }
  }
  return text;
}

}  // namespace

std::optional<SlopesBesideZero> slopes_beside_zero(const Elementwise& phi) {
  // A kink elsewhere is at a double, or where a saturation is reached: at 1e-309 or above.
  const auto below = phi.slopes({-kInf, -kMinSubnormal}), above = phi.slopes({kMinSubnormal, kInf});
  if (!below || !above || below->lo != below->hi || above->lo != above->hi) return std::nullopt;
  // A jump at 0 shows in the quotients across it.
  if (const auto across = phi.slopes(kEntire); !across || !is_bounded(*across)) return std::nullopt;
  return SlopesBesideZero{below->lo, above->lo};
}

std::vector<SlopeRow> slope_table() {
  std::vector<SlopeRow> rows;
  for (const OpKind& kind : op_kinds()) {
    std::set<std::string> seen;
    Rng rng(1);
    for (const OpCase& op_case : kind.cases(rng)) {
      const Imported made = import_case(kind, op_case);
      const Elementwise* op = made.op != nullptr ? made.op->elementwise() : nullptr;
      if (op == nullptr) break;
      const auto slopes = op->slopes(kEntire);
      if (!slopes || !seen.insert(text_of(op_case.attributes)).second) continue;
      rows.push_back({std::string(kind.name), text_of(op_case.attributes), *slopes,
                      magnitude(*slopes), steepest(*op, magnitude(*slopes))});
    }
  }
  return rows;
}

}  // namespace lipscope
