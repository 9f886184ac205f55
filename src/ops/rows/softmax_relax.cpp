// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/softmax_relax.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "ops/rows/row_forms.h"
#include "ops/rows/softmax_lines.h"
#include "softmax/box.h"

namespace lipscope {
namespace {

// Of intervals without negative numbers.
Interval interval_product(const Interval& a, const Interval& b) {
  return {gain_mul_down(a.lo, b.lo), gain_mul_up(a.hi, b.hi)};
}

// Sums of all terms but one, without subtractions.
std::vector<Interval> interval_sums_of_others(std::span<const Interval> terms) {
  std::vector<Interval> result(terms.size());
  Interval after = point(0), before = point(0);
  for (std::size_t i = terms.size(); i-- > 0;) {
    result[i] = after;
    after += terms[i];
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    result[i] += before;
    before += terms[i];
  }
  return result;
}

// Sums of exp(v_j) over all entries but one; two finite entries or more.
class OtherExps {
 public:
  explicit OtherExps(std::span<const double> v) : v_(v) {
    first_ = static_cast<std::size_t>(std::max_element(v.begin(), v.end()) - v.begin());
    second_ = first_ == 0 ? 1 : 0;
    for (std::size_t j = 0; j < v.size(); ++j) {
      if (j != first_ && v[j] > v[second_]) second_ = j;
    }
    for (const double x : v) terms_.push_back(exp(point(x) - v[first_]));
    sums_ = interval_sums_of_others(terms_);
    // Without the largest entry the others need a reference of their own.
    for (const double x : v) rest_.push_back(exp(min(point(0), point(x) - v[second_])));
    rest_[first_] = point(0);
    for (const Interval& term : rest_) rest_sum_ += term;
  }
  [[nodiscard]] Interval log_sum(std::size_t i) const {
    return i == first_ ? v_[second_] + log(rest_sum_) : v_[first_] + log(sums_[i]);
  }
  // The derivatives of log_sum(i), times a slope that is not negative.
  [[nodiscard]] std::vector<Interval> gradient(std::size_t i, double slope) const {
    const Interval factor = slope / (i == first_ ? rest_sum_ : sums_[i]);
    std::vector<Interval> result;
    for (const Interval& term : i == first_ ? rest_ : terms_) {
      result.push_back(interval_product(factor, term));
    }
    result[i] = point(0);
    return result;
  }

 private:
  std::span<const double> v_;
  std::size_t first_ = 0, second_ = 0;
  std::vector<Interval> terms_, sums_, rest_;
  Interval rest_sum_ = point(0);
};

// The functions t_i = x_i - log(sum of exp(x_j) over the others) on a box: softmax is logistic(t),
// and every t_i is concave [softmax-17].
class Contrasts {
 public:
  Contrasts(const Group& x, const RowMiddle& middle) : exps_(middle.at), middle_(middle) {
    const OtherExps lower(x.lower), upper(x.upper);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ranges_.push_back({(x.lower[i] - upper.log_sum(i)).lo, (x.upper[i] - lower.log_sum(i)).hi});
    }
  }
  [[nodiscard]] const Interval& range(std::size_t i) const { return ranges_[i]; }
  [[nodiscard]] Interval at_middle(std::size_t i) const { return middle_.at[i] - exps_.log_sum(i); }
  // The tangent plane in the middle, times a slope.
  [[nodiscard]] std::vector<Interval> gradient(std::size_t i, double slope) const {
    std::vector<Interval> result = exps_.gradient(i, slope);
    for (Interval& entry : result) entry = -entry;
    result[i] = point(slope);
    return result;
  }

