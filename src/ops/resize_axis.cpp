// SPDX-License-Identifier: Apache-2.0
#include "ops/resize_axis.h"

#include <algorithm>
#include <cmath>

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

void AxisRows::add_term(Index source, double weight) {
  if (weight == 0) return;
  if (static_cast<Index>(sources.size()) > begin.back() && sources.back() == source) {
    weights.back() += weight;
    return;
  }
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
    if (begin[i + 1] - begin[i] != 1 || weights[static_cast<std::size_t>(begin[i])] != 1) {
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
  rows.weights = weights;
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

namespace {

// Where output position i lies on the input axis.
double coordinate(const ResizeRule& rule, Index i, double in, double out, double scale,
                  double begin, double end) {
  const auto x = static_cast<double>(i);
  // The length before it was cut to an integer, as the ONNX reference has it.
  const double length = scale * in;
  const double centred = (x + 0.5) / scale - 0.5;
  if (rule.coordinates == "align_corners") {
    return length == 1 ? 0 : x * (in - 1) / (length - 1);
  }
  if (rule.coordinates == "asymmetric") return x / scale;
  if (rule.coordinates == "pytorch_half_pixel") return length == 1 ? -0.5 : centred;
  if (rule.coordinates == "half_pixel_symmetric") {
    return in / 2 * (1 - out / length) + centred;
  }
  if (rule.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (rule.coordinates == "tf_crop_and_resize") {
    const double width = (end - begin) * (in - 1);
    return begin * (in - 1) + (length == 1 ? width / 2 : x * width / (length - 1));
  }
  return centred;
}

double nearest(const ResizeRule& rule, double x, double scale) {
  const double low = std::floor(x), ratio = x - low;
  if (rule.nearest == "floor") return low;
  if (rule.nearest == "ceil") return std::ceil(x);
  if (rule.nearest == "simple") return scale < 1 ? std::ceil(x) : low;
  if (rule.nearest == "round_prefer_ceil") return ratio < 0.5 ? low : low + 1;
  return ratio <= 0.5 ? low : low + 1;
}

double kernel(const ResizeRule& rule, double distance) {
  const double d = std::abs(distance), a = rule.cubic_a;
  if (rule.kernel == ResizeKernel::kLinear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// One row of weights around x; positions outside the axis count for its ends or not at all.
void add_weights(const ResizeRule& rule, double x, Index in, double scale, AxisRows& rows) {
  const double shrink = rule.antialias ? std::min(scale, 1.0) : 1;
  const double reach = (rule.kernel == ResizeKernel::kLinear ? 1 : 2) / shrink;
  const double first = std::floor(x - reach) + 1, last = std::ceil(x + reach) - 1;
  double total = 0;
  const auto visit = [&](auto&& term) {
    for (double j = first; j <= last; ++j) {
      const bool is_inside = j >= 0 && j < static_cast<double>(in);
      if (!is_inside && rule.exclude_outside) continue;
      term(std::clamp<double>(j, 0, static_cast<double>(in - 1)), kernel(rule, shrink * (j - x)));
    }
  };
  visit([&](double, double weight) { total += weight; });
  if (!rule.antialias && !rule.exclude_outside) total = 1;
  visit([&](double j, double weight) { rows.add_term(static_cast<Index>(j), weight / total); });
}

}  // namespace

AxisRows resize_axis(const ResizeRule& rule, Index in, Index out, double scale, double begin,
                     double end) {
  AxisRows rows;
  const auto length = static_cast<double>(in);
  for (Index i = 0; i < out; ++i) {
    double x = coordinate(rule, i, length, static_cast<double>(out), scale, begin, end);
    const double half = std::round(2 * x) / 2;  // ties must not hang on a rounding error
    if (std::abs(x - half) < 1e-9) x = half;
    if (rule.coordinates == "tf_crop_and_resize" && (x < 0 || x > length - 1)) {
      rows.end_row(true);
      continue;
    }
    if (rule.kernel == ResizeKernel::kNearest) {
      rows.add_term(static_cast<Index>(std::clamp(nearest(rule, x, scale), 0.0, length - 1)), 1);
    } else {
      add_weights(rule, std::clamp(x, -2 * length - 2, 3 * length + 2), in, scale, rows);
    }
    rows.end_row();
  }
  return rows;
}

}  // namespace lipscope
