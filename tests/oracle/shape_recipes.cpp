// SPDX-License-Identifier: Apache-2.0
// Layers that move entries, with shapes computed in the graph; Resize.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/oracle/recipes.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

// The shape as nodes compute it.
Value computed_shape(Builder& b, const Value& x, const Dims& wanted) {
  const Value shape = b.add("Shape", {x});
  if (wanted == x.dims()) return shape;
  if (wanted.size() == 1) return reshaped(b, b.add("Size", {x}), {1});
  // By way of floating numbers.
  const Type type = b.one_of<Type>({T::FLOAT, T::DOUBLE});
  std::vector<double> halves;
  for (const Index d : wanted)
    halves.push_back(static_cast<double>(d) / 2 + (b.chance(50) ? 0.2 : 0));
  const Value numbers = b.add("Mul", {b.constant(type, {static_cast<Index>(wanted.size())}, halves),
                                      b.constant(type, {1}, {2})});
  const Value cut = b.chance(50) ? b.add("Floor", {numbers}) : numbers;
  return b.add("Cast", {cut}, {{"to", Index{T::INT64}}});
}

Value reshape_layer(Builder& b, const Value& x) {
  const Index n = count(x.dims());
  Dims dims;
  switch (b.pick(3)) {
    case 0: dims = {1, n}; break;
    case 1: dims = {n, 1}; break;
    default: dims = {1, 1, n}; break;
  }
  return b.add("Reshape", {x, computed_shape(b, x, dims)});
}
Value expand_layer(Builder& b, const Value& x) {
  Dims dims = x.dims();
  for (Index& d : dims) d = d == 1 ? 1 + b.pick(3) : d;
  if (b.chance(30)) dims.insert(dims.begin(), 2);
  return b.add("Expand", {x, computed_shape(b, x, dims)});
}
Value filled_layer(Builder& b, const Value& x) {
  const Array value(x.type(), {1}, {rounded(x.type(), Number(special_number(b)))});
  b.tame = false;
  const Value filled = b.add("ConstantOfShape", {b.add("Shape", {x})}, {{"value", value}});
  return b.add(b.one_of<std::string>({"Mul", "Add", "Sub", "Max"}), {x, filled});
}
Value slice_layer(Builder& b, const Value& x) {
  if (x.dims().empty()) throw Rejected("a scalar");
  const Index axis = b.pick(static_cast<Index>(x.dims().size())),
              n = x.dims()[Array::to_size(axis)];
  const Index start = b.pick(n);
  const bool back = b.chance(30);
  const Index end = back ? -n - 1 : n + b.pick(3), step = back ? -1 - b.pick(2) : 1 + b.pick(2);
  if (b.opset() < 10) {
    return b.add("Slice", {x},
                 {{"starts", Dims{start}}, {"ends", Dims{n + 1}}, {"axes", Dims{axis}}});
  }
  Value starts = b.integers({start});
  if (b.chance(40)) {
    starts = b.add("Cast", {b.constant(T::DOUBLE, {1}, {static_cast<double>(start) + 0.25})},
                   {{"to", Index{T::INT64}}});
  }
  return b.add("Slice", {x, starts, b.integers({end}), b.integers({axis}), b.integers({step})});
}
Value pad_layer(Builder& b, const Value& x) {
  Dims pads;
  for (std::size_t k = 0; k < 2 * x.dims().size(); ++k)
    pads.push_back(b.chance(60) ? 0 : b.pick(3));
  const std::string mode = b.one_of<std::string>({"constant", "reflect", "edge"});
  for (std::size_t k = 0; k < pads.size() && mode == "reflect"; ++k) {
    pads[k] = std::min(pads[k], x.dims()[k % x.dims().size()] - 1);
  }
  if (b.opset() < 11) return b.add("Pad", {x}, {{"pads", pads}, {"mode", mode}});
  if (mode == "constant" && b.chance(50))
    return b.add("Pad", {x, b.integers(pads), b.scalar(x.type(), 0.5)});
  return b.add("Pad", {x, b.integers(pads)}, {{"mode", mode}});
}
Value moved_layer(Builder& b, const Value& x) {
  if (x.dims().empty()) throw Rejected("a scalar");
  const auto rank = static_cast<Index>(x.dims().size());
  const Index axis = b.pick(rank), n = x.dims()[Array::to_size(axis)];
  switch (b.pick(12)) {
    case 0: {
      Dims perm(x.dims().size());
      std::iota(perm.begin(), perm.end(), 0);
      std::shuffle(perm.begin(), perm.end(), b.rng());
      return b.chance(30) ? b.add("Transpose", {x}) : b.add("Transpose", {x}, {{"perm", perm}});
    }
    case 1: {
      Dims repeats(x.dims().size(), 1);
      repeats[Array::to_size(axis)] = 2;
      return b.add("Tile", {x, b.integers(repeats)});
    }
    case 2: return b.add("Gather", {x, b.integers({b.pick(n), b.pick(n), -1})}, {{"axis", axis}});
    case 3: return b.add("Flatten", {x}, {{"axis", b.pick(rank + 1)}});
    case 4: return b.add("Concat", {x, x, b.add("Neg", {x})}, {{"axis", axis}});
    case 5: {
      if (n < 2) throw Rejected("nothing to split");
      if (b.opset() >= 13)
        return b.add_all("Split", {x, b.integers({1, n - 1})}, {{"axis", axis}},
                         2)[Array::to_size(b.pick(2))];
      return b.add_all("Split", {x}, {{"axis", axis}, {"split", Dims{1, n - 1}}},
                       2)[Array::to_size(b.pick(2))];
    }
    case 6:
      return b.add("CumSum", {x, b.scalar(T::INT64, static_cast<double>(axis))},
                   {{"exclusive", b.pick(2)}, {"reverse", b.pick(2)}});
    case 7: {
      if (b.opset() < 11) throw Rejected("TopK");
      return b.add_all("TopK", {x, b.integers({1 + b.pick(n)})},
                       {{"axis", axis}, {"largest", b.pick(2)}}, 2)[0];
    }
    case 8: return b.add("Trilu", {x}, {{"upper", b.pick(2)}});
    case 9: {
      Dims indices;
      for (Index k = 0; k < count(x.dims()); ++k) indices.push_back(b.pick(n));
      return b.add("GatherElements", {x, b.constant(int64_array(x.dims(), indices))},
                   {{"axis", axis}});
    }
    case 10: {
      const Value where = b.constant(int64_array({1, 1}, {b.pick(x.dims()[0])}));
      Dims rest(x.dims().begin() + 1, x.dims().end());
      rest.insert(rest.begin(), 1);
      Attributes a;
      if (b.opset() >= 16 && b.chance(50))
        a.emplace_back("reduction", b.one_of<std::string>({"add", "mul"}));
      return b.add("ScatterND", {x, where, b.random_constant(x.type(), rest)}, a);
    }
    default: {
      Array keep(T::BOOL, {n});
      for (Number& e : keep.entries) e = Number(b.chance(70) ? 1 : 0);
      return b.add("Compress", {x, b.constant(keep)}, {{"axis", axis}});
    }
  }
}

