// SPDX-License-Identifier: Apache-2.0
#include "pieces/unit_form.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "ops/elementwise.h"
#include "sdp/network.h"

namespace lipscope {
namespace {

constexpr double kTiny = 1e-300;

double slope_on(const Elementwise& phi, const Interval& x) {
  const auto slope = phi.slopes(x);
  return slope && slope->lo == slope->hi ? slope->lo : kNaN;
}

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
    return Line{rows.weights.empty() ? 0 : rows.weights[0], rows.offsets[0]};
  };
  UnitLines found{{0, kInf}, {0, -kInf}, kInf};
  if (!lines) return found;
  found.up = line(lines->upper);
  found.down = line(lines->lower);
  const auto at_end = [](const Line& l, double end) {
    return point(l.slope) * point(end) + point(l.offset);
  };
  const Interval top = hull(at_end(found.up, z.lo), at_end(found.up, z.hi));
  const Interval bottom = hull(at_end(found.down, z.lo), at_end(found.down, z.hi));
  found.size = std::max(std::fabs(top.hi), std::fabs(bottom.lo));
  if (std::isnan(found.size)) found.size = kInf;
  return found;
}

}  // namespace

bool UnitForm::is_open(const Interval& range) const {
  if (below == above) return false;
  return std::isnan(below) || (range.lo < 0 && range.hi > 0);
}

UnitForm form_of(const SdpNode& node) {
  if (node.origin == nullptr) return {0, 1, {0, 1}, nullptr};  // relu(b - a) of a maximum
  const auto* phi = dynamic_cast<const Elementwise*>(node.origin->op.get());
  const double low = slope_on(*phi, {-kInf, -kTiny}), high = slope_on(*phi, {kTiny, kInf});
  const bool kinked = std::isfinite(low) && std::isfinite(high) && crosses_zero(*phi);
  return {kinked ? low : kNaN, kinked ? high : kNaN,
          phi->slopes({-kInf, kInf}).value_or(Interval{-kInf, kInf}), phi};
}

UnitLines lines_of(const UnitForm& form, const Interval& range) {
  const auto [l, u] = range;
  const double a = form.below, b = form.above;
  if (std::isnan(a)) return lines_by_operator(*form.phi, range);
  UnitLines found;
  found.size = std::max(mul_up(std::fabs(a), l < 0 ? -l : 0), mul_up(std::fabs(b), u > 0 ? u : 0));
  if (a == b || l >= 0) {
    found.up = found.down = {b, 0};
  } else if (u <= 0) {
    found.up = found.down = {a, 0};
  } else {
    const double slope = (b * u - a * l) / (u - l);
    const Line flat{u > -l ? b : a, 0};
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
