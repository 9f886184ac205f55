// SPDX-License-Identifier: Apache-2.0
#include "ops/index/resize_axis.h"

#include <algorithm>

#include "base/interval.h"
#include "lipscope/error.h"

namespace lipscope {

bool ResizeRule::is_known() const {
  const auto is_one_of = [](const std::string& text, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return text == name; });
  };
  return is_one_of(coordinates,
                   {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                    "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"}) &&
         is_one_of(nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"});
}

void AxisRows::add_term(Index source, const Interval& weight) {
  if (weight == point(0)) return;
  sources.push_back(source);
  weights.push_back(weight);
}

void AxisRows::end_row(bool is_outside) {
  begin.push_back(static_cast<Index>(sources.size()));
  outside.push_back(is_outside);
}

bool AxisRows::is_selection() const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (outside[i]) continue;
    if (begin[i + 1] - begin[i] != 1 || weights[static_cast<std::size_t>(begin[i])] != point(1)) {
      return false;
    }
  }
  return true;
}

std::vector<Index> AxisRows::selection() const {
  std::vector<Index> list;
  for (std::size_t i = 0; i < size(); ++i) {
    list.push_back(outside[i] ? -1 : sources[static_cast<std::size_t>(begin[i])]);
  }
  return list;
}

bool AxisRows::is_identity(Index length) const {
  if (static_cast<Index>(size()) != length || !is_selection()) return false;
  const std::vector<Index> list = selection();
  for (Index i = 0; i < length; ++i) {
    if (list[static_cast<std::size_t>(i)] != i) return false;
  }
  return true;
}

IndexMap::Weighted AxisRows::weighted(double extrapolation) const {
  IndexMap::Weighted rows;
  for (const Index b : begin) rows.begin.push_back(static_cast<std::int32_t>(b));
  for (const Index s : sources) rows.sources.push_back(static_cast<std::int32_t>(s));
  for (const Interval& w : weights) rows.weights.push_back(midpoint(w));
  if (std::ranges::any_of(weights, [](const Interval& w) { return w.lo != w.hi; })) {
    for (const Interval& w : weights) {
      rows.lower.push_back(w.lo);
      rows.upper.push_back(w.hi);
    }
  }
  if (extrapolation != 0 && std::find(outside.begin(), outside.end(), true) != outside.end()) {
    for (const bool o : outside) rows.constants.push_back(o ? extrapolation : 0);
  }
  return rows;
}

bool AxisRows::fits_product(const AxisRows& inner) const {
  const double terms =
      static_cast<double>(sources.size()) * static_cast<double>(inner.sources.size());
  return terms < INT32_MAX;
}

AxisRows AxisRows::product(const AxisRows& inner, Index length) const {
  AxisRows rows;
  rows.sources.reserve(sources.size() * inner.sources.size());
  rows.weights.reserve(sources.size() * inner.sources.size());
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t k = 0; k < inner.size(); ++k) {
      const bool is_outside = outside[i] || inner.outside[k];
      const Index stop = is_outside ? begin[i] : begin[i + 1];
      for (auto j = static_cast<std::size_t>(begin[i]); j < static_cast<std::size_t>(stop); ++j) {
        for (auto l = static_cast<std::size_t>(inner.begin[k]);
             l < static_cast<std::size_t>(inner.begin[k + 1]); ++l) {
          rows.sources.push_back(sources[j] * length + inner.sources[l]);
          rows.weights.push_back(weights[j] * inner.weights[l]);
        }
      }
      rows.end_row(is_outside);
    }
  }
  return rows;
}

Index axis_position(const BigInteger& position) {
  const auto found = position.to_int64();
  if (!found || std::abs(*found) > (Index{1} << 48))
    throw Error(ErrorCode::kUnsupported, "operator Resize: a position beyond any axis");
  return *found;
}

