// SPDX-License-Identifier: Apache-2.0
#include "net/unit_form.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "net/unit_network.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope {
namespace {

// phi(0) = 0, so that the slopes say all.
bool crosses_zero(const Elementwise& phi) {
  const Tensor zero = Tensor::vector(std::vector<double>{0.0});
  const Box at{zero, zero};
  const auto value = phi.range(std::span(&at, 1));
  return value && (*value)[0].lower.doubles()[0] == 0 && (*value)[0].upper.doubles()[0] == 0;
}

UnitLines lines_by_operator(const Elementwise& phi, const Interval& z) {
  const Box box{Tensor::vector(std::vector<double>{z.lo}),
                Tensor::vector(std::vector<double>{z.hi})};
  const auto lines = phi.relax(std::span(&box, 1));
  const auto line = [](const AffineRows& rows) {
    return UnitLine{rows.weights.empty() ? 0 : rows.weights[0], rows.offsets[0]};
  };
  UnitLines found{{0, kInf}, {0, -kInf}, kInf};
  if (!lines) return found;
  found.up = line(lines->upper);
  found.down = line(lines->lower);
  const auto at_end = [](const UnitLine& l, double end) {
    return point(l.slope) * point(end) + point(l.offset);
  };
  const Interval top = hull(at_end(found.up, z.lo), at_end(found.up, z.hi));
  const Interval bottom = hull(at_end(found.down, z.lo), at_end(found.down, z.hi));
  found.size = std::max(std::fabs(top.hi), std::fabs(bottom.lo));
  if (std::isnan(found.size)) found.size = kInf;
  return found;
}

// Kinks that cannot be told apart make no pieces.
std::shared_ptr<const LinearPieces> pieces_apart(const Elementwise& phi) {
  auto made = phi.linear_pieces();
  if (!made || made->kinks.empty() || !std::ranges::all_of(made->kinks, is_bounded)) return nullptr;
  for (std::size_t i = 0; i + 1 < made->kinks.size(); ++i) {
    if (!(made->kinks[i].hi < made->kinks[i + 1].lo)) return nullptr;
  }
  return std::make_shared<const LinearPieces>(*std::move(made));
}

// The part of the range that a piece may have.
Interval part_of(const UnitForm& form, std::size_t piece, const Interval& range) {
  const double lo = piece == 0 ? -kInf : form.kink(piece - 1).lo;
  const double hi = piece + 1 == form.pieces() ? kInf : form.kink(piece).hi;
  // Ranges between the ends of what is known of a kink have both.
  return {std::min(std::max(range.lo, lo), range.hi), std::max(std::min(range.hi, hi), range.lo)};
}

// The line above the graph, or below it for `sign` -1, with this slope.
UnitLine line_beside(const UnitForm& form, const Interval& range, double slope, double sign) {
  const auto [first, last] = form.on(range);
  double top = -kInf;
  for (std::size_t i = first; i <= last; ++i) {
    const auto [own, offset] = form.piece(i);
    const Interval part = part_of(form, i, range);
    for (const double end : {part.lo, part.hi}) {
      const Interval way = (point(own) - point(slope)) * Interval{end, end} + offset;
      top = max_nan(top, sign > 0 ? way.hi : -way.lo);
    }
  }
  return {slope, std::isnan(top) ? sign * kInf : sign * top};
}

// The best lines at the middle of the range, through two corners of the graph.
UnitLines lines_by_corners(const UnitForm& form, const Interval& range) {
  const auto [first, last] = form.on(range);
  UnitLines found{{0, kInf}, {0, -kInf}, magnitude(values_of(form, range))};
  if (first == last) {
    const auto [slope, offset] = form.piece(first);
    found.up = {slope, offset.hi};
    found.down = {slope, offset.lo};
    return found;
  }
  std::vector<double> slopes, corners{range.lo};
  for (std::size_t i = first; i < last; ++i) corners.push_back(midpoint(form.kink(i)));
  corners.push_back(range.hi);
  for (std::size_t i = first; i <= last; ++i) slopes.push_back(form.piece(i).slope);
  const auto value = [&](std::size_t c) {
    const auto [slope, offset] = form.piece(std::min(first + c, last));
    return slope * corners[c] + midpoint(offset);
  };
  for (std::size_t c = 0; c < corners.size(); ++c) {
    for (std::size_t d = c + 2; d < corners.size(); ++d)
      slopes.push_back((value(d) - value(c)) / (corners[d] - corners[c]));
  }
  const double middle = midpoint(range);
  for (const double slope : slopes) {
    if (!std::isfinite(slope)) continue;
    const UnitLine up = line_beside(form, range, slope, 1),
                   down = line_beside(form, range, slope, -1);
    const auto at_middle = [&](const UnitLine& line) { return line.slope * middle + line.offset; };
    if (at_middle(up) < at_middle(found.up)) found.up = up;
    if (at_middle(down) > at_middle(found.down)) found.down = down;
  }
  return found;
}

}  // namespace

