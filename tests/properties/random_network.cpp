// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random_network.h"

#include <algorithm>
#include <cmath>

#include "base/interval.h"
#include "lipscope/error.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope::properties {
namespace {

using Ints = std::vector<Index>;

constexpr int kOpset = 21;

// The operator of a worked example, as kOpset has it; null where that has no such operator.
std::shared_ptr<const Op> made(const OpKind& kind, const OpCase& example) {
  std::vector<std::optional<NodeInput>> inputs;
  for (const OpCase::Input& input : example.inputs) {
    inputs.push_back(NodeInput::like(input.value, input.constant));
  }
  const OnnxNode node(std::string(kind.name), kOpset, example.attributes, inputs,
                      std::vector<bool>(static_cast<std::size_t>(example.outputs), true));
  try {
    const Imported imported = kind.import(node);
    return node.unread().empty() ? imported.op : nullptr;
  } catch (const Error&) {
    return nullptr;
  } catch (const NeedsConstant&) {
    return nullptr;
  }
}

std::vector<std::vector<Activation>> find_activations(bool finite) {
  std::vector<std::vector<Activation>> found;
  for (const OpKind& kind : op_kinds()) {
    Rng rng(1);
    std::vector<Activation> variants;
    for (const OpCase& example : kind.cases(rng)) {
      const auto op = made(kind, example);
      const Elementwise* curve = op != nullptr ? op->elementwise() : nullptr;
      const auto slopes = curve != nullptr ? curve->slopes(kEntire) : std::nullopt;
      if (!slopes || is_bounded(*slopes) != finite) continue;
      Activation& variant =
          variants.emplace_back(Activation{std::string(kind.name), example.attributes, {}});
      for (std::size_t k = 1; k < example.inputs.size(); ++k)
        variant.constants.push_back(example.inputs[k].value);
    }
    if (!variants.empty()) found.push_back(std::move(variants));
  }
  return found;
}

// Windows along one axis.
struct Windows {
  Index kernel, stride, dilation, begin, end;
  [[nodiscard]] Index extent() const { return (kernel - 1) * dilation + 1; }
};

// Calls of pick() stand where their order is fixed: a seed means the same network everywhere.
class Generator {
 public:
  Generator(std::uint64_t seed, bool only_affine) : rng_(seed), only_affine_(only_affine) {}

  struct Kind {
    const char* name;
    bool affine;  // but for activations inside
    bool (*fits)(const Shape& x);
    ValueId (Generator::*add)(ValueId x);
  };
  static const std::vector<Kind>& kinds();

  RandomNetwork make() {
    ValueId x = pick(2) == 0 ? m_.input({1, 1 + pick(4), 2 + pick(5), 2 + pick(5)})
                             : m_.input({1, 1 + pick(6)});
    const Index depth = 1 + pick(4);
    for (Index i = 0; i < depth; ++i) {
      x = layer(x);
      if (pick(3) > 0) x = activation(x);
    }
    Graph graph = m_.finish(x);
    return {std::move(m_), std::move(graph), std::move(used_)};
  }

 private:
  Index pick(Index n) { return static_cast<Index>(rng_() % static_cast<std::uint64_t>(n)); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(pick(std::ssize(list)))];
  }
  Shape shape(ValueId x) const { return m_.shape(x); }
  Index channels(ValueId x) const { return m_.shape(x)[1]; }

  // Zeros and ones among the weights make ties and dead entries.
  ValueId random(Shape shape, double low = -1, double high = 1) {
    Tensor tensor = random_tensor(rng_, std::move(shape), low, high);
    if (low < 0 && pick(5) == 0) {
      for (double& e : tensor.doubles()) e = std::round(e);
    }
    return m_.weights(std::move(tensor));
  }

  ValueId layer(ValueId x) {
    std::vector<const Kind*> fitting;
    for (const Kind& kind : kinds()) {
      if (kind.fits(shape(x)) && (kind.affine || !only_affine_)) fitting.push_back(&kind);
    }
    const Kind& kind = *one_of(fitting);
    used_.emplace_back(kind.name);
    return (this->*kind.add)(x);
  }

  ValueId activation(ValueId x) {
    const Activation& chosen = one_of(one_of(activations(pick(24) > 0)));
    used_.push_back(chosen.op);
    std::vector<ValueId> inputs{x};
    for (const Tensor& constant : chosen.constants) inputs.push_back(m_.weights(constant));
    return m_.add(chosen.op, inputs, chosen.attributes);
  }

  // Rows.

