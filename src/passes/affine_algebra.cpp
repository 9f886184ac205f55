// SPDX-License-Identifier: Apache-2.0
#include "passes/affine_algebra.h"

#include <algorithm>

#include "ops/windows/padding.h"
#include "passes/add_node.h"
#include "passes/flat_layer.h"

namespace lipscope {
namespace {

// Products of weights that would be larger than this, and larger than their factors, stay apart.
constexpr Index kLargestProduct = Index{1} << 22;
bool worth_it(Index product, Index factors) {
  return product <= std::max(kLargestProduct, factors);
}

ElementType element_type_of(const GraphBuilder& builder, ValueId id) {
  return builder.value(id).type.type;
}

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

// A constant as a vector with a number for each entry of `out`.
std::optional<ValueId> entry_by_entry(GraphBuilder& builder, ValueId id, const Shape& out) {
  const auto rank = static_cast<Index>(out.size());
  if (shape_of(builder, id).size() > out.size()) return std::nullopt;
  const ValueId shape = builder.constant("shape", Tensor::integers({rank}, out));
  const ValueId filled = add_node(builder, "Expand", {id, shape}, "merged");
  return reshaped(builder, filled, {element_count(out)});
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

// A vector with each entry repeated `times` times.
ValueId repeated(GraphBuilder& builder, ValueId vector, Index times) {
  const Index n = shape_of(builder, vector)[0];
  const ValueId ones =
      builder.constant("ones", Tensor(element_type_of(builder, vector), {1, times},
                                      std::vector<double>(static_cast<std::size_t>(times), 1.0)));
  const ValueId column = reshaped(builder, vector, {n, 1});
  return reshaped(builder, combine(builder, "Mul", column, ones), {n * times});
}

// Whether no window of the convolution reaches over the edge of its image.
bool stays_inside(const ConvShape& s) {
  for (std::size_t i = 0; i < 3; ++i) {
    const Index reach = (s.output[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1;
    if (s.pad[i] != 0 || reach > s.input[i]) return false;
  }
  return true;
}

// The convolution with the kernel  K[o, c, t] = sum of V[o, m, j] W[m, c, i]  over i, j with
// j dilation_V stride_W + i dilation_W = t: a transposed convolution of V with W.
MaybeLayer conv_after(GraphBuilder& builder, const AffineLayer& first, const AffineLayer& second) {
  const ConvShape &a = first.conv->shape, &b = second.conv->shape;
  if (a.groups != 1 || b.groups != 1 || !stays_inside(b)) return std::nullopt;
  AffineLayer merged = first;
  ConvShape& s = merged.conv->shape;
  s.out_channels = b.out_channels;
  s.output = b.output;
  std::vector<Index> strides, dilations;
  const std::size_t rank = shape_of(builder, first.weights).size() - 2;
  for (std::size_t i = 0; i < 3; ++i) {
    s.stride[i] = a.stride[i] * b.stride[i];
    s.dilation[i] = 1;
    const Index apart = b.dilation[i] * a.stride[i];
    s.kernel[i] = (b.kernel[i] - 1) * apart + (a.kernel[i] - 1) * a.dilation[i] + 1;
    if (i + rank < 3) continue;
    strides.push_back(apart);
    dilations.push_back(a.dilation[i]);
  }
  if (!worth_it(s.w_size(), a.w_size() + b.w_size())) return std::nullopt;
  merged.weights = add_node(builder, "ConvTranspose", {second.weights, first.weights}, "merged",
                            {{"strides", strides}, {"dilations", dilations}});
  merged.bias = second.bias;
  if (first.bias) {
    const Index taps = b.in_channels * b.kernel_size();
    const ValueId rows = reshaped(builder, second.weights, {b.out_channels, taps});
    const ValueId column =
        reshaped(builder, repeated(builder, *first.bias, b.kernel_size()), {taps, 1});
    const ValueId shift = combine(builder, "MatMul", rows, column);
    add_to_bias(builder, merged, reshaped(builder, shift, {b.out_channels}));
  }
  return merged;
}

// As matrices, where their product takes a moment at most.
MaybeLayer flat_after(GraphBuilder& builder, const AffineLayer& first, const AffineLayer& second) {
  constexpr double kMostProducts = 1e9;
  const auto a = flat_size(builder, first), b = flat_size(builder, second);
  if (!a || !b || a->outputs != b->inputs) return std::nullopt;
  const double products = static_cast<double>(a->inputs) * static_cast<double>(a->outputs) *
                          static_cast<double>(b->outputs);
  if (products > kMostProducts || a->inputs * b->outputs > kLargestProduct) return std::nullopt;
  const MaybeLayer one = as_flat(builder, first), two = as_flat(builder, second);
  MaybeLayer merged = dense_after(builder, *one, *two);
  if (merged) merged->flat = two->flat;
  return merged;
}

// The kernel with one tap 1 that copies channels, moved so that tap t reads the output's own place.
std::optional<Tensor> identity_kernel(const ConvShape& s, ElementType type, const Shape& shape) {
  const Index ins = s.in_channels / s.groups;
  if (s.in_channels != s.out_channels || s.input != s.output) return std::nullopt;
  Index tap = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const Index at = s.pad[i] / s.dilation[i];
    if (s.stride[i] != 1 || at * s.dilation[i] != s.pad[i] || at >= s.kernel[i])
      return std::nullopt;
    tap = tap * s.kernel[i] + at;
  }
  Tensor identity = Tensor::zeros(type, shape);
  for (Index o = 0; o < s.out_channels; ++o)
    identity.doubles()[static_cast<std::size_t>((o * ins + o % ins) * s.kernel_size() + tap)] = 1;
  return identity;
}

std::optional<Tensor> identity_weights(const AffineLayer& layer, ElementType type,
                                       const Shape& shape) {
  if (layer.conv) return identity_kernel(layer.conv->shape, type, shape);
  if (shape[0] != shape[1]) return std::nullopt;
  Tensor identity = Tensor::zeros(type, shape);
  for (Index i = 0; i < shape[0]; ++i)
    identity.doubles()[static_cast<std::size_t>(i * (shape[0] + 1))] = 1;
  return identity;
}

// Zeros around the kernel of `layer`, so that it has the taps of `wide`.
MaybeLayer widened(GraphBuilder& builder, const AffineLayer& layer, const ConvShape& wide) {
  const ConvShape& s = layer.conv->shape;
  ConvShape same = s;
  same.kernel = wide.kernel;
  same.pad = wide.pad;
  same.dilation = wide.dilation;
  if (same != wide) return std::nullopt;
  const std::size_t rank = shape_of(builder, layer.weights).size() - 2;
  std::vector<Index> before{0, 0}, after{0, 0};
  for (std::size_t i = 3 - rank; i < 3; ++i) {
    const Index d = wide.dilation[i], ahead = wide.pad[i] - s.pad[i];
    if (ahead < 0 || ahead % d != 0 || (s.kernel[i] > 1 && s.dilation[i] != d)) return std::nullopt;
    before.push_back(ahead / d);
    after.push_back(wide.kernel[i] - s.kernel[i] - ahead / d);
    if (after.back() < 0) return std::nullopt;
  }
  before.insert(before.end(), after.begin(), after.end());
  const auto pads = static_cast<Index>(before.size());
  AffineLayer made = layer;
  made.conv->shape = wide;
  const ValueId edges = builder.constant("edges", Tensor::integers({pads}, before));
  made.weights = add_node(builder, "Pad", {layer.weights, edges}, "merged");
  return made;
}

}  // namespace

MaybeLayer layer_after(GraphBuilder& builder, const AffineLayer& first, const AffineLayer& second,
                       bool reshaped_between) {
  if (element_type_of(builder, first.weights) != element_type_of(builder, second.weights) ||
      second.pad)
    return std::nullopt;
  MaybeLayer merged;
  if (!reshaped_between && !first.flat && first.conv.has_value() == second.conv.has_value())
    merged = (first.conv ? conv_after : dense_after)(builder, first, second);
  return merged ? merged : flat_after(builder, first, second);
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
  if (!stays_inside(s)) return std::nullopt;
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
  if (element_type_of(builder, factor) != element_type_of(builder, layer.weights))
    return std::nullopt;
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
  if (element_type_of(builder, constant) != element_type_of(builder, layer.weights))
    return std::nullopt;
  const Index channels = layer_channels(builder, layer);
  // Only the rank and the place of the channels matter here, and x has both.
  const auto vector = layer.flat ? entry_by_entry(builder, constant, *layer.flat)
                                 : per_channel(builder, constant, shape_of(builder, layer.x),
                                               layer.conv.has_value(), channels);
  if (!vector) return std::nullopt;
  AffineLayer merged = layer;
  if (op == "Mul" || op == "Div") {
    merged.weights =
        combine(builder, op, layer.weights, along(builder, layer, output_axis(layer), *vector));
    if (layer.bias) merged.bias = combine(builder, op, *layer.bias, *vector);
    return merged;
  }
  const ValueId none = builder.constant(
      "no bias", Tensor::zeros(element_type_of(builder, layer.weights), {channels}));
  const ValueId bias = layer.bias.value_or(none);
  const bool negative = op == "Sub" && flipped;
  if (negative) merged.weights = add_node(builder, "Neg", {layer.weights}, "merged");
  merged.bias =
      negative ? combine(builder, op, *vector, bias) : combine(builder, op, bias, *vector);
  return merged;
}

MaybeLayer layer_normalised(GraphBuilder& builder, const AffineLayer& layer,
                            std::vector<ValueId> parameters, double epsilon) {
  const Index channels = layer_channels(builder, layer);
  const ElementType type = element_type_of(builder, layer.weights);
  if (layer.flat) {
    for (ValueId& id : parameters) {
      const Index own = element_count(shape_of(builder, id));
      if (own != (*layer.flat)[1] || !builder.value(id).constant ||
          element_type_of(builder, id) != type)
        return std::nullopt;
      id = repeated(builder, id, channels / own);
    }
  }
  // A dense layer on sequences has its channels on another axis than the normalisation.
  if (!layer.conv && !layer.flat && shape_of(builder, layer.x).size() != 2) return std::nullopt;
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
  if (layer.pad) return std::nullopt;
  auto identity = identity_weights(layer, element_type_of(builder, layer.weights),
                                   shape_of(builder, layer.weights));
  if (!identity) return std::nullopt;
  AffineLayer merged = layer;
  merged.weights =
      combine(builder, "Add", layer.weights, builder.constant("identity", std::move(*identity)));
  return merged;
}

MaybeLayer layer_plus_layer(GraphBuilder& builder, const AffineLayer& one, const AffineLayer& two) {
  if (one.x != two.x ||
      element_type_of(builder, one.weights) != element_type_of(builder, two.weights) ||
      one.pad != nullptr || two.pad != nullptr)
    return std::nullopt;
  AffineLayer merged = one;
  AffineLayer other = two;
  if (one.conv.has_value() != two.conv.has_value() || one.flat != two.flat) {
    const MaybeLayer a = as_flat(builder, one), b = as_flat(builder, two);
    if (!a || !b || a->flat != b->flat) return std::nullopt;
    merged = *a;
    other = *b;
  } else if (one.conv) {
    const ConvShape &a = one.conv->shape, &b = two.conv->shape;
    const bool first_wider = a.kernel_size() >= b.kernel_size();
    const MaybeLayer wide = first_wider ? widened(builder, two, a) : widened(builder, one, b);
    if (!wide) return std::nullopt;
    (first_wider ? other : merged) = *wide;
  }
  merged.weights = combine(builder, "Add", merged.weights, other.weights);
  if (other.bias) add_to_bias(builder, merged, *other.bias);
  return merged;
}

}  // namespace lipscope
