// SPDX-License-Identifier: Apache-2.0
// Lines below and above a function of one variable of which values and slopes are known
// [activations-10].
#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope {
namespace {

// Equal pieces, the middle of the interval being an end, and one more cut at 0, where most kinks
// are.
constexpr std::size_t kEqual = 8, kPieces = kEqual + 1;

using Cuts = std::array<double, kPieces + 1>;
Cuts cuts(const Interval& x) {
  Cuts at{};
  if (!is_bounded(x)) return at;
  for (std::size_t k = 0; k <= kEqual; ++k) {
    const double t = static_cast<double>(k) / kEqual;
    at[k] = std::clamp((1 - t) * x.lo + t * x.hi, x.lo, x.hi);
  }
  at[kEqual] = x.hi;
  at[kPieces] = contains(x, 0) ? 0 : x.hi;
  std::sort(at.begin(), at.end());
  return at;
}

// A function on [from, to]: its values at the ends, all its values, and its difference quotients.
struct Piece {
  double from = 0, to = 0;
  Interval start, end, range, slopes;
};
using Pieces = std::vector<Piece>;

// Not below f(x) - slope (x - at) on a piece. With a and b the steepest descent and ascent of that
// function it is at most start + b (x - from) and end + a (to - x): their weighted mean without x
// is the third bound.
double largest_excess(const Piece& p, double slope, double at) {
  const auto line = [&](double x) { return slope * (point(x) - at); };
  const Interval start = p.start - line(p.from), end = p.end - line(p.to);
  const double by_range = sub_up(p.range.hi, hull(line(p.from), line(p.to)).lo);
  const double ascent = sub_up(p.slopes.hi, slope), descent = sub_up(slope, p.slopes.lo);
  double by_slopes = kInf;
  if (ascent <= 0) {
    by_slopes = start.hi;
  } else if (descent <= 0) {
    by_slopes = end.hi;
  } else if (std::isfinite(ascent) && std::isfinite(descent)) {
    const Interval up = point(ascent), down = point(descent), width = point(p.to) - p.from;
    by_slopes = ((down * start.hi + up * end.hi + up * down * width) / (up + down)).hi;
  }
  return min_nan(by_range, by_slopes);
}

struct Vertex {
  double x, y;
};

// Vertices of a broken line above the function, in plain arithmetic.
std::vector<Vertex> outline(const Pieces& pieces) {
  std::vector<Vertex> result;
  for (const Piece& p : pieces) {
    const double width = p.to - p.from, bend = p.slopes.hi - p.slopes.lo;
    result.push_back({p.from, p.start.hi});
    result.push_back({p.to, p.end.hi});
    if (!std::isfinite(bend)) {
      result.push_back({p.from, p.range.hi});
      result.push_back({p.to, p.range.hi});
    } else if (bend > 0 && width > 0) {
      const double step = (p.end.hi - p.start.hi - p.slopes.lo * width) / bend;
      const double x = std::clamp(p.from + step, p.from, p.to);
      result.push_back({x, p.start.hi + p.slopes.hi * (x - p.from)});
    }
  }
  return result;
}

// The slope of the lowest line above the vertices at `at`, where every line has its mean.
double best_slope(const std::vector<Vertex>& vertices, double at) {
  double highest = -kInf, slope = 0;
  double above = -kInf;  // the highest vertex at `at` itself
  for (const Vertex& a : vertices) {
    if (a.x == at) above = std::max(above, a.y);
    if (!(a.x < at)) continue;
    for (const Vertex& b : vertices) {
      if (!(b.x > at)) continue;
      const double chord = (b.y - a.y) / (b.x - a.x), here = a.y + chord * (at - a.x);
      if (here > highest) highest = here, slope = chord;
    }
  }
  if (!(above > highest)) return slope;
  // The vertex itself carries the line: between the steepest chord to its right and the flattest to
  // its left.
  double least = -kInf, most = kInf;
  for (const Vertex& v : vertices) {
    if (v.x < at) most = std::min(most, (above - v.y) / (at - v.x));
    if (v.x > at) least = std::max(least, (v.y - above) / (v.x - at));
  }
  return 0.5 * (least + most);
}

struct Form {
  double weight = 0, offset = 0;
};

// The line of a slope above the function, which is at most `constant`, on x.
Form line_of_slope(const Pieces& pieces, const Interval& x, double slope, double constant) {
  const Form flat{0, constant};
  if (pieces.empty() || !std::isfinite(slope)) return flat;
  const double at = midpoint(x);
  double height = -kInf;
  for (const Piece& p : pieces) height = max_nan(height, largest_excess(p, slope, at));
  const double offset = add_up(height, mul_up(-slope, at));
  return std::isfinite(offset) ? Form{slope, offset} : flat;
}

// The lowest line above, or the one of the slope at the end where that is further from it.
Form line_above(const Pieces& pieces, const Interval& x, double constant, bool other) {
  double least = kInf, most = -kInf;
  for (const Piece& p : pieces) {
    least = std::min(least, p.slopes.lo);
    most = std::max(most, p.slopes.hi);
  }
  if (pieces.empty()) return {0, constant};
  const double at = midpoint(x);
  const double slope = std::clamp(best_slope(outline(pieces), at), least, most);
  if (other) {
    const double first = midpoint(pieces.front().slopes), last = midpoint(pieces.back().slopes);
    return line_of_slope(
        pieces, x, std::fabs(first - slope) > std::fabs(last - slope) ? first : last, constant);
  }
  const Form line = line_of_slope(pieces, x, slope, constant);
  return line.offset + line.weight * at < constant ? line : Form{0, constant};
}
Form line_below(Pieces pieces, const Interval& x, double constant, bool other) {
  for (Piece& p : pieces) {
    p.start = -p.start, p.end = -p.end, p.range = -p.range, p.slopes = -p.slopes;
  }
  const Form above = line_above(pieces, x, -constant, other);
  return {-above.weight, -above.offset};
}

// The function on every piece of every interval of a box, through the facets of the operator.
class PieceTable {
 public:
  PieceTable(const Elementwise& op, const Box& box)
      : op_(op), box_(box), whole_(range_of(box)), ends_(kPieces + 1, box.lower) {
    for (std::size_t i = 0; i < size(); ++i) {
      const Cuts at = cuts(interval(i));
      for (std::size_t k = 0; k < at.size(); ++k) ends_[k].doubles()[i] = at[k];
    }
    for (std::size_t k = 0; k <= kPieces; ++k) values_.push_back(range_of({ends_[k], ends_[k]}));
    for (std::size_t k = 0; k < kPieces; ++k) {
      ranges_.push_back(range_of({ends_[k], ends_[k + 1]}));
    }
  }
  [[nodiscard]] std::size_t size() const { return box_.lower.doubles().size(); }
  [[nodiscard]] Interval interval(std::size_t i) const { return entry(box_, i); }
  [[nodiscard]] Interval whole(std::size_t i) const { return entry(whole_, i); }
  // None for a point and for an interval that is not bounded.
  [[nodiscard]] Pieces pieces(std::size_t i) const {
    Pieces result;
    if (!is_bounded(interval(i))) return result;
    for (std::size_t k = 0; k < kPieces; ++k) {
      const double from = ends_[k].doubles()[i], to = ends_[k + 1].doubles()[i];
      if (!(from < to)) continue;
      const Interval slopes = *op_.slopes({from, to});
      result.push_back({from, to, entry(values_[k], i), entry(values_[k + 1], i),
                        entry(ranges_[k], i), is_nan(slopes) ? kEntire : slopes});
    }
    return result;
  }

