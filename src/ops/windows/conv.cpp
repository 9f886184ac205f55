// SPDX-License-Identifier: Apache-2.0
// Conv and ConvTranspose: linear in the image and in the weights, the one being the adjoint of the
// other. With W the convolution of linalg/conv/convolution.h, Conv is y = W x + b, ConvTranspose is
// y = W' x + b.
#include "ops/windows/conv.h"

#include <fmt/format.h>

#include <algorithm>

#include "linalg/tensor/wide_product.h"
#include "ops/dispatch.h"
#include "ops/facets/wide_map.h"
#include "ops/kind.h"
#include "ops/windows/window.h"

namespace lipscope {
namespace {

class ConvOp final : public Op, public WideMap, public MachineMap {
 public:
  ConvOp(ConvShape shape, bool transposed, bool has_bias, ValueType out)
      : form_{shape, transposed, has_bias}, out_(std::move(out)) {}

  std::string_view name() const override { return form_.transposed ? "ConvTranspose" : "Conv"; }
  const ConvForm* convolution() const override { return &form_; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override { return {out_}; }

  void eval(const EvalArgs& args) const override {
    for_real(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      apply<T>(args.in[0], args.in[1], form_.has_bias ? args.in[2] : ConstView{}, args.out[0],
               args.count);
    });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    return conv_range(form_, out_.shape, in);
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    return conv_gain(form_, query);
  }

  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    return conv_matrix(form_, query, visit);
  }

  const MachineMap* machine_map() const override { return this; }
  std::unique_ptr<const MachineStep> machine_step(const Machine& machine,
                                                  std::size_t) const override {
    return conv_step(form_, machine);
  }

  const WideMap* wide_map() const override { return this; }
  // Of a moving image.
  bool push_wide(std::span<const WideTensor* const> in, std::span<WideTensor> out) const override {
    const WideTensor &x = *in[0], &w = *in[1];
    if (w.moves() || (form_.has_bias && in[2]->moves())) return false;
    const Index channels = form_.transposed ? form_.shape.out_channels : form_.shape.in_channels;
    const ProductMap map{
        .a_size = std::ssize(x.value),
        .b_size = std::ssize(w.value),
        .out_size = element_count(out_.shape),
        .terms = channels / form_.shape.groups * form_.shape.kernel[0] * form_.shape.kernel[1] *
                 form_.shape.kernel[2],
        .apply = [&](Index count, const double* from, const double* weights, double* to) {
          ConvShape shape = form_.shape;
          shape.batch *= count;
          if (form_.transposed) return conv_adjoint_input(shape, from, weights, to);
          conv_forward(shape, from, weights, nullptr, to);
        }};
    std::vector<std::span<const Wide>> images{x.value};
    if (x.moves()) images.emplace_back(x.tangent);
    auto found = wide_products(map, images, w.value);
    out[0].value = std::move(found[0]);
    if (x.moves()) out[0].tangent = std::move(found[1]);
    const auto at = static_cast<std::size_t>(positions());
    for (std::size_t i = 0; form_.has_bias && i < out[0].value.size(); ++i)
      out[0].value[i] += in[2]->value[i / at % in[2]->value.size()];
    return true;
  }

  bool differentiable() const override { return true; }

  void jvp(const JvpArgs& args) const override {
    const MutView out = args.tangent_out[0];
    if (!out) return;
    const ConstView bias = form_.has_bias ? args.tangent_in[2] : ConstView{};
    const ConstView x = args.tangent_in[0], w = args.tangent_in[1];
    if (x) {
      apply<double>(x, args.in[1], bias, out, args.count);
    } else if (w) {
      return apply<double>(args.in[0], w, bias, out, args.count);
    } else {
      fill_zero(out, args.count);
      if (bias) add_bias(bias, out, args.count);
    }
    if (!x || !w) return;
    std::vector<double> more(static_cast<std::size_t>(out.size * args.count));
    MutView second = out;
    second.data = more.data();
    apply<double>(args.in[0], w, {}, second, args.count);
    double* to = out.sample<double>(0);
    for (std::size_t i = 0; i < more.size(); ++i) to[i] += more[i];
  }

  void vjp(const VjpArgs& args) const override {
    const ConstView g = args.grad_out[0];
    for (const MutView& grad : args.grad_in) {
      if (grad && !g) fill_zero(grad, args.count);
    }
    if (!g) return;
    if (args.grad_in[0]) pull_image(g, args.in[1], args.grad_in[0], args.count);
    if (args.grad_in[1]) pull_weights(args.in[0], g, args.grad_in[1], args.count);
    if (form_.has_bias && args.grad_in[2]) pull_bias(g, args.grad_in[2], args.count);
  }