 private:
  OtherExps exps_;
  const RowMiddle& middle_;
  std::vector<Interval> ranges_;
};

// With y_j = x_j, or y_j = x_j - x_k for a reference k, every exp(y_j) is replaced by its chord:
// log softmax_i >= y_i - log(sum of chords) and t_i >= y_i - log(sum of chords without i), both
// convex [softmax-18].
class Chords {
 public:
  Chords(const Group& x, const RowMiddle& middle, std::optional<std::size_t> reference)
      : reference_(reference) {
    const std::size_t n = x.size();
    std::vector<Interval> ranges(n);
    double top = -kInf;
    for (std::size_t j = 0; j < n; ++j) {
      const Interval entry = x[j], at = point(middle.at[j]);
      if (!reference) {
        ranges[j] = entry, y_.push_back(at);
      } else if (j == *reference) {
        ranges[j] = point(0), y_.push_back(point(0));
      } else {
        ranges[j] = entry - x[*reference], y_.push_back(at - middle.at[*reference]);
      }
      top = std::max(top, ranges[j].hi);
    }
    for (std::size_t j = 0; j < n; ++j) add_chord(ranges[j], y_[j], top);
    for (Interval& y : y_) y = y - top;
    others_ = interval_sums_of_others(heights_);
    for (const Interval& height : heights_) sum_ += height;
  }

  // Lower bounds in the middle of log softmax_i and of t_i.
  [[nodiscard]] Interval log_share(std::size_t i) const { return y_[i] - log(sum_); }
  [[nodiscard]] Interval contrast(std::size_t i) const { return y_[i] - log(others_[i]); }
  // Tangent planes of the two in the middle, times `slope`.
  [[nodiscard]] std::vector<Interval> log_share_gradient(std::size_t i,
                                                         const Interval& slope) const {
    std::vector<Interval> result;
    const Interval factor = slope / sum_;
    for (const Interval& s : slopes_) result.push_back(-interval_product(factor, s));
    result[i] += slope;
    return in_entries(std::move(result));
  }
  [[nodiscard]] std::vector<Interval> contrast_gradient(std::size_t i, double slope) const {
    std::vector<Interval> result;
    const Interval factor = slope / others_[i];
    for (const Interval& s : slopes_) result.push_back(-interval_product(factor, s));
    result[i] = point(slope);
    return in_entries(std::move(result));
  }

 private:
  // The chord of exp(y - top) over a range, at y.
  void add_chord(const Interval& range, const Interval& y, double top) {
    const Interval a = exp(point(range.lo) - top), b = exp(point(range.hi) - top);
    const Interval between{a.lo, b.hi};  // holds its slope, too
    Interval slope = between;
    if (range.lo < range.hi) {
      slope = intersect((b - a) / (point(range.hi) - range.lo), between);
    }
    slopes_.push_back(slope);
    heights_.push_back(intersect(a + slope * (y - range.lo), between));
  }
  // From derivatives by y to derivatives by x.
  [[nodiscard]] std::vector<Interval> in_entries(std::vector<Interval> g) const {
    if (!reference_) return g;
    Interval& own = g[*reference_];
    own = point(0);
    Interval sum = point(0);
    for (const Interval& entry : g) sum += entry;
    own = -sum;
    return g;
  }

  std::optional<std::size_t> reference_;
  std::vector<Interval> y_, slopes_, heights_, others_;
  Interval sum_ = point(0);
};

// 1 minus the sum of the other entries' upper forms [softmax-19].
class Complement {
 public:
  Complement(const RowForms& upper, const RowMiddle& middle) : upper_(upper) {
    const std::size_t n = middle.at.size();
    std::vector<Interval> heights;
    columns_.assign(n, point(0));
    for (std::size_t i = 0; i < n; ++i) {
      const std::span weights = std::span(upper.weights).subspan(i * n, n);
      heights.push_back(dot_enclosure(weights, middle.at) + upper.offsets[i]);
      for (std::size_t j = 0; j < n; ++j) columns_[j] += point(weights[j]);
    }
    others_ = interval_sums_of_others(heights);
  }
  [[nodiscard]] Interval height(std::size_t i) const { return 1 - others_[i]; }
  [[nodiscard]] std::vector<Interval> gradient(std::size_t i) const {
    std::vector<Interval> result;
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      result.push_back(upper_.weights[i * columns_.size() + j] - columns_[j]);
    }
    return result;
  }

 private:
  const RowForms& upper_;
  std::vector<Interval> columns_, others_;
};

