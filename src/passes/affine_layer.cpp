// SPDX-License-Identifier: Apache-2.0
#include "passes/affine_layer.h"

#include <algorithm>

#include "ops/linear/multilinear.h"
#include "ops/windows/padded_conv.h"
#include "ops/windows/padding.h"
#include "passes/add_node.h"

namespace lipscope {
namespace {

bool is_constant(const GraphBuilder& builder, ValueId id) {
  const Value& value = builder.value(id);
  return value.constant != nullptr && is_floating(value.type.type);
}

ValueId times(GraphBuilder& builder, ValueId x, double factor) {
  if (factor == 1) return x;
  const Value& value = builder.value(x);
  const std::string name = value.name + "/scaled";
  const ValueId number =
      builder.constant(name + "/by", Tensor(value.type.type, {1}, std::vector<double>{factor}));
  return add_node(builder, "Mul", {x, number}, name);
}

// Gemm without a transposed x: labels m, n, k.
std::optional<AffineLayer> from_gemm(GraphBuilder& builder, const Multilinear& form,
                                     const std::vector<ValueId>& inputs) {
  const Index m = form.extents[0], n = form.extents[1], k = form.extents[2];
  const auto runs = [](Index extent, Index stride, Index expected) {
    return extent <= 1 || stride == expected;
  };
  const bool plain = runs(k, form.strides[0][2], 1) && runs(m, form.strides[0][0], k);
  if (!plain || shape_of(builder, inputs[0]) != Shape{m, k}) return std::nullopt;
  AffineLayer layer{inputs[0], inputs[1], {}, {}, {}};
  const bool upright = shape_of(builder, inputs[1]) == Shape{k, n} &&
                       runs(n, form.strides[1][1], 1) && runs(k, form.strides[1][2], n);
  if (!upright) {
    layer.weights =
        add_node(builder, "Transpose", {inputs[1]}, builder.value(inputs[1]).name + "/transposed",
                 {{"perm", std::vector<Index>{1, 0}}});
  }
  for (const Multilinear::Term& term : form.terms) {
    if (term.inputs.size() == 2) {
      layer.weights = times(builder, layer.weights, term.coefficient);
    } else {
      if (!is_constant(builder, inputs[2])) return std::nullopt;
      if (element_count(shape_of(builder, inputs[2])) != n) return std::nullopt;
      if (m != 1 && shape_of(builder, inputs[2]).back() != n) return std::nullopt;
      layer.bias = times(builder, reshaped(builder, inputs[2], {n}), term.coefficient);
    }
  }
  return layer;
}

Attributes conv_attributes(const ConvShape& s, std::size_t rank) {
  const std::size_t first = 3 - rank;
  std::vector<Index> pads(2 * rank), strides, dilations;
  for (std::size_t a = 0; a < rank; ++a) {
    const std::size_t i = first + a;
    const Index reach =
        (s.output[i] - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1 - s.pad[i];
    pads[a] = s.pad[i];
    pads[rank + a] = std::max<Index>(0, reach - s.input[i]);
    strides.push_back(s.stride[i]);
    dilations.push_back(s.dilation[i]);
  }
  return {{"pads", pads}, {"strides", strides}, {"dilations", dilations}, {"group", s.groups}};
}

std::shared_ptr<const Op> padded_conv(const GraphBuilder& builder, const AffineLayer& layer,
                                      const std::vector<ValueId>& inputs) {
  const ValueType& image = builder.value(layer.x).type;
  const std::size_t rank = image.shape.size() - 2;
  std::vector<std::optional<NodeInput>> infos;
  for (const ValueId id : inputs) infos.push_back(NodeInput::of(builder.value(id)));
  infos[0] = NodeInput{layer.pad->infer(std::vector{image})[0]};
  const Imported conv = find_op_kind("Conv")->import(
      OnnxNode("Conv", 13, conv_attributes(layer.conv->shape, rank), infos));
  const Padding padding = *as_padding(*layer.pad);
  PaddedConv map{layer.conv->shape, padding.mode == "wrap"      ? PaddingMode::kCircular
                                    : padding.mode == "reflect" ? PaddingMode::kReflect
                                                                : PaddingMode::kReplicate};
  for (std::size_t a = 0; a < rank; ++a) {
    map.conv.input[3 - rank + a] = image.shape[2 + a];
    map.conv.pad[3 - rank + a] = padding.begin[2 + a];
  }
  return make_padded_conv(layer.pad, conv.op, image, map);
}

ValueId add_flat(GraphBuilder& builder, const AffineLayer& layer, const std::string& name,
                 const std::string& output_name) {
  const Shape weights = shape_of(builder, layer.weights), shape = *layer.flat;
  std::vector<ValueId> inputs{reshaped(builder, layer.x, {1, weights[0]}), layer.weights};
  if (layer.bias) inputs.push_back(*layer.bias);
  if (shape == Shape{1, weights[1]})
    return add_node(builder, "Gemm", inputs, name, {}, 13, {output_name});
  const ValueId row = add_node(builder, "Gemm", inputs, name);
  const ValueId target = builder.constant(
      name + "/shape", Tensor::integers({static_cast<Index>(shape.size())}, shape));
  return add_node(builder, "Reshape", {row, target}, name + "/reshaped", {}, 13, {output_name});
}

}  // namespace

bool may_be_affine_layer(const GraphBuilder& builder, const Op& op,
                         const std::vector<ValueId>& inputs) {
  const std::string_view name = op.name();
  return (name == "Conv" || name == "Gemm" || name == "MatMul") && inputs.size() >= 2 &&
         !is_constant(builder, inputs[0]) && is_constant(builder, inputs[1]);
}

std::optional<AffineLayer> as_affine_layer(GraphBuilder& builder, const Op& op,
                                           const std::vector<ValueId>& inputs) {
  if (!may_be_affine_layer(builder, op, inputs)) return std::nullopt;
  if (const ConvForm* conv = op.convolution()) {
    if (conv->has_bias && !is_constant(builder, inputs[2])) return std::nullopt;
    AffineLayer layer{inputs[0], inputs[1], {}, *conv, {}};
    if (conv->has_bias) layer.bias = inputs[2];
    return layer;
  }
  const Multilinear* form = op.multilinear();
  if (form == nullptr || shape_of(builder, inputs[1]).size() != 2) return std::nullopt;
  if (form->name == "Gemm") return from_gemm(builder, *form, inputs);
  if (shape_of(builder, inputs[0]).size() < 2) return std::nullopt;
  return AffineLayer{inputs[0], inputs[1], {}, {}, {}};
}

ValueId add_layer(GraphBuilder& builder, const AffineLayer& layer, const std::string& name,
                  const std::string& output_name) {
  std::vector<ValueId> inputs{layer.x, layer.weights};
  if (layer.flat) return add_flat(builder, layer, name, output_name);
  if (layer.conv) {
    if (layer.bias) inputs.push_back(*layer.bias);
    if (layer.pad)
      return builder.add(padded_conv(builder, layer, inputs), inputs, name, {output_name})[0];
    const std::size_t rank = shape_of(builder, layer.x).size() - 2;
    return add_node(builder, "Conv", inputs, name, conv_attributes(layer.conv->shape, rank), 13,
                    {output_name});
  }
  if (shape_of(builder, layer.x).size() == 2) {
    if (layer.bias) inputs.push_back(*layer.bias);
    return add_node(builder, "Gemm", inputs, name, {}, 13, {output_name});
  }
  if (!layer.bias) return add_node(builder, "MatMul", inputs, name, {}, 13, {output_name});
  const ValueId product = add_node(builder, "MatMul", inputs, name + "/product");
  return add_node(builder, "Add", {product, *layer.bias}, name, {}, 13, {output_name});
}

Index layer_channels(const GraphBuilder& builder, const AffineLayer& layer) {
  return layer.conv ? layer.conv->shape.out_channels : shape_of(builder, layer.weights)[1];
}

}  // namespace lipscope