 private:
  [[nodiscard]] Index out_channels() const {
    return form_.transposed ? form_.shape.in_channels : form_.shape.out_channels;
  }
  [[nodiscard]] Index positions() const {
    return form_.transposed ? form_.shape.input_size() : form_.shape.output_size();
  }

  // body(shape, b) once for all samples when they lie one after another and share the weights,
  // otherwise once per sample.
  template <class Body>
  void over_samples(bool together, Index count, Body&& body) const {
    ConvShape shape = form_.shape;
    if (together) {
      shape.batch *= count;
      return body(shape, 0);
    }
    for (Index b = 0; b < count; ++b) body(shape, b);
  }

  // The linear map (of Conv or of ConvTranspose) plus bias.
  template <class T>
  void apply(const ConstView& x, const ConstView& w, const ConstView& bias, const MutView& y,
             Index count) const {
    const bool together = w.stride == 0 && x.stride == x.size && (!bias || bias.stride == 0);
    over_samples(together, count, [&](const ConvShape& shape, Index b) {
      const T* from = x.sample<T>(b);
      const T* weights = w.sample<T>(b);
      T* to = y.sample<T>(b);
      if (form_.transposed) return conv_adjoint_input(shape, from, weights, to);
      conv_forward(shape, from, weights, bias ? bias.sample<T>(b) : nullptr, to);
    });
    if (form_.transposed && bias) add_bias<T>(bias, y, count);
  }

  template <class T = double>
  void add_bias(const ConstView& bias, const MutView& y, Index count) const {
    for_each_sample(count, y.size, [&](Index b) {
      T* to = y.sample<T>(b);
      for (Index n = 0; n < form_.shape.batch; ++n) {
        for (Index m = 0; m < out_channels(); ++m) {
          const T value = bias.sample<T>(b)[m];
          for (Index i = 0; i < positions(); ++i) *to++ += value;
        }
      }
    });
  }

  void pull_image(const ConstView& g, const ConstView& w, const MutView& grad, Index count) const {
    over_samples(w.stride == 0, count, [&](const ConvShape& shape, Index b) {
      const double *from = g.sample<double>(b), *weights = w.sample<double>(b);
      double* to = grad.sample<double>(b);
      if (form_.transposed) return conv_forward(shape, from, weights, nullptr, to);
      conv_adjoint_input(shape, from, weights, to);
    });
  }

  void pull_weights(const ConstView& x, const ConstView& g, const MutView& grad,
                    Index count) const {
    for (Index b = 0; b < count; ++b) {
      const double *image = x.sample<double>(b), *pulled = g.sample<double>(b);
      if (form_.transposed) std::swap(image, pulled);
      conv_adjoint_weights(form_.shape, image, pulled, grad.sample<double>(b));
    }
  }

  void pull_bias(const ConstView& g, const MutView& grad, Index count) const {
    fill_zero(grad, count);
    for (Index b = 0; b < count; ++b) {
      const double* from = g.sample<double>(b);
      double* to = grad.sample<double>(b);
      for (Index n = 0; n < form_.shape.batch; ++n) {
        for (Index m = 0; m < out_channels(); ++m) {
          for (Index i = 0; i < positions(); ++i) to[m] += *from++;
        }
      }
    }
  }