  ValueId dense(ValueId x) {
    const Index n = channels(x), k = 1 + pick(6);
    return m_.add("Gemm", {x, random({n, k}), random({k})});
  }
  ValueId scaled_dense(ValueId x) {
    const ValueId y = dense(m_.add("Div", {x, random({channels(x)}, 0.5, 2)}));
    return m_.add("Add", {m_.add("MatMul", {y, random({channels(y), 3})}), random({3})});
  }
  ValueId residual(ValueId x) {
    const Index n = channels(x);
    const ValueId inner = m_.add("MatMul", {x, random({n, n})});
    return m_.add("Add", {x, pick(2) == 0 ? inner : activation(inner)});
  }
  ValueId concat(ValueId x) { return m_.add("Concat", {x, dense(x)}, {{"axis", Index{1}}}); }
  ValueId layer_norm(ValueId x) {
    const Index n = channels(x);
    return m_.add("LayerNormalization", {x, random({n}), random({n})}, {{"epsilon", 0.125}});
  }
  ValueId softmax(ValueId x) {
    return m_.add(pick(2) == 0 ? "Softmax" : "LogSoftmax", {x}, {{"axis", Index{1}}});
  }
  ValueId gate(ValueId x) { return m_.add("Mul", {m_.add("Tanh", {x}), m_.add("Sigmoid", {x})}); }
  ValueId maximum(ValueId x) {
    const Index n = channels(x);
    return m_.add(pick(2) == 0 ? "Max" : "Min", {x, m_.add("MatMul", {x, random({n, n})})});
  }

  // Images.

  Windows windows(Index size) {
    Windows w{1 + pick(3), 1 + pick(3), 1 + pick(3), pick(3), pick(3)};
    while (w.extent() > size + w.begin + w.end) --w.kernel;
    return w;
  }
  // None of them lies wholly in the padding.
  Windows pool_windows(Index size) {
    Windows w = windows(size);
    w.dilation = std::min(w.dilation, size);
    const auto clamp = [&](Index pad) { return std::min(pad, w.kernel - 1); };
    while (w.extent() > size + clamp(w.begin) + clamp(w.end)) --w.kernel;
    w.begin = clamp(w.begin);
    w.end = clamp(w.end);
    return w;
  }
  static Attributes attributes(const Windows& h, const Windows& w) {
    return {{"strides", Ints{h.stride, w.stride}},
            {"dilations", Ints{h.dilation, w.dilation}},
            {"pads", Ints{h.begin, w.begin, h.end, w.end}}};
  }
  Index groups(Index count) {
    Index chosen = 1 + pick(count);
    while (count % chosen != 0) --chosen;
    return chosen;
  }

  ValueId conv(ValueId x) {
    const Shape s = shape(x);
    const Windows h = windows(s[2]), w = windows(s[3]);
    const Index group = groups(s[1]), out = group * (1 + pick(2));
    Attributes a = attributes(h, w);
    a["group"] = group;
    if (pick(4) == 0) {
      a.erase("pads");
      a["auto_pad"] = std::string(pick(2) == 0 ? "SAME_UPPER" : "SAME_LOWER");
    }
    const ValueId kernel = random({out, s[1] / group, h.kernel, w.kernel});
    return pick(2) == 0 ? m_.add("Conv", {x, kernel}, a)
                        : m_.add("Conv", {x, kernel, random({out})}, a);
  }
  ValueId conv_transpose(ValueId x) {
    const Shape s = shape(x);
    Windows w[2] = {windows(s[2]), windows(s[3])};
    Ints extra;
    for (std::size_t a = 0; a < 2; ++a) {
      const Index full = (s[2 + a] - 1) * w[a].stride + w[a].extent();
      w[a].begin = std::min(w[a].begin, (full - 1) / 2);
      w[a].end = std::min(w[a].end, (full - 1) / 2);
      extra.push_back(pick(std::max(w[a].stride, w[a].dilation)));
    }
    const Index group = groups(s[1]), out = 1 + pick(2);
    Attributes a = attributes(w[0], w[1]);
    a["group"] = group;
    a["output_padding"] = extra;
    return m_.add("ConvTranspose",
                  {x, random({s[1], out, w[0].kernel, w[1].kernel}), random({group * out})}, a);
  }
  ValueId pad(ValueId x) {
    const Shape s = shape(x);
    const auto side = [&](Index size) { return pick(std::min<Index>(3, size)); };
    const ValueId pads = m_.integers({0, 0, side(s[2]), side(s[3]), 0, 0, side(s[2]), side(s[3])});
    return m_.add("Pad", {x, pads},
                  {{"mode", one_of<std::string>({"constant", "reflect", "edge", "wrap"})}});
  }
  ValueId padded_conv(ValueId x) {
    const ValueId padded = pad(x);
    const Shape s = shape(padded);
    const ValueId kernel = random({2, s[1], std::min<Index>(2, s[2]), std::min<Index>(3, s[3])});
    return m_.add("Conv", {padded, kernel}, {{"strides", Ints{1 + pick(2), 1 + pick(2)}}});
  }
  ValueId scaled_conv(ValueId x) {
    const Index n = channels(x);
    const ValueId y = m_.add("Mul", {x, random({1, n, 1, 1})});
    return m_.add("Conv", {y, random({2, n, 1, 1}), random({2})});
  }
  ValueId conv_residual(ValueId x) {
    const Index n = channels(x), d = 1 + pick(2);
    const ValueId inner = m_.add("Conv", {x, random({n, n, 3, 3})},
                                 {{"pads", Ints{d, d, d, d}}, {"dilations", Ints{d, d}}});
    return m_.add("Add", {pick(2) == 0 ? inner : activation(inner), x});
  }
  ValueId conv_concat(ValueId x) {
    const ValueId y = m_.add("Conv", {x, random({2, channels(x), 1, 1})});
    return m_.add("Concat", {y, x}, {{"axis", Index{1}}});
  }
  ValueId pool(ValueId x, const std::string& op, Attributes more) {
    const Shape s = shape(x);
    const Windows h = pool_windows(s[2]), w = pool_windows(s[3]);
    more.merge(attributes(h, w));
    more["kernel_shape"] = Ints{h.kernel, w.kernel};
    more["ceil_mode"] = pick(2);
    return m_.add(op, {x}, more);
  }
  ValueId max_pool(ValueId x) { return pool(x, "MaxPool", {}); }
  ValueId average_pool(ValueId x) {
    return pool(x, "AveragePool", {{"count_include_pad", pick(2)}});
  }
  ValueId lp_pool(ValueId x) { return pool(x, "LpPool", {{"p", 1 + pick(3)}}); }
  ValueId global_pool(ValueId x) {
    return m_.add(one_of<std::string>({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}), {x});
  }
  ValueId batch_norm(ValueId x) {
    const Index n = channels(x);
    return m_.add("BatchNormalization",
                  {x, random({n}), random({n}), random({n}), random({n}, 0.1, 2)});
  }
  ValueId instance_norm(ValueId x) {
    const Index n = channels(x);
    return m_.add("InstanceNormalization", {x, random({n}), random({n})}, {{"epsilon", 0.125}});
  }
  ValueId group_norm(ValueId x) {
    const Index n = channels(x), count = groups(n);
    return m_.add("GroupNormalization", {x, random({n}), random({n})},
                  {{"num_groups", count}, {"epsilon", 0.125}});
  }
  ValueId prelu(ValueId x) {
    Shape slope(shape(x).size() - 1, 1);
    slope[0] = channels(x);
    return m_.add("PRelu", {x, random(slope, -2, 2)});
  }
  ValueId flatten(ValueId x) { return m_.add("Flatten", {x}); }

