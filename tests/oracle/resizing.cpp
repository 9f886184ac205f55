// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample with exact coordinates: an axis at a time.
#include <algorithm>

#include "tests/oracle/node.h"

namespace oracle {
namespace {

struct Rule {
  std::string mode, coordinates, nearest;
  Number cubic{-0.75};
  bool exclude = false, antialias = false;
};

struct Axis {
  Index in = 0, out = 0;
  Number scale{1}, begin{0}, end{1};
};

Rule read_rule(const Node& node) {
  Rule rule;
  rule.mode = node.text("mode", "nearest");
  if (rule.mode == "bilinear") rule.mode = "linear";
  const bool old = node.type() == "Upsample" || node.opset() < 11;
  rule.coordinates = old ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
  // Older ones did not say; the published tests have floor, and ceil when shrinking.
  rule.nearest = old ? "simple" : node.text("nearest_mode", "round_prefer_floor");
  rule.cubic = node.real("cubic_coeff_a", -0.75F);
  rule.exclude = node.integer("exclude_outside", 0) != 0;
  rule.antialias = node.integer("antialias", 0) != 0;
  return rule;
}

std::vector<Number> read_scales(const Node& node) {
  const bool up = node.type() == "Upsample";
  if (up && node.opset() < 7) {
    return {Number(1), Number(1), node.real("height_scale", 1), node.real("width_scale", 1)};
  }
  if (up && node.opset() < 9) return node.reals("scales").value();
  const Index k = !up && node.opset() >= 11 ? 2 : 1;
  return node.has(k) ? node.in(k).entries : std::vector<Number>{};
}

std::vector<Axis> read_axes(const Node& node, const Rule& rule) {
  const Array& x = node.in(0);
  std::vector<Axis> result;
  std::vector<Index> named;
  for (Index a = 0; a < x.rank(); ++a) {
    result.push_back({.in = x.dim(a), .out = x.dim(a)});
    named.push_back(a);
  }
  if (const auto axes = node.integers("axes")) named = *axes;
  for (Index& a : named) a = Node::axis(a, x.rank());
  const std::vector<Number> scales = read_scales(node);
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (!scales.empty()) {
    for (std::size_t i = 0; i < named.size(); ++i) {
      Axis& axis = result.at(Array::to_size(named[i]));
      axis.scale = scales.at(i);
      axis.out = floor(scales[i] * Number(axis.in)).integer();
    }
  } else {
    const std::vector<Index> sizes = integers(node.in(3));
    Number common = Number::fraction(sizes.at(0), result.at(Array::to_size(named.at(0))).in);
    for (std::size_t i = 0; i < named.size(); ++i) {
      Axis& axis = result.at(Array::to_size(named[i]));
      axis.out = sizes.at(i);
      axis.scale = Number::fraction(sizes[i], axis.in);
      common = policy == "not_larger" ? min(common, axis.scale) : max(common, axis.scale);
    }
    for (std::size_t i = 0; i < named.size() && policy != "stretch"; ++i) {
      Axis& axis = result.at(Array::to_size(named[i]));
      axis.scale = common;
      axis.out = floor(common * Number(axis.in) + Number::fraction(1, 2)).integer();
    }
  }
  if (rule.coordinates == "tf_crop_and_resize") {
    for (std::size_t i = 0; i < named.size(); ++i) {
      Axis& axis = result.at(Array::to_size(named[i]));
      axis.begin = node.in(1).at(static_cast<Index>(i));
      axis.end = node.in(1).at(static_cast<Index>(i + named.size()));
    }
  }
  return result;
}

Number coordinate(const Rule& rule, const Axis& axis, Index i) {
  const Number x(i), half = Number::fraction(1, 2), one(1), in(axis.in);
  const Number length = axis.scale * in;  // before it was cut to an integer
  const bool single = length == one;
  const Number centred = (x + half) / axis.scale - half;
  if (rule.coordinates == "align_corners") {
    return single ? Number(0) : x * (in - one) / (length - one);
  }
  if (rule.coordinates == "asymmetric") return x / axis.scale;
  if (rule.coordinates == "pytorch_half_pixel") return single ? -half : centred;
  if (rule.coordinates == "half_pixel_symmetric") {
    return in * half * (one - Number(axis.out) / length) + centred;
  }
  if (rule.coordinates == "tf_half_pixel_for_nn") return (x + half) / axis.scale;
  if (rule.coordinates == "tf_crop_and_resize") {
    const Number width = (axis.end - axis.begin) * (in - one);
    return axis.begin * (in - one) + (single ? width * half : x * width / (length - one));
  }
  return centred;
}

Index nearest_place(const Rule& rule, const Number& x, const Number& scale) {
  const Number low = floor(x), half = Number::fraction(1, 2);
  if (rule.nearest == "floor") return low.integer();
  if (rule.nearest == "ceil") return ceil(x).integer();
  if (rule.nearest == "simple") return (scale < Number(1) ? ceil(x) : low).integer();
  if (rule.nearest == "round_prefer_ceil") return floor(x + half).integer();
  return ceil(x - half).integer();
}

Number kernel(const Rule& rule, const Number& distance) {
  const Number d = abs(distance), a = rule.cubic, one(1);
  if (rule.mode == "linear") return max(Number(0), one - d);
  if (!(one < d)) return ((a + Number(2)) * d - (a + Number(3))) * d * d + one;
  if (d < Number(2)) return ((a * d - Number(5) * a) * d + Number(8) * a) * d - Number(4) * a;
  return Number(0);
}

struct Row {
  bool outside = false;
  std::vector<std::pair<Index, Number>> terms;
};
Row weights(const Rule& rule, const Axis& axis, Index i) {
  const Number x = coordinate(rule, axis, i);
  const Index last = axis.in - 1;
  Row row;
  if (rule.coordinates == "tf_crop_and_resize" && (x < Number(0) || Number(last) < x)) {
    row.outside = true;
    return row;
  }
  if (rule.mode == "nearest") {
    row.terms.emplace_back(std::clamp<Index>(nearest_place(rule, x, axis.scale), 0, last), 1);
    return row;
  }
  const Number shrink = rule.antialias ? min(axis.scale, Number(1)) : Number(1);
  const Number reach = Number(rule.mode == "linear" ? 1 : 2) / shrink;
  Number total(0);
  for (Index j = floor(x - reach).integer(); j <= ceil(x + reach).integer(); ++j) {
    if (rule.exclude && (j < 0 || j > last)) continue;
    row.terms.emplace_back(std::clamp<Index>(j, 0, last), kernel(rule, shrink * (Number(j) - x)));
    total = total + row.terms.back().second;
  }
  if (rule.antialias || rule.exclude) {
    for (auto& [place, weight] : row.terms) weight = weight / total;
  }
  return row;
}

std::vector<Array> resize(const Node& node) {
  const Rule rule = read_rule(node);
  const std::vector<Axis> axes = read_axes(node, rule);
  Array x = node.in(0);
  std::vector<bool> outside(x.entries.size(), false);
  const Number fill = node.real("extrapolation_value", 0.0F);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].out == axes[a].in && axes[a].scale == Number(1) &&
        rule.coordinates != "tf_half_pixel_for_nn" && rule.coordinates != "tf_crop_and_resize") {
      continue;
    }
    Dims dims = x.dims;
    dims[a] = axes[a].out;
    const Lines from(x.dims, static_cast<Index>(a)), to(dims, static_cast<Index>(a));
    Array y(x.type, dims);
    std::vector<bool> open(y.entries.size(), false);
    for (Index k = 0; k < axes[a].out; ++k) {
      const Row row = weights(rule, axes[a], k);
      for (Index o = 0; o < from.outer; ++o) {
        for (Index i = 0; i < from.inner; ++i) {
          Number sum(0);
          bool is_outside = row.outside;
          for (const auto& [place, weight] : row.terms) {
            const Index source = from.at(o, place, i);
            is_outside = is_outside || outside[Array::to_size(source)];
            sum = sum + weight * x.at(source);
          }
          y.at(to.at(o, k, i)) = is_outside ? fill : sum;
          open[Array::to_size(to.at(o, k, i))] = is_outside;
        }
      }
    }
    x = std::move(y);
    outside = std::move(open);
  }
  if (!is_floating(x.type)) {
    for (Number& e : x.entries) e = wrapped(x.type, truncate(e));
  }
  return {x};
}

}  // namespace

void add_resizing(Table& table) {
  table["Resize"] = resize;
  table["Upsample"] = resize;
}

}  // namespace oracle