RowRelaxation constants(std::span<const Interval> ranges) {
  RowRelaxation result;
  for (RowForms* forms : {&result.lower, &result.upper}) {
    forms->weights.resize(ranges.size() * ranges.size());
  }
  for (const Interval& range : ranges) {
    result.lower.offsets.push_back(range.lo);
    result.upper.offsets.push_back(range.hi);
  }
  return result;
}

// Without a reference, and with each of the two largest entries as one.
std::vector<Chords> all_chords(const Group& x, const RowMiddle& middle) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::partial_sort(order.begin(), order.begin() + 2, order.end(),
                    [&](std::size_t i, std::size_t j) { return middle.at[i] > middle.at[j]; });
  return {{x, middle, std::nullopt}, {x, middle, order[0]}, {x, middle, order[1]}};
}

// Of several planes below one entry, the one highest in the middle of the box, which is where each
// has its mean over the box. Only the gradient of the last one offered is made.
class Highest {
 public:
  explicit Highest(double constant) : constant_(constant), height_(point(constant)) {}
  void offer(const Interval& height, std::function<std::vector<Interval>()> gradient) {
    if (!is_bounded(height) || height.lo <= height_.lo) return;
    height_ = height;
    gradient_ = std::move(gradient);
  }
  void write(RowFormWriter& out, std::size_t i) const {
    if (!gradient_ || !out.plane(i, {height_, gradient_()})) out.constant(i, constant_);
  }

 private:
  double constant_;
  Interval height_;
  std::function<std::vector<Interval>()> gradient_;
};

// A line below a rising function of t_i, at a lower bound of t_i.
void offer_line(Highest& best, const Chords& chords, std::size_t i, const Interval& range,
                LogisticLine (*line_below)(const Interval&, double)) {
  const Interval t = chords.contrast(i);
  if (!is_bounded(range) || !is_bounded(t)) return;
  const LogisticLine line = line_below(range, std::clamp(midpoint(t), range.lo, range.hi));
  best.offer(line(t), [&chords, i, line] { return chords.contrast_gradient(i, line.slope); });
}

RowForms softmax_above(const Contrasts& contrasts, const RowMiddle& middle,
                       std::span<const Interval> ranges) {
  RowFormWriter out(middle, 1);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Interval range = contrasts.range(i), t = contrasts.at_middle(i);
    bool written = false;
    if (is_bounded(range)) {
      const LogisticLine line =
          line_above_logistic(range, std::clamp(midpoint(t), range.lo, range.hi));
      const Interval height = line(t);
      written =
          height.hi < ranges[i].hi && out.plane(i, {height, contrasts.gradient(i, line.slope)});
    }
    if (!written) out.constant(i, ranges[i].hi);
  }
  return std::move(out).forms();
}

RowForms softmax_below(const Group& x, const Contrasts& contrasts, const RowMiddle& middle,
                       std::span<const Interval> ranges, const RowForms& above) {
  const std::vector<Chords> candidates = all_chords(x, middle);
  const Complement complement(above, middle);
  RowFormWriter out(middle, -1);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    Highest best(ranges[i].lo);
    for (const Chords& chords : candidates) {
      const Interval share = exp(chords.log_share(i));
      best.offer(share, [&, i, share] { return chords.log_share_gradient(i, share); });
      offer_line(best, chords, i, contrasts.range(i), line_below_logistic);
    }
    best.offer(complement.height(i), [&] { return complement.gradient(i); });
    best.write(out, i);
  }
  return std::move(out).forms();
}

RowForms log_softmax_above(const RowMiddle& middle, std::span<const Interval> ranges) {
  const Group there{middle.at, middle.at};
  const SoftmaxTails tails(there);
  const std::vector<ShareRange> shares = softmax_ranges({middle.at, middle.at});
  RowFormWriter out(middle, 1);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    std::vector<Interval> gradient;
    for (const ShareRange& s : shares) gradient.push_back(-s.share);
    gradient[i] = shares[i].rest;
    const Interval height = tails.log_share(i);
    const bool better = height.hi < ranges[i].hi;
    if (!better || !out.plane(i, {height, std::move(gradient)})) out.constant(i, ranges[i].hi);
  }
  return std::move(out).forms();
}