  testing_support::RecordedGraph m_{kOpset};
  Rng rng_;
  bool only_affine_;
  std::vector<std::string> used_;
};

bool any(const Shape&) { return true; }
bool row(const Shape& x) { return x.size() == 2; }
bool image(const Shape& x) { return x.size() == 4; }
bool small_image(const Shape& x) { return image(x) && element_count(x) <= 80; }
bool row_of_several(const Shape& x) { return row(x) && x[1] > 1; }

const std::vector<Generator::Kind>& Generator::kinds() {
  using G = Generator;
  static const std::vector<Kind> kKinds = {
      {"dense", true, row, &G::dense},
      {"dense", true, row, &G::dense},
      {"scaled dense", true, row, &G::scaled_dense},
      {"residual", true, row, &G::residual},
      {"concat", true, row, &G::concat},
      {"layer norm", false, row_of_several, &G::layer_norm},
      {"softmax", false, row_of_several, &G::softmax},
      {"gate", false, row, &G::gate},
      {"maximum", false, row, &G::maximum},
      {"conv", true, image, &G::conv},
      {"conv", true, image, &G::conv},
      {"conv", true, image, &G::conv},
      {"conv transpose", true, small_image, &G::conv_transpose},
      {"pad", true, small_image, &G::pad},
      {"padded conv", true, small_image, &G::padded_conv},
      {"scaled conv", true, image, &G::scaled_conv},
      {"conv residual", true, image, &G::conv_residual},
      {"conv concat", true, image, &G::conv_concat},
      {"max pool", false, image, &G::max_pool},
      {"average pool", true, image, &G::average_pool},
      {"lp pool", false, image, &G::lp_pool},
      {"global pool", false, image, &G::global_pool},
      {"batch norm", true, image, &G::batch_norm},
      {"instance norm", false, image, &G::instance_norm},
      {"group norm", false, image, &G::group_norm},
      {"prelu", false, any, &G::prelu},
      {"flatten", true, image, &G::flatten},
  };
  return kKinds;
}

}  // namespace

const std::vector<std::vector<Activation>>& activations(bool finite) {
  static const auto kFinite = find_activations(true), kOthers = find_activations(false);
  return finite ? kFinite : kOthers;
}

RandomNetwork random_network(std::uint64_t seed, bool only_affine_layers) {
  return Generator(seed, only_affine_layers).make();
}

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const Generator::Kind& kind : Generator::kinds()) names.emplace_back(kind.name);
  for (const auto& variants : activations(true)) names.push_back(variants[0].op);
  return names;
}

}  // namespace lipscope::properties
