// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/softmax_lines.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

double logistic(double t) {
  const double e = std::exp(-std::fabs(t));
  return t >= 0 ? 1 / (1 + e) : e / (1 + e);
}
double logistic_slope(double t) {
  const double e = std::exp(-std::fabs(t));
  return e / ((1 + e) * (1 + e));
}
double log_logistic(double t) { return std::min(t, 0.0) - std::log1p(std::exp(-std::fabs(t))); }

// A line is chosen in plain arithmetic; its height is what is proved.
struct Choice {
  double slope;
  double touch;  // where it meets the concave part
};

double chord_slope(const Interval& x) {
  const double a = logistic_slope(x.lo), b = logistic_slope(x.hi);
  const double steepest = contains(x, 0) ? 0.25 : std::max(a, b);
  const double chord = (logistic(x.hi) - logistic(x.lo)) / (x.hi - x.lo);
  return x.lo < x.hi ? std::clamp(chord, std::min(a, b), steepest) : a;
}

// Where the line from the lower end touches the concave part, or the upper end if it would beyond.
double touching_point(const Interval& x) {
  const double base = logistic(x.lo);
  const auto passed = [&](double t) { return logistic(t) - base > logistic_slope(t) * (t - x.lo); };
  if (x.lo >= 0) return x.lo;
  if (!passed(x.hi)) return x.hi;
  double a = 0, b = x.hi;
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (a + b);
    (passed(middle) ? b : a) = middle;
  }
  return b;
}

// The concave envelope is the chord up to the touching point and the function beyond.
Choice choose_above(const Interval& x, double at) {
  if (x.hi <= 0) return {chord_slope(x), x.hi};
  const double reached = touching_point(x);
  if (reached == x.hi) return {chord_slope(x), x.hi};
  const double touch = std::max(at, reached);
  return {logistic_slope(touch), touch};
}

// Of s(t) - slope (t - at).
Interval excess(double t, double slope, double at) {
  return sigmoid(point(t)) - slope * (point(t) - at);
}

// The excess on a part of the line where the logistic function bends one way only, by its tangent
// at `touch`.
Interval excess_by_tangent(const Interval& part, double slope, double at, double touch) {
  const Interval t = point(touch), tangent = sigmoid(t) * sigmoid(-t);
  return excess(touch, slope, at) + (tangent - slope) * (part - touch);
}

}  // namespace

LogisticLine line_above_logistic(const Interval& range, double at) {
  const auto [slope, touch] = choose_above(range, at);
  double height = std::max(excess(range.lo, slope, at).hi, excess(range.hi, slope, at).hi);
  if (range.hi > 0) {
    const Interval concave{std::max(0.0, range.lo), range.hi};
    height = std::max(height, excess_by_tangent(concave, slope, at, touch).hi);
  }
  return {slope, at, height};
}

// s(t) = 1 - s(-t): the choice is that of the mirrored problem.
LogisticLine line_below_logistic(const Interval& range, double at) {
  const auto [slope, mirrored] = choose_above(-range, -at);
  double height = std::min(excess(range.lo, slope, at).lo, excess(range.hi, slope, at).lo);
  if (range.lo < 0) {
    const Interval convex{range.lo, std::min(0.0, range.hi)};
    height = std::min(height, excess_by_tangent(convex, slope, at, -mirrored).lo);
  }
  return {slope, at, height};
}

// Concave: the chord.
LogisticLine line_below_log_logistic(const Interval& range, double at) {
  const double flat = logistic(-range.hi), steep = logistic(-range.lo);
  const double chord = (log_logistic(range.hi) - log_logistic(range.lo)) / (range.hi - range.lo);
  const double slope = range.lo < range.hi ? std::max(flat, std::min(steep, chord)) : steep;
  const auto height = [&](double t) { return (-softplus(point(-t)) - slope * (point(t) - at)).lo; };
  return {slope, at, std::min(height(range.lo), height(range.hi))};
}

}  // namespace lipscope
