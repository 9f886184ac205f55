// SPDX-License-Identifier: Apache-2.0
#include "ops/integer/quantize.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "graph/exact_map.h"
#include "ops/facets/entry_bounds.h"
#include "ops/integer/element_code.h"
#include "ops/integer/integers.h"
#include "ops/rows/rows.h"

namespace lipscope {
namespace {

// scale and zero point have one entry per index of the split's middle dimension.
struct Grid {
  ElementType out;
  RowSplit split;

  // body(channel, first entry) for each run of `inner` entries that share a channel.
  template <class Body>
  void for_each_run(Body&& body) const {
    for (Index o = 0; o < split.outer; ++o) {
      for (Index c = 0; c < split.length; ++c) body(c, (o * split.length + c) * split.inner);
    }
  }
};

// The nearest integer, ties to even, kept within the type; NaN gives the smallest.
template <class T>
Index saturated_round(ElementType type, T value, Index zero_point) {
  const T smallest = static_cast<T>(smallest_integer(type));
  const T largest = static_cast<T>(largest_integer(type));
  const T moved = std::nearbyint(value) + static_cast<T>(zero_point);
  return static_cast<Index>(moved > smallest ? (moved < largest ? moved : largest) : smallest);
}

std::optional<BoxEntries> zero_points(std::span<const Box> in) {
  if (in.size() > 2) return std::optional<BoxEntries>(std::in_place, in[2]);
  return std::nullopt;
}

class QuantizeLinear final : public Op, public ExactMap {
 public:
  explicit QuantizeLinear(Grid grid) : grid_(grid) {}
  std::string_view name() const override { return "QuantizeLinear"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{grid_.out, in[0].shape}};
  }
  void eval(const EvalArgs& args) const override {
    for_storage(args.in[0].storage, [&](auto from) {
      for_real(args.in[1].storage,
               [&](auto real) { eval_as<decltype(from), decltype(real)>(args); });
    });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    BoxBuilder out(in[0].lower.shape());
    for_each_level(in, [&](Index i, const Interval& level) {
      out.set(i, level);
      return true;
    });
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    bool moves = false;
    for_each_level(query.in, [&](Index, const Interval& level) {
      moves = !(level.lo == level.hi);
      return !moves;
    });
    return Gain{moves ? kInf : 0, "pointwise-3"};
  }
  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    out[0].resize(in[0]->size());
    const RationalInterval least{Rational(BigInteger(smallest_integer(grid_.out)))};
    const RationalInterval most{Rational(BigInteger(largest_integer(grid_.out)))};
    grid_.for_each_run([&](Index c, Index begin) {
      const auto channel = static_cast<std::size_t>(c);
      for (Index i = begin; i < begin + grid_.split.inner; ++i) {
        const auto e = static_cast<std::size_t>(i);
        const RationalInterval level =
            never_falling((*in[0])[e] / (*in[1])[channel],
                          [](const Rational& x) { return Rational(nearest_even(x)); });
        const RationalInterval moved = in.size() > 2 ? level + (*in[2])[channel] : level;
        out[0][e] = min(max(moved, least), most);
      }
    });
    return true;
  }

 private:
  // body(entry, its range), until one returns false.
  template <class Body>
  void for_each_level(std::span<const Box> in, Body&& body) const {
    const BoxEntries x(in[0]), scale(in[1]);
    const std::optional<BoxEntries> zero = zero_points(in);
    const Interval hull = integer_hull(grid_.out);
    bool more = true;
    grid_.for_each_run([&](Index c, Index begin) {
      const Interval by = scale[c], shift = zero ? (*zero)[c] : point(0);
      for (Index i = begin; more && i < begin + grid_.split.inner; ++i) {
        if (contains(by, 0)) {
          more = body(i, hull);
          continue;
        }
        const Interval level = x[i] / by;
        const Interval moved = Interval{std::nearbyint(level.lo), std::nearbyint(level.hi)} + shift;
        more = body(
            i, {std::clamp(moved.lo, hull.lo, hull.hi), std::clamp(moved.hi, hull.lo, hull.hi)});
      }
    });
  }

  template <class From, class T>
  void eval_as(const EvalArgs& args) const {
    for_each_sample(args.count, args.in[0].size, [&](Index b) {
      const From* x = args.in[0].sample<From>(b);
      const T* scale = args.in[1].sample<T>(b);
      const Index* zero = args.in.size() > 2 ? args.in[2].sample<Index>(b) : nullptr;
      Index* y = args.out[0].sample<Index>(b);
      grid_.for_each_run([&](Index c, Index begin) {
        const Index zero_point = zero != nullptr ? zero[c] : 0;
        for (Index i = begin; i < begin + grid_.split.inner; ++i) {
          y[i] = saturated_round(grid_.out, static_cast<T>(x[i]) / scale[c], zero_point);
        }
      });
    });
  }

  Grid grid_;
};

