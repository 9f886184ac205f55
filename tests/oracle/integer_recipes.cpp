// SPDX-License-Identifier: Apache-2.0
// Constants by way of integers: wrap-around, truncation, numbers that no double holds.
#include "tests/oracle/recipes.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

Value whole_number(Builder& b, Type type) {
  static const std::vector<Index> kWide = {0,
                                           1,
                                           -1,
                                           2,
                                           3,
                                           7,
                                           200,
                                           255,
                                           65537,
                                           (Index{1} << 53) + 1,
                                           (Index{1} << 60) - 1,
                                           -(Index{1} << 62)};
  Array array(type, {1});
  array.at(0) = wrapped(type, Number(b.one_of(kWide)));
  return b.constant(array);
}

Value combined(Builder& b, const Value& x) {
  const Value y = whole_number(b, x.type());
  switch (b.pick(9)) {
    case 0: return b.add("Add", {x, y});
    case 1: return b.add("Sub", {x, y});
    case 2: return b.add("Mul", {x, y});
    case 3: return b.add("Div", {x, y});
    case 4: return b.add("Mod", {x, y});
    case 5: return b.add("Abs", {b.add("Neg", {x})});
    case 6: return b.add(b.one_of<std::string>({"Max", "Min"}), {x, y});
    case 7:
      return reduced(b, b.one_of<std::string>({"ReduceSum", "ReduceMax", "ReduceProd"}),
                     b.add("Concat", {x, y, x}, {{"axis", Index{0}}}), {0}, true);
    default: return b.add("Where", {b.add("Greater", {x, y}), x, y});
  }
}

// The same integers elsewhere, or in another type, which may not hold them all.
Value moved_integers(Builder& b, const Value& x) {
  const auto rank = static_cast<Index>(x.dims().size());
  switch (b.pick(6)) {
    case 0: return b.add("Transpose", {x});
    case 1: return reshaped(b, x, {-1});
    case 2: return unsqueezed(b, x, {0});
    case 3: {
      const Index axis = b.pick(rank), n = x.dims()[Array::to_size(axis)];
      std::vector<Index> places;
      for (Index k = 0; k < n; ++k) places.push_back(b.pick(n));
      return b.add("Gather", {x, b.integers(places)}, {{"axis", axis}});
    }
    case 4: return b.add("Concat", {x, x}, {{"axis", b.pick(rank)}});
    default:
      return b.add("Cast", {x},
                   {{"to", b.one_of<Index>({T::INT64, T::INT64, T::INT32, T::INT16, T::INT8})}});
  }
}

}  // namespace

Value cast_at_once(Builder& b, const Value& whole, Type type) {
  Value x = whole;
  for (Index k = b.pick(3); k > 0; --k) x = moved_integers(b, x);
  const bool byte = x.type() == T::UINT8 || x.type() == T::INT8;
  if (byte && b.opset() >= 10 && b.chance(50)) {
    const Value scale = b.scalar(T::FLOAT, b.one_of<double>({0.5, 1.0007, 1.0 / 255, 3}));
    const Value y = b.chance(40)
                        ? b.add("DequantizeLinear", {x, scale})
                        : b.add("DequantizeLinear",
                                {x, scale, b.constant(x.type(), {}, {double(b.pick(100))})});
    return type == T::FLOAT ? y : b.add("Cast", {y}, {{"to", Index{type}}});
  }
  const Value y = b.add("Cast", {x}, {{"to", Index{type}}});
  return b.chance(40) ? b.add("Mul", {y, b.scalar(type, 1.0 / 255)}) : y;
}

Value integer_constant(Builder& b, Type type) {
  b.tame = false;
  Value x =
      whole_number(b, b.one_of<Type>({T::INT64, T::INT64, T::INT32, T::UINT8, T::INT8, T::UINT64}));
  for (Index k = b.pick(3); k > 0; --k) x = combined(b, x);
  if (b.chance(30))
    x = b.add("Cast", {x},
              {{"to", b.one_of<Index>({T::INT64, T::INT32, T::UINT8, T::INT16, T::BOOL})}});
  // Rounded by the Cast, perhaps twice; what that took away may be all that is left.
  Value c =
      b.add("Cast", {x}, {{"to", b.one_of<Index>({type, type, T::FLOAT, T::FLOAT16, T::DOUBLE})}});
  if (c.type() != type) c = b.add("Cast", {c}, {{"to", Index{type}}});
  const double near = x.sample.at(0).middle();
  if (b.chance(40)) c = b.add("Sub", {c, b.constant(type, {1}, {near})});
  return c;
}

}  // namespace oracle
