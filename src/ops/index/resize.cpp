// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample: along each axis every output position is a weighted sum of input positions;
// several axes multiply.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/index/index_map.h"
#include "ops/index/resize_axis.h"

namespace lipscope {
namespace {

// What is asked of one axis.
struct AxisSize {
  Index out = 0;
  Rational scale = 1;
};

ResizeRule read_rule(const OnnxNode& node) {
  ResizeRule rule;
  const std::string mode = node.text("mode", "nearest");
  if (mode == "nearest") {
    rule.kernel = ResizeKernel::kNearest;
  } else if (mode == "linear" || (node.type() == "Upsample" && mode == "bilinear")) {
    rule.kernel = ResizeKernel::kLinear;
  } else if (mode == "cubic" && node.type() == "Resize" && node.opset() >= 11) {
    rule.kernel = ResizeKernel::kCubic;
  } else {
    node.malformed("mode is '" + mode + "'");
  }
  if (node.type() == "Upsample" || node.opset() < 11) {
    rule.coordinates = "asymmetric";
    rule.nearest = "simple";
    return rule;
  }
  rule.coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  rule.nearest = node.text("nearest_mode", "round_prefer_floor");
  rule.cubic_a = node.real("cubic_coeff_a");
  rule.exclude_outside = node.integer("exclude_outside", 0) != 0;
  rule.antialias = node.integer("antialias", 0) != 0 && rule.kernel != ResizeKernel::kNearest;
  if (!rule.is_known()) {
    node.malformed(fmt::format("unknown coordinate_transformation_mode '{}' or nearest_mode '{}'",
                               rule.coordinates, rule.nearest));
  }
  return rule;
}

std::vector<double> as_reals(const Tensor& tensor) {
  std::vector<double> list;
  for (Index i = 0; i < tensor.size(); ++i) list.push_back(tensor.at(i));
  return list;
}

// A list input that may be absent or empty.
std::optional<std::vector<double>> read_optional_reals(const OnnxNode& node, Index k) {
  if (!node.has_input(k) || element_count(node.input(k).shape) == 0) return std::nullopt;
  return as_reals(node.constant(k));
}

std::optional<std::vector<double>> read_scales(const OnnxNode& node) {
  if (node.type() == "Upsample" && node.opset() < 7) {
    return std::vector<double>{1, 1, node.real("height_scale"), node.real("width_scale")};
  }
  if (node.type() == "Upsample" && node.opset() < 9) return node.reals("scales");
  return read_optional_reals(node, node.type() == "Resize" && node.opset() >= 11 ? 2 : 1);
}

// The axes the lists are about.
std::vector<Index> read_resized_axes(const OnnxNode& node) {
  std::vector<Index> axes;
  if (const auto given = node.integers("axes")) {
    for (const Index a : *given) axes.push_back(OnnxNode::axis(a, node.rank(0)));
  } else {
    for (Index a = 0; a < node.rank(0); ++a) axes.push_back(a);
  }
  return axes;
}

// A scale is the number the file has, not a simpler one near it.
AxisSize from_scale(const OnnxNode& node, Index in, double scale) {
  constexpr double kMost = 1 << 30;
  const double length = mul_up(scale, static_cast<double>(in));
  if (!(scale > 0) || !(length < kMost)) node.malformed(fmt::format("a scale of {}", scale));
  if (length < 1) return {0, 1};  // nothing is left to read a coordinate for
  return {axis_position((Rational(scale) * in).floor()), Rational(scale)};
}

AxisSize from_size(const OnnxNode& node, Index in, double size) {
  if (!(size >= 0 && size < (1 << 30)) || (in == 0 && size > 0)) {
    node.malformed(fmt::format("resizing {} to {}", in, size));
  }
  const auto out = static_cast<Index>(size);
  return {out, in == 0 ? Rational(1) : Rational(out) / in};
}

// With keep_aspect_ratio_policy one scale serves all named axes.
Rational common_scale(const OnnxNode& node, const std::string& policy,
                      const std::vector<Index>& axes, const std::vector<double>& sizes) {
  const Shape& in = node.input(0).shape;
  std::vector<Rational> scales;
  for (std::size_t i = 0; i < axes.size(); ++i)
    scales.push_back(from_size(node, in[static_cast<std::size_t>(axes[i])], sizes[i]).scale);
  if (scales.empty()) return 1;
  if (policy == "not_larger") return *std::ranges::min_element(scales);
  if (policy == "not_smaller") return *std::ranges::max_element(scales);
  node.malformed("keep_aspect_ratio_policy is '" + policy + "'");
}

std::vector<AxisSize> read_sizes(const OnnxNode& node, const std::vector<Index>& axes) {
  const Shape& in = node.input(0).shape;
  std::vector<AxisSize> result;
  for (const Index n : in) result.push_back({n, 1});
  const auto scales = read_scales(node);
  const bool may_have_sizes = node.type() == "Resize" && node.opset() >= 11;
  const auto sizes = may_have_sizes ? read_optional_reals(node, 3) : std::nullopt;
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (scales.has_value() == sizes.has_value()) {
    if (!scales && axes.empty()) return result;
    node.malformed("exactly one of scales and sizes has to be given");
  }
  if ((scales ? *scales : *sizes).size() != axes.size()) {
    node.malformed("scales or sizes does not have one entry per axis");
  }
  Rational common = 1;
  const bool stretch = scales || policy == "stretch";
  if (!stretch) common = common_scale(node, policy, axes, *sizes);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(axes[i]);
    if (scales) {
      result[a] = from_scale(node, in[a], (*scales)[i]);
    } else if (stretch) {
      result[a] = from_size(node, in[a], (*sizes)[i]);
    } else {
      const Index length = axis_position((common * in[a] + Rational(0.5)).floor());
      result[a] = {from_size(node, in[a], static_cast<double>(length)).out, common};
    }
  }
  return result;
}

// The part of the input each axis is read from, in units of its length: roi of tf_crop_and_resize.
struct Region {
  std::vector<double> begin, end;
};

Region read_region(const OnnxNode& node, const ResizeRule& rule, const std::vector<Index>& axes) {
  const auto rank = static_cast<std::size_t>(node.rank(0));
  Region region{std::vector<double>(rank, 0), std::vector<double>(rank, 1)};
  (void)node.has_input(1);  // may be there without a meaning
  if (rule.coordinates != "tf_crop_and_resize") return region;
  const auto roi = read_optional_reals(node, 1);
  if (!roi || roi->size() != 2 * axes.size()) node.malformed("roi does not fit the axes");
  for (const double r : *roi) {
    if (!std::isfinite(r)) node.malformed("roi is not finite");
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    region.begin[static_cast<std::size_t>(axes[i])] = (*roi)[i];
    region.end[static_cast<std::size_t>(axes[i])] = (*roi)[i + axes.size()];
  }
  return region;
}

IndexMap make_map(const OnnxNode& node, const std::vector<AxisRows>& rows, const Shape& in,
                  double extrapolation) {
  std::size_t first = in.size(), last = 0;
  for (std::size_t a = 0; a < in.size(); ++a) {
    if (rows[a].is_identity(in[a])) continue;
    first = std::min(first, a);
    last = a + 1;
  }
  if (last == 0) return IndexMap::identity(element_count(in));
  AxisRows all = rows[first];
  for (std::size_t a = first + 1; a < last; ++a) {
    if (!all.fits_product(rows[a])) node.unsupported("too many weights");
    all = all.product(rows[a], in[a]);
  }
  const auto f = static_cast<Index>(first), l = static_cast<Index>(last);
  const Index cols = dims_product(in, f, l);
  const IndexMap::Blocks blocks{dims_product(in, 0, f), dims_product(in, l, node.rank(0))};
  const IndexMap::Fill fill{extrapolation, static_cast<Index>(extrapolation)};
  if (all.is_selection()) return IndexMap::gather(cols, all.selection(), blocks, fill);
  return IndexMap::weighted(cols, all.weighted(extrapolation), blocks);
}

Imported import_resize(const OnnxNode& node) {
  const Shape& in = node.input(0).shape;
  const ResizeRule rule = read_rule(node);
  const std::vector<Index> axes = read_resized_axes(node);
  const std::vector<AxisSize> sizes = read_sizes(node, axes);
  const Region region = read_region(node, rule, axes);
  const double extrapolation = node.real("extrapolation_value");
  Shape shape;
  for (const AxisSize& size : sizes) shape.push_back(size.out);
  check_output_size(node, shape);
  if (element_count(shape) == 0) {
    return index_map_op(node, std::move(shape), IndexMap::constant(0, element_count(in), {0, 0}));
  }
  std::vector<AxisRows> rows;
  for (std::size_t a = 0; a < in.size(); ++a) {
    rows.push_back(
        resize_axis(rule, in[a], sizes[a].out, sizes[a].scale, region.begin[a], region.end[a]));
  }
  IndexMap map = make_map(node, rows, in, extrapolation);
  return index_map_op(node, std::move(shape), std::move(map));
}

OpCase::Input fixed_reals(std::vector<double> list) {
  const auto n = static_cast<Index>(list.size());
  return {Tensor(ElementType::kFloat32, {n}, std::move(list)), true};
}

std::vector<OpCase> resize_cases(Rng& rng) {
  using Text = std::string;
  const auto by_scales = [&](std::vector<double> scales, Attributes attributes, int opset = 13) {
    return OpCase{.inputs = {{random_tensor(rng, {1, 2, 4, 5})},
                             fixed_reals({}),
                             fixed_reals(std::move(scales))},
                  .attributes = std::move(attributes),
                  .opset = opset};
  };
  std::vector<OpCase> cases{
      {.inputs = {{random_tensor(rng, {1, 1, 2, 4})}, fixed_reals({1, 1, 0.6, 0.6})}, .opset = 10},
      {.inputs = {{random_tensor(rng, {1, 1, 2, 4})}, fixed_reals({1, 1, 2, 3})},
       .attributes = {{"mode", Text("linear")}},
       .opset = 10},
      by_scales({1, 1, 2, 3}, {}, 11),
      {.inputs =
           {{random_tensor(rng, {2, 3, 4})}, fixed_reals({}), fixed_reals({}), fixed_ints({5, 7})},
       .attributes = {{"axes", std::vector<Index>{2, 1}}, {"mode", Text("cubic")}},
       .opset = 18},
      {.inputs = {{random_tensor(rng, {1, 1, 3, 4})},
                  fixed_reals({}),
                  fixed_reals({}),
                  fixed_ints({7, 8})},
       .attributes = {{"axes", std::vector<Index>{2, 3}},
                      {"keep_aspect_ratio_policy", Text("not_larger")}},
       .opset = 18},
      {.inputs = {{random_tensor(rng, {4, 4})},
                  fixed_reals({0.4, -0.1, 1.2, 0.8}),
                  fixed_reals({}),
                  fixed_ints({3, 3})},
       .attributes = {{"coordinate_transformation_mode", Text("tf_crop_and_resize")},
                      {"mode", Text("linear")},
                      {"extrapolation_value", 10.0}}}};
  for (const char* mode : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                           "align_corners", "asymmetric"}) {
    for (const char* kernel : {"nearest", "linear", "cubic"}) {
      cases.push_back(
          by_scales({1, 1, 0.6, 1.7},
                    {{"coordinate_transformation_mode", Text(mode)}, {"mode", Text(kernel)}}, 19));
    }
  }
  for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
    cases.push_back(by_scales({1, 1, 2, 0.8}, {{"nearest_mode", Text(nearest)}}));
  }
  for (const char* kernel : {"linear", "cubic"}) {
    cases.push_back(
        by_scales({1, 1, 0.6, 0.8}, {{"mode", Text(kernel)}, {"antialias", Index{1}}}, 18));
    cases.push_back(by_scales(
        {1, 1, 2, 0.8},
        {{"mode", Text(kernel)}, {"cubic_coeff_a", -0.5}, {"exclude_outside", Index{1}}}));
  }
  return cases;
}

std::vector<OpCase> upsample_cases(Rng& rng) {
  return {
      {.inputs = {{random_tensor(rng, {1, 2, 2, 3})}, fixed_reals({1, 1, 2, 3})}, .opset = 9},
      {.inputs = {{random_tensor(rng, {1, 2, 2, 3})}},
       .attributes = {{"scales", std::vector<double>{1, 1, 2, 2}}, {"mode", std::string("linear")}},
       .opset = 7},
      {.inputs = {{random_tensor(rng, {1, 2, 2, 3})}},
       .attributes = {{"height_scale", 2.0}, {"width_scale", 1.5}},
       .opset = 1}};
}

}  // namespace

std::vector<OpKind> op_resize() {
  return {{"Resize", import_resize, resize_cases}, {"Upsample", import_resize, upsample_cases}};
}

}  // namespace lipscope