  ConvForm form_;
  ValueType out_;
};

ConvShape::Spatial spatial(const std::vector<Index>& sizes, Index leading) {
  ConvShape::Spatial result{leading, leading, leading};
  std::copy(sizes.begin(), sizes.end(), result.end() - static_cast<Index>(sizes.size()));
  return result;
}

// Checks what both operators share; channels and window are those of the underlying convolution.
ConvShape conv_shape(const OnnxNode& node, const Window& window, Index in_channels,
                     Index out_channels, Index groups) {
  ConvShape s;
  s.batch = node.input(0).shape[0];
  s.groups = groups;
  s.in_channels = in_channels;
  s.out_channels = out_channels;
  s.input = spatial(window.input, 1);
  s.output = spatial(window.output, 1);
  s.kernel = spatial(window.kernel, 1);
  s.stride = spatial(window.stride, 1);
  s.dilation = spatial(window.dilation, 1);
  s.pad = spatial(window.pad_begin, 0);
  return s;
}

struct Parsed {
  std::vector<Index> spatial, kernel;
  Index groups;
};
Parsed parse(const OnnxNode& node) {
  const ValueType &x = node.input(0), &w = node.input(1);
  if (!is_floating(x.type)) node.unsupported(fmt::format("element type {}", to_string(x.type)));
  if (x.type != w.type) node.malformed("image and weights have different element types");
  if (x.shape.size() < 3 || x.shape.size() != w.shape.size()) {
    node.malformed(fmt::format("image of shape {} and weights of shape {}", to_string(x.shape),
                               to_string(w.shape)));
  }
  if (x.shape.size() > 5) node.unsupported("more than three spatial axes");
  const Index groups = node.integer("group", 1);
  if (groups < 1 || w.shape[0] % groups != 0) {
    node.malformed(fmt::format("{} groups for weights of shape {}", groups, to_string(w.shape)));
  }
  return {{x.shape.begin() + 2, x.shape.end()}, {w.shape.begin() + 2, w.shape.end()}, groups};
}

bool read_bias(const OnnxNode& node, Index channels) {
  if (!node.has_input(2)) return false;
  const ValueType& b = node.input(2);
  if (b.shape != Shape{channels} || b.type != node.input(0).type) {
    node.malformed(fmt::format("bias of shape {} for {} channels", to_string(b.shape), channels));
  }
  return true;
}

Imported finish_conv(const OnnxNode& node, const ConvShape& shape, bool transposed,
                     const std::vector<Index>& out_spatial) {
  const Index channels = transposed ? shape.in_channels : shape.out_channels;
  const bool bias = read_bias(node, channels);
  ValueType out{node.input(0).type, {shape.batch, channels}};
  out.shape.insert(out.shape.end(), out_spatial.begin(), out_spatial.end());
  auto op = std::make_shared<const ConvOp>(shape, transposed, bias, std::move(out));
  return {op, bias ? std::vector<Index>{0, 1, 2} : std::vector<Index>{0, 1}};
}

Imported import_conv(const OnnxNode& node) {
  const Parsed p = parse(node);
  const Shape &x = node.input(0).shape, &w = node.input(1).shape;
  if (x[1] != w[1] * p.groups) {
    node.malformed(fmt::format("image of shape {} and weights of shape {} in {} groups",
                               to_string(x), to_string(w), p.groups));
  }
  const Window window = read_window(node, p.spatial, p.kernel);
  return finish_conv(node, conv_shape(node, window, x[1], w[0], p.groups), false, window.output);
}

// The window of the convolution whose adjoint this is: its output is the node's input.
Window read_transposed_window(const OnnxNode& node, const Parsed& p) {
  AutoPad auto_pad = AutoPad::kNotSet;
  const std::size_t rank = p.spatial.size();
  Window w = read_window_attributes(node, rank, p.kernel, auto_pad);
  w.output = p.spatial;
  w.input.resize(rank);
  w.pad_begin.resize(rank);
  w.pad_end.resize(rank);
  const auto list = [&](std::string_view name) {
    std::vector<Index> given = node.integers(name).value_or(std::vector<Index>{});
    // output_shape may name batch and channels too.
    if (name == "output_shape" && given.size() == rank + 2)
      given.erase(given.begin(), given.begin() + 2);
    constexpr Index kLargest = Index{1} << 30;
    if (!given.empty() && given.size() != rank)
      node.malformed(fmt::format("{} of wrong length", name));
    for (const Index v : given) {
      if (v < 0 || v > kLargest) node.malformed(fmt::format("{} holds {}", name, v));
    }
    return given;
  };
  std::vector<Index> extra = list("output_padding");
  const std::vector<Index> wanted = list("output_shape");
  extra.resize(rank);
  for (std::size_t a = 0; a < rank; ++a) {
    if (p.spatial[a] < 1) node.unsupported("an empty image");
    const Index full = (p.spatial[a] - 1) * w.stride[a] + w.extent(a) + extra[a];
    const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
    if (!wanted.empty() || same) {
      w.input[a] = !wanted.empty() ? wanted[a] : p.spatial[a] * w.stride[a];
      const Index total = std::max<Index>(0, full - w.input[a]);
      // The larger half goes to the end for SAME_UPPER and to the beginning otherwise.
      w.pad_begin[a] = auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
      w.pad_end[a] = total - w.pad_begin[a];
    } else {
      w.input[a] = full - w.pad_begin[a] - w.pad_end[a];
    }
    if (w.input[a] < 0) node.malformed("the pads leave nothing of the output");
  }
  return w;
}

Imported import_conv_transpose(const OnnxNode& node) {
  const Parsed p = parse(node);
  const Shape &x = node.input(0).shape, &w = node.input(1).shape;
  if (x[1] != w[0]) {
    node.malformed(
        fmt::format("image of shape {} and weights of shape {}", to_string(x), to_string(w)));
  }
  const Window window = read_transposed_window(node, p);
  const ConvShape shape = conv_shape(node, window, w[1] * p.groups, x[1], p.groups);
  return finish_conv(node, shape, true, window.input);
}

using Ints = std::vector<Index>;

std::vector<OpCase> conv_cases(Rng& rng) {
  const auto make = [&](Shape x, Shape w, bool bias, Attributes attributes, bool fixed = true) {
    OpCase result{.inputs = {{random_tensor(rng, std::move(x))}, {random_tensor(rng, w), fixed}},
                  .attributes = std::move(attributes)};
    if (bias) result.inputs.push_back({random_tensor(rng, {w[0]}), fixed});
    return result;
  };
  return {
      make({1, 3, 6, 5}, {4, 3, 3, 3}, true, {{"pads", Ints{1, 1, 1, 1}}}),
      make({1, 8, 7, 7}, {16, 8, 3, 3}, false,
           {{"pads", Ints{0, 1, 2, 0}}, {"strides", Ints{2, 1}}, {"kernel_shape", Ints{3, 3}}}),
      make({2, 4, 6, 6}, {6, 2, 3, 2}, true, {{"group", Index{2}}, {"dilations", Ints{2, 3}}},
           false),
      make({1, 5, 6, 6}, {5, 1, 3, 3}, true, {{"group", Index{5}}, {"strides", Ints{2, 2}}}, false),
      make({1, 4, 5, 5}, {8, 1, 3, 3}, false, {{"group", Index{4}}, {"pads", Ints{1, 1, 1, 1}}}),
      make({1, 9, 5, 4}, {7, 9, 1, 1}, true, {}, false),
      make({1, 3, 11}, {5, 3, 4}, true, {{"strides", Ints{3}}, {"pads", Ints{2, 1}}}, false),
      make({1, 2, 4, 5, 3}, {5, 2, 2, 3, 2}, true, {{"pads", Ints{1, 0, 1, 0, 1, 0}}}, false),
      make({1, 2, 6, 7}, {3, 2, 3, 3}, true,
           {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}}),
      make({1, 2, 6, 6}, {3, 2, 3, 3}, true,
           {{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2, 2}}}),
      make({1, 3, 40, 40}, {6, 3, 5, 5}, false, {{"pads", Ints{6, 6, 6, 6}}}),
      make({0, 3, 4, 4}, {2, 3, 3, 3}, true, {}),
  };
}

