// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/normalisation.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/attribute_defaults.h"
#include "ops/elementwise/unary.h"
#include "ops/kind.h"
#include "ops/rows/rows.h"
#include "ops/rows/standardise.h"

namespace lipscope {
namespace {

Imported finish_normalisation(Standardisation s) {
  std::vector<Index> uses{0};
  if (s.scale) uses.push_back(1);
  if (s.bias) uses.push_back(2);
  return {make_standardise(std::move(s)), std::move(uses)};
}

Standardisation layer_norm(ValueType x, Index axis, double epsilon) {
  const RowSplit split = RowSplit::of(x.shape, axis, static_cast<Index>(x.shape.size()));
  return {.name = "LayerNormalization",
          .x = std::move(x),
          .rows = split.outer,
          .length = split.length,
          .epsilon = epsilon,
          .channels = std::max<Index>(1, split.length)};
}

// Fits (inner, channels) to scale or bias of a shape that broadcasts to x.
void fit_affine(const OnnxNode& node, Standardisation& s, Index k, bool first) {
  const Shape& given = node.input(k).shape;
  const Shape& x = s.x.shape;
  const auto refuse = [&] {
    node.unsupported(fmt::format("input {} of shape {} for data of shape {}", k, to_string(given),
                                 to_string(x)));
  };
  if (given.size() > x.size()) refuse();
  Shape full(x.size() - given.size(), 1);
  full.insert(full.end(), given.begin(), given.end());
  // The dimensions that are there have to be neighbours.
  Index inner = 1, channels = 1;
  std::size_t d = full.size();
  for (; d > 0 && full[d - 1] == 1; --d) inner *= x[d - 1];
  for (; d > 0 && full[d - 1] == x[d - 1]; --d) channels *= x[d - 1];
  for (; d > 0 && full[d - 1] == 1; --d) {
  }
  if (d != 0) refuse();
  if (element_count(s.x.shape) == 0) inner = channels = 1;
  if (!first && (inner != s.inner || channels != s.channels)) refuse();
  s.inner = inner;
  s.channels = channels;
}

// What LayerNormalization and RMSNormalization have in common.
Standardisation last_axes(const OnnxNode& node) {
  require_real(node);
  node.ignore({"stash_type"});
  const Index rank = node.rank(0);
  if (rank == 0) node.malformed("a scalar has no axis");
  const Index axis = OnnxNode::axis(node.integer("axis", -1), rank);
  Standardisation s = layer_norm(node.input(0), axis, node.real("epsilon"));
  s.scale = node.has_input(1);
  if (s.scale) fit_affine(node, s, 1, true);
  return s;
}

Imported import_layer_norm(const OnnxNode& node) {
  Standardisation s = last_axes(node);
  s.bias = node.has_input(2);
  if (s.bias) fit_affine(node, s, 2, !s.scale);
  if (node.wants_output(1) || node.wants_output(2)) {
    Shape shape = s.x.shape;
    std::fill(shape.begin() + OnnxNode::axis(node.integer("axis", -1), node.rank(0)), shape.end(),
              1);
    s.statistics = ValueType{s.x.type, std::move(shape)};
  }
  return finish_normalisation(std::move(s));
}

Imported import_rms_norm(const OnnxNode& node) {
  Standardisation s = last_axes(node);
  s.name = "RMSNormalization";
  s.centred = false;
  return finish_normalisation(std::move(s));
}

// Scale and bias of one entry per channel.
void require_affine(const OnnxNode& node, Index entries) {
  for (const Index k : {1, 2}) {
    if (node.input(k).shape != Shape{entries}) {
      node.malformed(fmt::format("input {} has shape {}, expected [{}]", k,
                                 to_string(node.input(k).shape), entries));
    }
  }
}

Imported import_instance_norm(const OnnxNode& node) {
  require_real(node);
  node.ignore({"consumed_inputs"});
  const Shape& x = node.input(0).shape;
  if (x.size() < 2) node.malformed("data of shape " + to_string(x));
  const RowSplit split = RowSplit::of(x, 2, node.rank(0));
  require_affine(node, x[1]);
  return finish_normalisation({.name = "InstanceNormalization",
                               .x = node.input(0),
                               .rows = split.outer,
                               .length = split.length,
                               .epsilon = node.real("epsilon"),
                               .scale = true,
                               .bias = true,
                               .inner = std::max<Index>(1, split.length),
                               .channels = std::max<Index>(1, x[1])});
}

// Up to opset 20 scale and bias have one entry per group, then one per channel.
Imported import_group_norm(const OnnxNode& node) {
  require_real(node);
  node.ignore({"stash_type"});
  const Shape& x = node.input(0).shape;
  const Index groups = node.integer("num_groups");
  if (x.size() < 2 || groups < 1 || x[1] % groups != 0) {
    node.malformed(fmt::format("{} groups for data of shape {}", groups, to_string(x)));
  }
  const RowSplit split = RowSplit::of(x, 2, node.rank(0));
  const Index length = x[1] / groups * split.length;
  const bool per_group = node.opset() < 21;
  require_affine(node, per_group ? groups : x[1]);
  return finish_normalisation({.name = "GroupNormalization",
                               .x = node.input(0),
                               .rows = x[0] * groups,
                               .length = length,
                               .epsilon = node.real("epsilon"),
                               .scale = true,
                               .bias = true,
                               .inner = std::max<Index>(1, per_group ? length : split.length),
                               .channels = std::max<Index>(1, per_group ? groups : x[1])});
}

Imported import_mean_variance(const OnnxNode& node) {
  require_real(node);
  const Shape& x = node.input(0).shape;
  std::vector<bool> reduced(x.size(), false);
  for (const Index a : node.integers("axes").value_or(std::vector<Index>{0, 2, 3})) {
    reduced[static_cast<std::size_t>(OnnxNode::axis(a, node.rank(0)))] = true;
  }
  Standardisation s{.name = "MeanVarianceNormalization",
                    .x = node.input(0),
                    .epsilon = double{kMeanVarianceEpsilon},
                    .epsilon_outside = true};
  for (std::size_t d = 0; d < x.size(); ++d) (reduced[d] ? s.length : s.rows) *= x[d];
  // Entries sorted by the kept indices, then by the reduced ones.
  s.places.resize(static_cast<std::size_t>(element_count(x)));
  for (std::size_t i = 0; i < s.places.size(); ++i) {
    Index rest = static_cast<Index>(i), row = 0, column = 0, rows = 1, columns = 1;
    for (std::size_t d = x.size(); d-- > 0;) {
      const Index at = rest % x[d];
      rest /= x[d];
      (reduced[d] ? column : row) += at * (reduced[d] ? columns : rows);
      (reduced[d] ? columns : rows) *= x[d];
    }
    s.places[static_cast<std::size_t>(row * s.length + column)] = static_cast<Index>(i);
  }
  return finish_normalisation(std::move(s));
}

OpCase affine_case(Rng& rng, Shape x, Shape affine, Attributes attributes, int opset,
                   bool fixed = false) {
  return {.inputs = {{random_tensor(rng, std::move(x))},
                     {random_tensor(rng, affine), fixed},
                     {random_tensor(rng, affine), fixed}},
          .attributes = std::move(attributes),
          .opset = opset};
}

std::vector<OpCase> layer_norm_cases(Rng& rng) {
  std::vector<OpCase> cases = {
      affine_case(rng, {2, 3, 6}, {6}, {}, 17),
      affine_case(rng, {2, 3, 4}, {3, 4}, {{"axis", Index{1}}, {"epsilon", 0.1}}, 17),
      affine_case(rng, {2, 4, 3}, {4, 1}, {{"axis", Index{-2}}}, 17, true),
      affine_case(rng, {2, 4, 3}, {1}, {{"axis", Index{0}}}, 17),
      affine_case(rng, {0, 4}, {4}, {}, 17),
  };
  cases.push_back(cases[0]);
  cases.back().inputs.resize(2);
  return cases;
}

std::vector<OpCase> rms_norm_cases(Rng& rng) {
  const auto with_scale = [&](Shape x, Shape scale, Attributes attributes, bool fixed) {
    return OpCase{
        .inputs = {{random_tensor(rng, std::move(x))}, {random_tensor(rng, scale), fixed}},
        .attributes = std::move(attributes),
        .opset = 23};
  };
  std::vector<OpCase> cases = {
      with_scale({2, 3, 6}, {6}, {}, true),
      with_scale({2, 3, 4}, {3, 4}, {{"axis", Index{1}}, {"epsilon", 0.1}}, false),
      with_scale({3, 1}, {1}, {{"epsilon", 0.5}}, true), with_scale({0, 4}, {4}, {}, true)};
  cases.push_back(cases[0]);
  cases.back().inputs.resize(1);
  return cases;
}

std::vector<OpCase> instance_norm_cases(Rng& rng) {
  return {affine_case(rng, {2, 3, 4, 2}, {3}, {}, 13),
          affine_case(rng, {1, 3, 5}, {3}, {{"epsilon", 0.01}}, 6, true)};
}

std::vector<OpCase> group_norm_cases(Rng& rng) {
  return {affine_case(rng, {2, 6, 2, 2}, {3}, {{"num_groups", Index{3}}}, 18),
          affine_case(rng, {2, 6, 2, 2}, {6}, {{"num_groups", Index{2}}}, 21)};
}

std::vector<OpCase> mean_variance_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {3, 2, 2, 3})}}},
          {.inputs = {{random_tensor(rng, {3, 2, 4})}},
           .attributes = {{"axes", std::vector<Index>{1, -1}}}}};
}

}  // namespace

std::shared_ptr<const Op> make_layer_norm(ValueType x, Index axis, double epsilon, bool scale,
                                          bool bias) {
  Standardisation s = layer_norm(std::move(x), axis, epsilon);
  s.scale = scale;
  s.bias = bias;
  return make_standardise(std::move(s));
}

std::shared_ptr<const Op> make_rms_norm(ValueType x, Index axis, double epsilon) {
  Standardisation s = layer_norm(std::move(x), axis, epsilon);
  s.name = "RMSNormalization";
  s.centred = false;
  return make_standardise(std::move(s));
}

std::vector<OpKind> op_normalisation() {
  return {{"LayerNormalization", import_layer_norm, layer_norm_cases},
          {"RMSNormalization", import_rms_norm, rms_norm_cases},
          {"InstanceNormalization", import_instance_norm, instance_norm_cases},
          {"GroupNormalization", import_group_norm, group_norm_cases},
          {"MeanVarianceNormalization", import_mean_variance, mean_variance_cases}};
}

}  // namespace lipscope