namespace {

// Where output position i lies on the input axis.
Rational coordinate(const ResizeRule& rule, Index i, Index in, Index out, const Rational& scale,
                    double begin, double end) {
  // The length before it was cut to an integer, as the ONNX reference has it.
  const Rational length = scale * in;
  const auto centred = [&] { return (Rational(2 * i + 1) / scale - 1) / 2; };
  if (rule.coordinates == "align_corners") {
    return length == 1 ? Rational(0) : Rational(i) * (in - 1) / (length - 1);
  }
  if (rule.coordinates == "asymmetric") return Rational(i) / scale;
  if (rule.coordinates == "pytorch_half_pixel") return length > 1 ? centred() : Rational(0);
  if (rule.coordinates == "half_pixel_symmetric") {
    return (Rational(in) - Rational(out) / scale) / 2 + centred();
  }
  if (rule.coordinates == "tf_half_pixel_for_nn") return Rational(2 * i + 1) / scale / 2;
  if (rule.coordinates == "tf_crop_and_resize") {
    const Rational first = Rational(begin) * (in - 1), last = Rational(end) * (in - 1);
    if (!(length > 1)) return (first + last) / 2;
    return first + (last - first) / (length - 1) * i;
  }
  return centred();
}

// The standard and its reference programs differ in where the one entry of an axis is read.
void require_agreement(const ResizeRule& rule, const Rational& length) {
  const bool cubic = rule.kernel == ResizeKernel::kCubic;
  const bool differ =
      (rule.coordinates == "pytorch_half_pixel" && length <= 1 && (cubic || length < 1)) ||
      (rule.coordinates == "tf_crop_and_resize" && length < 1);
  if (differ)
    throw Error(ErrorCode::kUnsupported,
                "operator Resize: down to one entry in mode " + rule.coordinates);
}

Index nearest(const ResizeRule& rule, const Rational& x, const Rational& scale) {
  const Index low = axis_position(x.floor());
  if (rule.nearest == "floor") return low;
  if (rule.nearest == "ceil") return axis_position(ceil(x));
  if (rule.nearest == "simple") return scale < 1 ? axis_position(ceil(x)) : low;
  const Rational half = Rational(1) / 2, ratio = x - low;
  if (rule.nearest == "round_prefer_ceil") return ratio < half ? low : low + 1;
  return ratio > half ? low + 1 : low;
}

Rational kernel(const ResizeRule& rule, const Rational& distance) {
  const Rational d = abs(distance), a(rule.cubic_a);
  if (rule.kernel == ResizeKernel::kLinear) return d < 1 ? Rational(1) - d : Rational();
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return a * (((d - 5) * d + 8) * d - 4);
  return {};
}

// One row of weights around x; positions outside the axis count for its ends or not at all.
void add_weights(const ResizeRule& rule, const Rational& x, Index in, const Rational& scale,
                 AxisRows& rows) {
  const Rational shrink = rule.antialias && scale < 1 ? scale : Rational(1);
  const Rational reach = Rational(rule.kernel == ResizeKernel::kLinear ? 1 : 2) / shrink;
  const Index first = axis_position((x - reach).floor()) + 1;
  const Index last = axis_position(ceil(x + reach)) - 1;
  std::vector<std::pair<Index, Rational>> terms;
  Rational total;
  for (Index j = first; j <= last; ++j) {
    const bool is_inside = j >= 0 && j < in;
    if (!is_inside && rule.exclude_outside) continue;
    const Rational weight = kernel(rule, shrink * (x - j));
    const Index source = std::clamp<Index>(j, 0, in - 1);
    total = total + weight;
    if (terms.empty() || terms.back().first != source) {
      terms.emplace_back(source, weight);
    } else {
      terms.back().second = terms.back().second + weight;
    }
  }
  const bool normalised = rule.antialias || rule.exclude_outside;
  if (normalised && total.sign() == 0) {
    throw Error(ErrorCode::kUnsupported, "operator Resize: weights that add up to 0");
  }
  for (const auto& [source, weight] : terms) {
    rows.add_term(source, (normalised ? weight / total : weight).hull());
  }
}

}  // namespace

AxisRows resize_axis(const ResizeRule& rule, Index in, Index out, const Rational& scale,
                     double begin, double end) {
  if (in > 1 && out > 0) require_agreement(rule, scale * in);
  AxisRows rows;
  for (Index i = 0; i < out; ++i) {
    const Rational x = coordinate(rule, i, in, out, scale, begin, end);
    if (rule.coordinates == "tf_crop_and_resize" && (x < 0 || x > in - 1)) {
      rows.end_row(true);
      continue;
    }
    if (rule.kernel == ResizeKernel::kNearest) {
      rows.add_term(std::clamp<Index>(nearest(rule, x, scale), 0, in - 1), point(1));
    } else {
      add_weights(rule, std::clamp<Rational>(x, -2 * in - 2, 3 * in + 2), in, scale, rows);
    }
    rows.end_row();
  }
  return rows;
}

}  // namespace lipscope
