// SPDX-License-Identifier: Apache-2.0
#include "ops/facets/entry_bounds.h"

#include <algorithm>

#include "linalg/norm/operator_norm.h"
#include "ops/box.h"
#include "ops/integer/integers.h"

namespace lipscope {
namespace {

// Doubles as they are; integers converted outward.
std::span<const double> as_doubles(const Tensor& tensor, std::vector<double>& own, bool up) {
  if (tensor.storage() == Storage::kDouble) return tensor.doubles();
  own.resize(static_cast<std::size_t>(tensor.size()));
  for (Index i = 0; i < tensor.size(); ++i) {
    const double x = tensor.at(i);
    const bool exact = std::abs(x) < 0x1p53 || tensor.storage() != Storage::kInt64;
    own[static_cast<std::size_t>(i)] = exact ? x : up ? next_up(x) : next_down(x);
  }
  return own;
}

Interval inverse(double p) { return p == kInf ? point(0) : point(1) / p; }

}  // namespace

BoxEntries::BoxEntries(const Box& box)
    : lower_(as_doubles(box.lower, own_lower_, false)),
      upper_(as_doubles(box.upper, own_upper_, true)) {}

bool BoxEntries::moves() const { return !std::ranges::equal(lower_, upper_); }

BoxBuilder::BoxBuilder(Shape shape)
    : shape_(std::move(shape)),
      lower_(static_cast<std::size_t>(element_count(shape_))),
      upper_(lower_.size()) {}

Box BoxBuilder::finish() && { return make_box(shape_, std::move(lower_), std::move(upper_)); }

double EntryGain::value(const NormPair& norms) const {
  // Sorted by input; an input with several outputs contributes the norm of its rates.
  const auto n = static_cast<std::size_t>(moved_.size());
  std::vector<std::size_t> begin(n + 1, 0);
  for (const Index i : input_) ++begin[static_cast<std::size_t>(i) + 1];
  for (std::size_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
  std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
  std::vector<double> sorted(rate_.size());
  for (std::size_t k = 0; k < rate_.size(); ++k) {
    sorted[next[static_cast<std::size_t>(input_[k])]++] = rate_[k];
  }
  std::vector<double> columns;
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const double> own(sorted.data() + begin[i], begin[i + 1] - begin[i]);
    if (own.empty()) continue;
    columns.push_back(own.size() == 1 ? own[0] : pnorm_up(own, norms.out.p()));
  }
  return diagonal_norm_up(columns, norms);
}

Interval integer_hull(ElementType type) {
  if (type == ElementType::kUInt64) return {0, 0x1p64};
  return {static_cast<double>(smallest_integer(type)), static_cast<double>(largest_integer(type))};
}

Box integer_box(const ValueType& type) {
  BoxBuilder box(type.shape);
  for (Index i = 0; i < element_count(type.shape); ++i) box.set(i, integer_hull(type.type));
  return std::move(box).finish();
}

Gain step_gain(const Box& output) { return {is_point(output) ? 0 : kInf, "pointwise-3"}; }

double dual_exponent_down(Norm p) {
  if (p.p() == 1) return kInf;
  if (p.p() == kInf) return 1;
  return std::max(1.0, div_down(p.p(), sub_up(p.p(), 1)));
}

double interpolated_norm_up(const CornerNorms& c, const NormPair& norms) {
  const Interval a = inverse(norms.in.p()), b = inverse(norms.out.p());
  const auto positive = [](const Interval& x) {
    return Interval{std::max(0.0, x.lo), std::max(0.0, x.hi)};
  };
  const Interval sum = a + b - 1, difference = norms.in == norms.out ? point(0) : a - b;
  // Weights of the corners (1/p, 1/q) = (1,1), (0,0), (1,0), (0,1); the rest belongs to the centre.
  const Interval far = positive(sum), near = positive(-sum);
  const Interval right = positive(difference), left = positive(-difference);
  // 2 min(a, b, 1-a, 1-b).
  const Interval centre = positive(2 * min(min(a, b), min(1 - a, 1 - b)));
  const std::pair<double, Interval> parts[] = {{c.one_one, far},
                                               {c.inf_inf, near},
                                               {c.one_inf, right},
                                               {c.inf_one, left},
                                               {c.two_two, centre}};
  Interval log_norm = point(0);
  double largest = 0;
  for (const auto& [norm, weight] : parts) {
    if (norm == 0) return 0;
    if (weight.hi == 0) continue;
    if (norm == kInf) return kInf;
    largest = std::max(largest, norm);
    log_norm += weight * Interval{log_down(norm), log_up(norm)};
  }
  return std::min(largest, exp_up(log_norm.hi));
}

}  // namespace lipscope