// (x - zero point) scale, with a derivative by the scale: the integers carry none.
class DequantizeLinear final : public Op, public ExactMap {
 public:
  explicit DequantizeLinear(Grid grid) : grid_(grid) {}
  const RowSplit& split() const { return grid_.split; }
  std::string_view name() const override { return "DequantizeLinear"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{grid_.out, in[0].shape}};
  }
  void eval(const EvalArgs& args) const override {
    for_real(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      scaled<T>(args.in, args.in[1], args.out[0], args.count);
    });
  }
  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    const MutView out = args.tangent_out[0];
    if (!out) return;
    if (!args.tangent_in[1]) return fill_zero(out, args.count);
    scaled<double>(args.in, args.tangent_in[1], out, args.count);
  }
  void vjp(const VjpArgs& args) const override {
    const MutView out = args.grad_in[1];
    if (!out) return;
    fill_zero(out, args.count);
    if (!args.grad_out[0]) return;
    for (Index b = 0; b < args.count; ++b) {
      const double* g = args.grad_out[0].sample<double>(b);
      for_each_level(args.in, b, [&](Index i, Index c, Index level) {
        out.sample<double>(b)[c] += g[i] * static_cast<double>(level);
      });
    }
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const BoxEntries scale(in[1]);
    BoxBuilder out(in[0].lower.shape());
    Index channel = -1;
    Interval by = point(0);
    bool is_short = false;
    for_each_level_range(in, [&](Index i, Index c, const Interval& level) {
      if (c != channel) {
        channel = c;
        by = scale[c];
        is_short = by.lo == by.hi && std::fabs(by.lo) <= double{FLT_MAX} &&
                   double{static_cast<float>(by.lo)} == by.lo;
      }
      // 24 bits of the scale and 29 of the level: a double has room for the product.
      const bool exact = is_short && level.lo == level.hi && std::fabs(level.lo) < 0x1p29;
      out.set(i, exact ? point(level.lo * by.lo) : level * by);
    });
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    const BoxEntries scale(query.in[1]), moved(query.in[static_cast<std::size_t>(query.wrt)]);
    EntryGain gain(moved);
    for_each_level_range(query.in, [&](Index i, Index c, const Interval& level) {
      gain.follow(query.wrt == 0 ? i : c, magnitude(query.wrt == 1 ? level : scale[c]));
    });
    return Gain{gain.value(query.norms), "pointwise-2"};
  }
  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    out[0].resize(in[0]->size());
    grid_.for_each_run([&](Index c, Index begin) {
      const auto channel = static_cast<std::size_t>(c);
      for (Index i = begin; i < begin + grid_.split.inner; ++i) {
        const auto e = static_cast<std::size_t>(i);
        const RationalInterval& x = (*in[0])[e];
        out[0][e] = (in.size() > 2 ? x - (*in[2])[channel] : x) * (*in[1])[channel];
      }
    });
    return true;
  }

 private:
  // body(entry, channel, range of x - zero point).
  template <class Body>
  void for_each_level_range(std::span<const Box> in, Body&& body) const {
    const BoxEntries x(in[0]);
    const std::optional<BoxEntries> zero = zero_points(in);
    grid_.for_each_run([&](Index c, Index begin) {
      const Interval shift = zero ? (*zero)[c] : point(0);
      for (Index i = begin; i < begin + grid_.split.inner; ++i) body(i, c, x[i] - shift);
    });
  }

  // body(entry, channel, x - zero point).
  template <class Body>
  void for_each_level(std::span<const ConstView> in, Index b, Body&& body) const {
    const Index* x = in[0].sample<Index>(b);
    const Index* zero = in.size() > 2 ? in[2].sample<Index>(b) : nullptr;
    grid_.for_each_run([&](Index c, Index begin) {
      const Index zero_point = zero != nullptr ? zero[c] : 0;
      for (Index i = begin; i < begin + grid_.split.inner; ++i) body(i, c, x[i] - zero_point);
    });
  }
  template <class T>
  void scaled(std::span<const ConstView> in, const ConstView& scale, const MutView& out,
              Index count) const {
    for_each_sample(count, in[0].size, [&](Index b) {
      const T* by = scale.sample<T>(b);
      T* y = out.sample<T>(b);
      for_each_level(in, b,
                     [&](Index i, Index c, Index level) { y[i] = static_cast<T>(level) * by[c]; });
    });
  }

  Grid grid_;
};

// Reads what both directions share: one scale for all, or one per index of an axis.
Grid grid_of(const OnnxNode& node, ElementType out) {
  if (node.integer("block_size", 0) != 0) node.unsupported("blocked scales");
  node.ignore({"saturate"});  // of 8-bit floating types, which are refused
  const Shape& x = node.input(0).shape;
  const Shape& scale = node.input(1).shape;
  const Index axis = node.integer("axis", 1);
  if (!is_floating(node.input(1).type)) node.unsupported("a scale that is not floating");
  if (node.has_input(2) && element_count(node.input(2).shape) != element_count(scale)) {
    node.malformed("scale and zero point have different shapes");
  }
  if (scale.size() > 1) node.unsupported("blocked scales");
  if (element_count(scale) == 1) return {out, {1, 1, element_count(x)}};
  const Index channel = OnnxNode::axis(axis, static_cast<Index>(x.size()));
  if (x[static_cast<std::size_t>(channel)] != scale[0]) {
    node.malformed("the scale does not fit the axis");
  }
  return {out, RowSplit::of(x, channel, channel + 1)};
}