std::size_t UnitForm::pieces() const {
  if (linear) return linear->pieces.size();
  return std::isnan(below) ? 1 : 2;
}

Interval UnitForm::kink(std::size_t i) const { return linear ? linear->kinks[i] : point(0); }

LinearPiece UnitForm::piece(std::size_t i) const {
  if (linear) return linear->pieces[i];
  return {i > 0 ? above : below, point(0)};
}

PieceSpan UnitForm::on(const Interval& range) const {
  PieceSpan span;
  const std::size_t kinks = pieces() - 1;
  while (span.first < kinks && kink(span.first).hi <= range.lo) ++span.first;
  while (span.last < kinks && kink(span.last).lo < range.hi) ++span.last;
  span.last = std::max(span.first, span.last);
  return span;
}

bool UnitForm::is_unstable(const Interval& range) const {
  if (below == above) return false;
  if (linear) return !on(range).single();
  return std::isnan(below) || (range.lo < 0 && range.hi > 0);
}

Interval values_of(const UnitForm& form, const Interval& range) {
  const auto [first, last] = form.on(range);
  Interval all = kNoInterval;
  for (std::size_t i = first; i <= last; ++i) {
    const auto [slope, offset] = form.piece(i);
    const Interval values = point(slope) * part_of(form, i, range) + offset;
    all = i == first ? values : hull(all, values);
  }
  return all;
}

NodeForms::NodeForms(const UnitNode& node) : below_(node.below) {
  if (!below_.empty()) return;
  common_ = {0, 1, {0, 1}, nullptr, nullptr};
  if (node.origin == nullptr) return;  // relu(b - a) of a maximum
  const Elementwise* phi = node.origin->op->elementwise();
  const auto beside = slopes_beside_zero(*phi);
  const bool kinked =
      beside && std::isfinite(beside->below) && std::isfinite(beside->above) && crosses_zero(*phi);
  common_ = {kinked ? beside->below : kNaN, kinked ? beside->above : kNaN,
             phi->slopes({-kInf, kInf}).value_or(Interval{-kInf, kInf}), phi,
             kinked ? nullptr : pieces_apart(*phi)};
}

UnitForm NodeForms::operator[](std::size_t i) const {
  if (below_.empty()) return common_;
  return {below_[i], 1, hull(point(below_[i]), point(1)), nullptr, nullptr};
}

UnitLines lines_of(const UnitForm& form, const Interval& range) {
  const auto [l, u] = range;
  const double a = form.below, b = form.above;
  if (form.linear) return lines_by_corners(form, range);
  if (std::isnan(a)) return lines_by_operator(*form.phi, range);
  UnitLines found;
  found.size = std::max(mul_up(std::fabs(a), l < 0 ? -l : 0), mul_up(std::fabs(b), u > 0 ? u : 0));
  if (a == b || l >= 0) {
    found.up = found.down = {b, 0};
  } else if (u <= 0) {
    found.up = found.down = {a, 0};
  } else {
    const double slope = (b * u - a * l) / (u - l);
    const UnitLine flat{u > -l ? b : a, 0};
    // (slope of the side - slope) * end, at both ends.
    if (a <= b) {
      const double offset = std::max(mul_up(sub_down(a, slope), l), mul_up(sub_up(b, slope), u));
      found.up = {slope, std::max(offset, 0.0)};
      found.down = flat;
    } else {
      const double offset =
          std::min(mul_down(sub_up(a, slope), l), mul_down(sub_down(b, slope), u));
      found.up = flat;
      found.down = {slope, std::min(offset, 0.0)};
    }
  }
  return found;
}

}  // namespace lipscope