RowForms log_softmax_below(const Group& x, const RowMiddle& middle,
                           std::span<const Interval> ranges) {
  const Contrasts contrasts(x, middle);
  const std::vector<Chords> candidates = all_chords(x, middle);
  RowFormWriter out(middle, -1);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    Highest best(ranges[i].lo);
    for (const Chords& chords : candidates) {
      best.offer(chords.log_share(i), [&, i] { return chords.log_share_gradient(i, point(1)); });
      offer_line(best, chords, i, contrasts.range(i), line_below_log_logistic);
    }
    best.write(out, i);
  }
  return std::move(out).forms();
}

// Forms of rows, put together. Entries of a row of length n have n weights each.
class FormsBuilder {
 public:
  FormsBuilder(const RowSplit& split, Index entries) : split_(split) {
    const auto length = static_cast<std::size_t>(split.length);
    const auto n = static_cast<std::size_t>(entries);
    all_.offsets.resize(n);
    all_.columns.resize(n * length);
    all_.weights.resize(n * length);
    all_.begin.resize(n + 1);
    for (std::size_t k = 0; k <= n; ++k) all_.begin[k] = static_cast<Index>(k * length);
  }
  // The row whose first entry is at `start`; false if an offset is infinite.
  bool add(Index start, const RowForms& forms) {
    const auto length = static_cast<std::size_t>(split_.length);
    bool finite = true;
    for (std::size_t i = 0; i < length; ++i) {
      const auto entry = static_cast<std::size_t>(place(start, i));
      all_.offsets[entry] = forms.offsets[i];
      finite = finite && std::isfinite(forms.offsets[i]);
      for (std::size_t j = 0; j < length; ++j) {
        all_.columns[entry * length + j] = place(start, j);
        all_.weights[entry * length + j] = forms.weights[i * length + j];
      }
    }
    return finite;
  }
  [[nodiscard]] AffineRows finish() && { return std::move(all_); }

 private:
  [[nodiscard]] Index place(Index start, std::size_t i) const {
    return start + static_cast<Index>(i) * split_.inner;
  }

  RowSplit split_;
  AffineRows all_;
};

}  // namespace

RowRelaxation relax_softmax(const Group& x) {
  std::vector<Interval> ranges;
  for (const ShareRange& r : softmax_ranges({x.lower, x.upper})) ranges.push_back(r.share);
  if (x.size() < 2 || !is_bounded_group(x)) return constants(ranges);
  const RowMiddle middle(x);
  const Contrasts contrasts(x, middle);
  RowForms above = softmax_above(contrasts, middle, ranges);
  RowForms below = softmax_below(x, contrasts, middle, ranges, above);
  return {std::move(below), std::move(above)};
}

RowRelaxation relax_log_softmax(const Group& x) {
  const SoftmaxTails tails(x);
  std::vector<Interval> ranges;
  for (std::size_t i = 0; i < x.size(); ++i) ranges.push_back(tails.log_share(i));
  if (x.size() < 2 || !is_bounded_group(x)) return constants(ranges);
  const RowMiddle middle(x);
  return {log_softmax_below(x, middle, ranges), log_softmax_above(middle, ranges)};
}

std::optional<Relaxation> relax_rows(const Box& box, const RowSplit& split,
                                     RowRelaxation (*relax)(const Group&)) {
  const BoxEntries x(box);
  FormsBuilder lower(split, x.size()), upper(split, x.size());
  std::vector<double> low(static_cast<std::size_t>(split.length)), high(low.size());
  for (Index row = 0; row < (low.empty() ? 0 : split.rows()); ++row) {
    const Index start = split.start(row);
    for (std::size_t i = 0; i < low.size(); ++i) {
      const Interval entry = x[start + static_cast<Index>(i) * split.inner];
      low[i] = entry.lo, high[i] = entry.hi;
    }
    const RowRelaxation forms = relax({low, high});
    if (!lower.add(start, forms.lower) || !upper.add(start, forms.upper)) return std::nullopt;
  }
  return Relaxation{std::move(lower).finish(), std::move(upper).finish()};
}

}  // namespace lipscope