std::vector<OpCase> conv_transpose_cases(Rng& rng) {
  const auto make = [&](Shape x, Shape w, Index bias, Attributes attributes, bool fixed = true) {
    OpCase result{
        .inputs = {{random_tensor(rng, std::move(x))}, {random_tensor(rng, std::move(w)), fixed}},
        .attributes = std::move(attributes)};
    if (bias > 0) result.inputs.push_back({random_tensor(rng, {bias}), fixed});
    return result;
  };
  return {
      make({1, 3, 4, 5}, {3, 2, 3, 3}, 2, {}),
      make({2, 8, 4, 4}, {8, 16, 3, 3}, 16,
           {{"strides", Ints{2, 3}}, {"output_padding", Ints{1, 2}}, {"pads", Ints{1, 0, 0, 2}}},
           false),
      make({1, 4, 4, 4}, {4, 3, 2, 2}, 6,
           {{"group", Index{2}}, {"strides", Ints{2, 2}}, {"dilations", Ints{2, 1}}}, false),
      make({1, 5, 4, 4}, {5, 1, 3, 3}, 0, {{"group", Index{5}}, {"strides", Ints{2, 2}}}),
      make({1, 2, 5}, {2, 3, 4}, 3, {{"output_shape", Ints{12}}, {"strides", Ints{2}}}, false),
      make({1, 2, 3, 3}, {2, 2, 3, 3}, 0, {{"output_shape", Ints{10, 8}}, {"strides", Ints{3, 2}}}),
      make({1, 2, 3, 2, 4}, {2, 3, 2, 2, 3}, 3, {{"strides", Ints{1, 2, 2}}}, false),
      make({1, 2, 3, 3}, {2, 2, 3, 3}, 2,
           {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}}),
      make({1, 2, 3, 3}, {2, 2, 4, 4}, 2,
           {{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{3, 3}}}),
      make({1, 2, 3, 3}, {2, 2, 3, 3}, 2, {{"auto_pad", std::string("VALID")}}),
  };
}

}  // namespace

std::vector<OpKind> op_conv() {
  return {{"Conv", import_conv, conv_cases},
          {"ConvTranspose", import_conv_transpose, conv_transpose_cases}};
}

}  // namespace lipscope