 private:
  static Interval entry(const Box& box, std::size_t i) {
    return {box.lower.doubles()[i], box.upper.doubles()[i]};
  }
  [[nodiscard]] Box range_of(const Box& box) const {
    return op_.range(std::span(&box, 1))->front();
  }

  const Elementwise& op_;
  const Box& box_;
  Box whole_;
  std::vector<Tensor> ends_;
  std::vector<Box> values_, ranges_;
};

// One weight per entry.
AffineRows diagonal(std::span<const Form> forms) {
  AffineRows rows;
  for (const Form& form : forms) {
    rows.columns.push_back(std::ssize(rows.offsets));
    rows.weights.push_back(form.weight);
    rows.offsets.push_back(form.offset);
    rows.begin.push_back(std::ssize(rows.offsets));
  }
  return rows;
}

std::optional<Relaxation> lines_of(const Elementwise& op, const Box& box, bool other) {
  if (!op.slopes(point(0)) || !op.range(std::span(&box, 1))) return std::nullopt;
  const PieceTable table(op, box);
  std::vector<Form> lower(table.size()), upper(table.size());
  parallel_for(std::ssize(lower), kParallelGrain / 64, [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const Pieces pieces = table.pieces(i);
      const Interval x = table.interval(i), whole = table.whole(i);
      lower[i] = line_below(pieces, x, whole.lo, other);
      upper[i] = line_above(pieces, x, whole.hi, other);
    }
  });
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if (!std::isfinite(lower[i].offset) || !std::isfinite(upper[i].offset)) return std::nullopt;
  }
  return Relaxation{diagonal(lower), diagonal(upper)};
}

}  // namespace

std::optional<Relaxation> Elementwise::relax(std::span<const Box> in) const {
  return lines_of(*this, in[0], false);
}
std::optional<Relaxation> Elementwise::other_lines(const Box& in) const {
  return lines_of(*this, in, true);
}

}  // namespace lipscope