std::vector<Index> used_inputs(const OnnxNode& node) {
  return node.has_input(2) ? std::vector<Index>{0, 1, 2} : std::vector<Index>{0, 1};
}

Imported import_quantize(const OnnxNode& node) {
  // A computed scale (dynamic quantisation) decides ties by its own rounding: no real-valued
  // answer.
  (void)node.constant_box(1);
  const Index code = node.integer("output_dtype", 0);
  const ElementType out = node.has_input(2) ? node.input(2).type
                          : code != 0       ? element_type_of_code(node, code)
                                            : ElementType::kUInt8;
  if (node.has_input(2) && code != 0 && element_type_of_code(node, code) != out) {
    node.malformed("output_dtype and the zero point disagree");
  }
  if (node.integer("precision", 0) != 0) node.unsupported("attribute 'precision'");
  if (is_floating(out) || largest_integer(out) == 1 || largest_integer(out) > 0xFFFF ||
      out == ElementType::kUInt64) {
    node.unsupported("quantization to " + std::string(to_string(out)));
  }
  return {std::make_shared<QuantizeLinear>(grid_of(node, out)), used_inputs(node)};
}

Imported import_dequantize(const OnnxNode& node) {
  if (is_floating(node.input(0).type)) node.unsupported("floating levels");
  if (node.has_input(2) && node.input(2).type != node.input(0).type) {
    node.malformed("the zero point has another element type");
  }
  const Index code = node.integer("output_dtype", 0);
  const ElementType out = code != 0 ? element_type_of_code(node, code) : node.input(1).type;
  if (!is_floating(out)) node.malformed("output_dtype is not floating");
  return {std::make_shared<DequantizeLinear>(grid_of(node, out)), used_inputs(node)};
}

// Entries in the middle third between half steps of the scale.
Tensor between_ties(Rng& rng, Shape shape, double scale) {
  Tensor x = random_tensor(rng, std::move(shape), -0.3, 0.3);
  std::uniform_int_distribution<int> level(-200, 200);
  for (double& entry : x.doubles()) entry = (entry + level(rng)) * scale;
  return x;
}
Tensor real_vector(std::vector<double> entries) {
  return Tensor::vector(std::move(entries)).cast(ElementType::kFloat32);
}
Tensor levels(ElementType type, Shape shape, std::vector<Index> entries) {
  return {type, std::move(shape), std::move(entries)};
}

std::vector<OpCase> quantize_cases(Rng& rng) {
  const Tensor scalar = real_vector({0.25}).reshaped({});
  return {{.inputs = {{between_ties(rng, {2, 3}, 0.25)}, {scalar, true}}},
          {.inputs = {{between_ties(rng, {6}, 0.25)},
                      {real_vector({0.25}), true},
                      {levels(ElementType::kInt8, {1}, {-3}), true}}},
          {.inputs = {{between_ties(rng, {2, 3, 2}, 0.5)},
                      {real_vector({0.5, 0.5, 0.5}), true},
                      {levels(ElementType::kUInt8, {3}, {0, 128, 255}), true}}},
          {.inputs = {{between_ties(rng, {2, 3}, 0.5)}, {real_vector({0.5, 0.5}), true}},
           .attributes = {{"axis", Index{-2}}, {"output_dtype", Index{5}}},
           .opset = 21},
          {.inputs = {{levels(ElementType::kInt32, {3}, {-700, 3, 900})}, {scalar, true}}}};
}

std::vector<OpCase> dequantize_cases(Rng& rng) {
  const auto scale = [&](Shape shape) { return random_tensor(rng, std::move(shape), 0.1, 1); };
  return {{.inputs = {{levels(ElementType::kUInt8, {3}, {0, 3, 255})}, {scale({}), true}}},
          {.inputs = {{levels(ElementType::kInt8, {2, 2}, {-128, 3, 0, 127})},
                      {scale({2})},
                      {levels(ElementType::kInt8, {2}, {-5, 100}), true}}},
          {.inputs = {{levels(ElementType::kInt32, {2, 1, 2}, {-70000, 3, 0, 9})}, {scale({2})}},
           .attributes = {{"axis", Index{0}}}}};
}

}  // namespace

std::optional<RowSplit> dequantize_split(const Op& op) {
  const auto* node = dynamic_cast<const DequantizeLinear*>(&op);
  if (node == nullptr) return std::nullopt;
  return node->split();
}

std::vector<OpKind> op_quantize() {
  return {{"QuantizeLinear", import_quantize, quantize_cases},
          {"DequantizeLinear", import_dequantize, dequantize_cases}};
}

}  // namespace lipscope
