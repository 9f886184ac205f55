// SPDX-License-Identifier: Apache-2.0
#include "passes/affine_algebra.h"

#include <algorithm>

#include "ops/padding.h"
#include "passes/add_node.h"

namespace lipscope {
namespace {

// Products of weights that would be larger than this, and larger than their factors, stay apart.
constexpr Index kLargestProduct = Index{1} << 22;
bool worth_it(Index product, Index factors) {
  return product <= std::max(kLargestProduct, factors);
}

const Shape& shape_of(const GraphBuilder& builder, ValueId id) {
  return builder.value(id).type.shape;
}
ElementType type_of(const GraphBuilder& builder, ValueId id) { return builder.value(id).type.type; }

ValueId combine(GraphBuilder& builder, const std::string& op, ValueId a, ValueId b) {
  return add_node(builder, op, {a, b}, "merged");
}

void add_to_bias(GraphBuilder& builder, AffineLayer& layer, ValueId more) {
  layer.bias = layer.bias ? combine(builder, "Add", *layer.bias, more) : more;
}

// A constant as a vector [1] or [channels], when broadcasting it to `out` follows the channels.
std::optional<ValueId> per_channel(GraphBuilder& builder, ValueId id, const Shape& out, bool conv,
                                   Index channels) {
  const Shape& s = shape_of(builder, id);
  if (s.size() > out.size()) return std::nullopt;
  const std::size_t axis = conv ? 1 : out.size() - 1;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const std::size_t at = out.size() - s.size() + i;
    if (s[i] != 1 && (at != axis || s[i] != channels)) return std::nullopt;
  }
  return reshaped(builder, id, {element_count(s)});
}

// A vector laid along one axis of the weights.
ValueId along(GraphBuilder& builder, const AffineLayer& layer, std::size_t axis, ValueId vector) {
  Shape shape(shape_of(builder, layer.weights).size(), 1);
  shape[axis] = shape_of(builder, vector)[0];
  return reshaped(builder, vector, shape);
}
std::size_t output_axis(const AffineLayer& layer) { return layer.conv ? 0 : 1; }
std::size_t input_axis(const AffineLayer& layer) { return layer.conv ? 1 : 0; }

MaybeLayer dense_after(GraphBuilder& builder, const AffineLayer& first, const AffineLayer& second) {
  const Shape a = shape_of(builder, first.weights), b = shape_of(builder, second.weights);
  if (!worth_it(a[0] * b[1], a[0] * a[1] + b[0] * b[1])) return std::nullopt;
  AffineLayer merged{
      first.x, combine(builder, "MatMul", first.weights, second.weights), second.bias, {}, {}};
  if (first.bias) {
    const ValueId row = reshaped(builder, *first.bias, {1, b[0]});
    add_to_bias(builder, merged,
                reshaped(builder, combine(builder, "MatMul", row, second.weights), {b[1]}));
  }
  return merged;
}

// A 1x1 convolution without padding mixes the channels of the one before it.
MaybeLayer pointwise_after(GraphBuilder& builder, const AffineLayer& first,
                           const AffineLayer& second) {
  const ConvShape &a = first.conv->shape, &b = second.conv->shape;
  const bool pointwise = b.kernel_size() == 1 && b.groups == 1 && a.groups == 1 &&
                         b.input == b.output && b.pad == ConvShape::Spatial{0, 0, 0};
  const Index taps = a.in_channels * a.kernel_size();
  if (!pointwise || !worth_it(b.out_channels * taps, a.w_size() + b.w_size())) return std::nullopt;
  const ValueId mix = reshaped(builder, second.weights, {b.out_channels, b.in_channels});
  const ValueId taken = reshaped(builder, first.weights, {a.out_channels, taps});
  Shape shape = shape_of(builder, first.weights);
  shape[0] = b.out_channels;
  AffineLayer merged{first.x, reshaped(builder, combine(builder, "MatMul", mix, taken), shape),
                     second.bias, first.conv, first.pad};
  merged.conv->shape.out_channels = b.out_channels;
  if (first.bias) {
    const ValueId column = reshaped(builder, *first.bias, {b.in_channels, 1});
    add_to_bias(builder, merged,
                reshaped(builder, combine(builder, "MatMul", mix, column), {b.out_channels}));
  }
  return merged;
}

}  // namespace

MaybeLayer layer_after(GraphBuilder& builder, const AffineLayer& first, const AffineLayer& second) {
  if (type_of(builder, first.weights) != type_of(builder, second.weights)) return std::nullopt;
  if (first.conv.has_value() != second.conv.has_value() || second.pad) return std::nullopt;
  return first.conv ? pointwise_after(builder, first, second) : dense_after(builder, first, second);
}

