// SPDX-License-Identifier: Apache-2.0
#include "passes/flat_layer.h"

#include "linalg/conv/conv_places.h"
#include "passes/add_node.h"

namespace lipscope {
namespace {

constexpr Index kMostEntries = Index{1} << 22;

const ValueType& value_type_of(const GraphBuilder& builder, ValueId id) {
  return builder.value(id).type;
}

ValueId gathered(GraphBuilder& builder, ValueId from, Shape shape, std::vector<Index> places) {
  const std::string name = builder.value(from).name + "/unrolled";
  const ValueId indices =
      builder.constant(name + "/places", Tensor::integers(std::move(shape), std::move(places)));
  return add_node(builder, "Gather", {from, indices}, name);
}

AffineLayer unrolled(GraphBuilder& builder, const AffineLayer& layer, FlatSize size) {
  const ConvForm& form = *layer.conv;
  const ConvShape& s = form.shape;
  // One entry more than there are weights: the zero of all other places.
  const ValueId row = reshaped(builder, layer.weights, {s.w_size()});
  const ValueId zero =
      builder.constant("no weight", Tensor::zeros(value_type_of(builder, layer.weights).type, {1}));
  const ValueId weights =
      add_node(builder, "Concat", {row, zero}, builder.value(layer.weights).name + "/and zero",
               {{"axis", Index{0}}});
  std::vector<Index> places(static_cast<std::size_t>(size.inputs * size.outputs), s.w_size());
  for_each_conv_place(s, [&](Index output, Index input, Index weight) {
    const Index at =
        form.transposed ? output * size.outputs + input : input * size.outputs + output;
    places[static_cast<std::size_t>(at)] = weight;
  });
  AffineLayer flat;
  flat.x = layer.x;
  flat.weights = gathered(builder, weights, {size.inputs, size.outputs}, std::move(places));
  if (layer.bias) {
    const Index channels = layer_channels(builder, layer);
    std::vector<Index> channel(static_cast<std::size_t>(size.outputs));
    for (Index i = 0; i < size.outputs; ++i)
      channel[static_cast<std::size_t>(i)] = i / (size.outputs / channels);
    flat.bias = gathered(builder, *layer.bias, {size.outputs}, std::move(channel));
  }
  const std::size_t rank = value_type_of(builder, layer.x).shape.size() - 2;
  const ConvShape::Spatial& image = form.transposed ? s.input : s.output;
  flat.flat = Shape{1, layer_channels(builder, layer)};
  flat.flat->insert(flat.flat->end(), image.end() - static_cast<std::ptrdiff_t>(rank), image.end());
  return flat;
}

}  // namespace

std::optional<FlatSize> flat_size(const GraphBuilder& builder, const AffineLayer& layer) {
  if (layer.pad) return std::nullopt;
  FlatSize size;
  if (layer.conv) {
    const ConvShape& s = layer.conv->shape;
    if (s.batch != 1) return std::nullopt;
    size = {s.x_size(), s.y_size()};
    if (layer.conv->transposed) std::swap(size.inputs, size.outputs);
  } else {
    const Shape& weights = value_type_of(builder, layer.weights).shape;
    size = {weights[0], weights[1]};
    if (element_count(value_type_of(builder, layer.x).shape) != size.inputs) return std::nullopt;
  }
  if (size.inputs == 0 || size.outputs == 0 || size.inputs > kMostEntries / size.outputs)
    return std::nullopt;
  return size;
}

std::optional<AffineLayer> as_flat(GraphBuilder& builder, const AffineLayer& layer) {
  if (layer.flat) return layer;
  const auto size = flat_size(builder, layer);
  if (!size) return std::nullopt;
  if (layer.conv) return unrolled(builder, layer, *size);
  AffineLayer flat = layer;
  flat.flat = value_type_of(builder, layer.x).shape;
  flat.flat->back() = size->outputs;
  return flat;
}

}  // namespace lipscope