double odd_scale(Builder& b) {
  const double base = b.one_of<double>({2, 3, 1.5, 0.5, 0.6, 1.0 / 3, 2.0 / 3, 1.25, 1, 0.7, 1.9});
  switch (b.pick(4)) {
    case 0: return std::nextafter(static_cast<float>(base), 10.0F);
    case 1: return static_cast<double>(static_cast<float>(base) * (1 + 0x1p-20F));
    case 2: return static_cast<double>(static_cast<float>(base) * (1 - 0x1p-21F));
    default: return static_cast<double>(static_cast<float>(base));
  }
}

}  // namespace

Value resized(Builder& b, const Value& x) {
  Dims image = x.dims();
  Value from = x;
  if (image.size() != 3 && image.size() != 4) {
    image = {1, 1, count(image)};
    from = reshaped(b, x, image);
  }
  b.tame = false;
  std::vector<double> scales(image.size(), 1);
  const std::size_t axis =
      2 + static_cast<std::size_t>(b.pick(static_cast<Index>(image.size()) - 2));
  scales[axis] = odd_scale(b);
  if (b.chance(20)) scales.back() = odd_scale(b);
  Attributes a{{"mode", b.one_of<std::string>({"nearest", "nearest", "linear", "cubic"})}};
  if (b.opset() < 11) {
    a = {{"mode", b.one_of<std::string>({"nearest", "linear"})}};
    const Value given = b.constant(T::FLOAT, {static_cast<Index>(image.size())}, scales);
    if (b.opset() == 10) return b.add("Resize", {from, given}, a);
    if (b.opset() == 9) return b.add("Upsample", {from, given}, a);
    std::vector<float> list(scales.begin(), scales.end());
    a.emplace_back("scales", list);
    return b.add("Upsample", {from}, a);
  }
  if (b.chance(80)) {
    a.emplace_back("coordinate_transformation_mode",
                   b.one_of<std::string>({"asymmetric", "asymmetric", "half_pixel",
                                          "pytorch_half_pixel", "align_corners"}));
  }
  if (b.chance(70)) {
    a.emplace_back("nearest_mode", b.one_of<std::string>({"floor", "ceil", "round_prefer_floor",
                                                          "round_prefer_ceil"}));
  }
  if (b.chance(15)) a.emplace_back("exclude_outside", Index{1});
  if (b.chance(15)) a.emplace_back("cubic_coeff_a", -0.6F);
  if (b.opset() >= 18 && b.chance(20)) a.emplace_back("antialias", Index{1});
  const Value roi = b.opset() >= 13 ? kAbsent : b.constant(T::FLOAT, {0}, {0});
  if (b.chance(30)) {
    Dims sizes = image;
    sizes[axis] = 1 + b.pick(7);
    const Value none = b.opset() >= 13 ? kAbsent : b.constant(T::FLOAT, {0}, {0});
    return b.add("Resize", {from, roi, none, b.integers(sizes)}, a);
  }
  Value given = b.constant(T::FLOAT, {static_cast<Index>(image.size())}, scales);
  if (b.chance(30)) {
    given = b.add("Mul", {given, b.constant(T::FLOAT, {1},
                                            {b.one_of<double>({1, 1 + 0x1p-23, 1 - 0x1p-24})})});
  }
  return b.add("Resize", {from, roi, given}, a);
}

Value shape_layer(Builder& b, const Value& x) {
  using Recipe = Value (*)(Builder&, const Value&);
  static const std::vector<Recipe> kRecipes = {
      reshape_layer, expand_layer, filled_layer, slice_layer, pad_layer, moved_layer, moved_layer};
  return b.one_of(kRecipes)(b, x);
}

}  // namespace oracle