MaybeLayer layer_of_padded(const GraphBuilder& builder, const AffineLayer& layer, ValueId x,
                           const std::shared_ptr<const Op>& pad) {
  if (!layer.conv || layer.pad) return std::nullopt;
  const Padding padding = *as_padding(*pad);
  const ConvShape& s = layer.conv->shape;
  const std::size_t rank = shape_of(builder, x).size() - 2, first = 3 - rank;
  for (std::size_t a = 0; a < rank + 2; ++a) {
    if (padding.begin[a] < 0 || padding.end[a] < 0) return std::nullopt;
    if (a < 2 && padding.begin[a] + padding.end[a] != 0) return std::nullopt;
  }
  // Every window has to lie inside the padded image.
  for (std::size_t i = first; i < 3; ++i) {
    const Index reach = (s.output[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1;
    if (s.pad[i] != 0 || reach > s.input[i]) return std::nullopt;
  }
  AffineLayer merged = layer;
  merged.x = x;
  if (padding.mode != "constant") {
    merged.pad = pad;
    return merged;
  }
  if (padding.fill != 0) return std::nullopt;
  for (std::size_t a = 0; a < rank; ++a) {
    merged.conv->shape.input[first + a] = shape_of(builder, x)[2 + a];
    merged.conv->shape.pad[first + a] = padding.begin[2 + a];
  }
  return merged;
}

MaybeLayer layer_of_scaled(GraphBuilder& builder, const AffineLayer& layer, ValueId x,
                           const std::string& op, ValueId factor) {
  const bool conv = layer.conv.has_value();
  if (conv && layer.conv->shape.groups != 1) return std::nullopt;
  if (type_of(builder, factor) != type_of(builder, layer.weights)) return std::nullopt;
  const Index channels = conv ? layer.conv->shape.in_channels : shape_of(builder, layer.weights)[0];
  const auto vector = per_channel(builder, factor, shape_of(builder, x), conv, channels);
  if (!vector) return std::nullopt;
  AffineLayer merged = layer;
  merged.x = x;
  merged.weights =
      combine(builder, op, layer.weights, along(builder, layer, input_axis(layer), *vector));
  return merged;
}

MaybeLayer layer_with_constant(GraphBuilder& builder, const AffineLayer& layer,
                               const std::string& op, ValueId constant, bool flipped) {
  if (op == "Div" && flipped) return std::nullopt;
  if (type_of(builder, constant) != type_of(builder, layer.weights)) return std::nullopt;
  const Index channels = layer_channels(builder, layer);
  // Only the rank and the place of the channels matter here, and x has both.
  const auto vector =
      per_channel(builder, constant, shape_of(builder, layer.x), layer.conv.has_value(), channels);
  if (!vector) return std::nullopt;
  AffineLayer merged = layer;
  if (op == "Mul" || op == "Div") {
    merged.weights =
        combine(builder, op, layer.weights, along(builder, layer, output_axis(layer), *vector));
    if (layer.bias) merged.bias = combine(builder, op, *layer.bias, *vector);
    return merged;
  }
  const ValueId none =
      builder.constant("no bias", Tensor::zeros(type_of(builder, layer.weights), {channels}));
  const ValueId bias = layer.bias.value_or(none);
  const bool negative = op == "Sub" && flipped;
  if (negative) merged.weights = add_node(builder, "Neg", {layer.weights}, "merged");
  merged.bias =
      negative ? combine(builder, op, *vector, bias) : combine(builder, op, bias, *vector);
  return merged;
}

MaybeLayer layer_normalised(GraphBuilder& builder, const AffineLayer& layer,
                            const std::vector<ValueId>& parameters, double epsilon) {
  const Index channels = layer_channels(builder, layer);
  const ElementType type = type_of(builder, layer.weights);
  // A dense layer on sequences has its channels on another axis than the normalisation.
  if (!layer.conv && shape_of(builder, layer.x).size() != 2) return std::nullopt;
  for (const ValueId id : parameters) {
    const Value& value = builder.value(id);
    if (!value.constant || value.type.shape != Shape{channels} || value.type.type != type)
      return std::nullopt;
  }
  const ValueId none = builder.constant("no bias", Tensor::zeros(type, {channels}));
  // Weights and bias are data to the normalisation: weights without mean and shift.
  const auto normalise = [&](ValueId data, ValueId bias, ValueId mean) {
    return add_node(builder, "BatchNormalization", {data, parameters[0], bias, mean, parameters[3]},
                    "merged", {{"epsilon", epsilon}});
  };
  AffineLayer merged = layer;
  const Shape shape = shape_of(builder, layer.weights);
  const Shape rows = layer.conv ? Shape{1, channels, element_count(shape) / channels} : shape;
  merged.weights =
      reshaped(builder, normalise(reshaped(builder, layer.weights, rows), none, none), shape);
  const ValueId bias = reshaped(builder, layer.bias.value_or(none), {1, channels});
  merged.bias = reshaped(builder, normalise(bias, parameters[1], parameters[2]), {channels});
  return merged;
}

MaybeLayer layer_plus_input(GraphBuilder& builder, const AffineLayer& layer) {
  const Shape& shape = shape_of(builder, layer.weights);
  if (layer.conv || shape[0] != shape[1]) return std::nullopt;
  Tensor identity = Tensor::zeros(type_of(builder, layer.weights), shape);
  for (Index i = 0; i < shape[0]; ++i)
    identity.doubles()[static_cast<std::size_t>(i * (shape[0] + 1))] = 1;
  AffineLayer merged = layer;
  merged.weights =
      combine(builder, "Add", layer.weights, builder.constant("identity", std::move(identity)));
  return merged;
}

}  // namespace lipscope
