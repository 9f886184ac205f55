// SPDX-License-Identifier: Apache-2.0
// Constants, rows and branches that are chosen by comparing computed constants.
#include <cmath>

#include "tests/oracle/recipes.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

// A computed constant and a number next to it, or a second way to compute the like.
std::pair<Value, Value> close_pair(Builder& b, Type type) {
  const Value c = reshaped(b, computed_constant(b, type, 2), {1});
  if (b.chance(25)) return {c, reshaped(b, computed_constant(b, type, 2), {1})};
  const double near = c.sample.at(0).middle();
  const double other = b.chance(60) ? near : std::round(near);
  return {c, b.constant(type, {1}, {other})};
}

Value condition(Builder& b, Type type) {
  const auto [x, y] = close_pair(b, type);
  std::vector<std::string> ops{"Greater", "Less", "Equal"};
  if (b.opset() >= 12) ops.insert(ops.end(), {"GreaterOrEqual", "LessOrEqual"});
  const bool flip = b.chance(50);
  Value c = b.add(b.one_of(ops), {flip ? y : x, flip ? x : y});
  if (b.chance(15)) c = b.add("Not", {c});
  if (b.chance(10))
    c = b.add(b.one_of<std::string>({"And", "Or", "Xor"}), {c, b.constant(T::BOOL, {1}, {1})});
  if (b.chance(10)) {
    // Bool by a Cast of the difference.
    c = b.add("Cast", {b.add("Sub", {x, y})}, {{"to", Index{T::BOOL}}});
  }
  return c;
}

// The place of the larger one of two: 0 or 1.
Value chosen_index(Builder& b, Type type) {
  const auto [x, y] = close_pair(b, type);
  const Value both = b.add("Concat", {x, y}, {{"axis", Index{0}}});
  switch (b.pick(5)) {
    case 0: return b.add("ArgMax", {both}, {{"axis", Index{0}}});
    case 1: return b.add("ArgMin", {both}, {{"axis", Index{0}}});
    case 2: {
      if (b.opset() < 11) throw Rejected("TopK");
      return b.add_all("TopK", {both, b.integers({1})}, {{"largest", b.pick(2)}}, 2)[1];
    }
    case 3: {
      const Value hard = b.add("Hardmax", {both}, {{"axis", Index{0}}});
      return b.add("ArgMax", {hard}, {{"axis", Index{0}}});
    }
    default: {
      // 1 where they differ: NonZero of [difference, 1] begins there.
      const Value list =
          b.add("Concat", {b.add("Sub", {x, y}), b.constant(type, {1}, {1})}, {{"axis", Index{0}}});
      const Value places = b.add("NonZero", {list});
      return reshaped(b, b.add("Gather", {reshaped(b, places, {-1}), b.integers({0})}), {1});
    }
  }
}

// An integer from a computed constant.
Value cut(Builder& b, Type type) {
  const Value c = reshaped(b, computed_constant(b, type, 2), {1});
  if (std::abs(c.sample.at(0).middle()) > 1e6) throw Rejected("a large integer");
  switch (b.pick(7)) {
    case 0: return b.add("Floor", {c});
    case 1: return b.add("Ceil", {c});
    case 2: return b.add("Round", {c});
    case 3:
      return b.add("Sign", {b.add("Sub", {c, b.constant(type, {1}, {c.sample.at(0).middle()})})});
    case 4: {
      const Value levels =
          b.add("QuantizeLinear", {c, b.scalar(T::FLOAT, b.one_of<double>({1, 0.5, 0.1}))});
      const Value back = b.add("DequantizeLinear", {levels, b.scalar(T::FLOAT, 1)});
      return b.add("Cast", {back}, {{"to", Index{type}}});
    }
    case 5:
      return b.add("Mod", {c, b.constant(type, {1}, {b.one_of<double>({1, 2, 0.5})})},
                   {{"fmod", Index{1}}});
    default: {
      const Index code =
          b.one_of<Index>({T::INT64, T::INT32, T::UINT8, T::INT8, T::INT16, T::UINT64});
      const Value whole = b.add("Cast", {c}, {{"to", code}});
      return b.add("Cast", {whole}, {{"to", Index{type}}});
    }
  }
}

}  // namespace

Value decided_constant(Builder& b, Type type) {
  b.tame = false;
  switch (b.pick(6)) {
    case 0: {
      return b.add("Where", {condition(b, type), b.constant(type, {1}, {special_number(b)}),
                             b.random_constant(type, {1})});
    }
    case 1: return b.add("Cast", {condition(b, type)}, {{"to", Index{type}}});
    case 2: {
      const Value rows = b.constant(type, {2}, {b.uniform(1, 2), b.uniform(20, 30)});
      return reshaped(b, b.add("Gather", {rows, chosen_index(b, type)}), {1});
    }
    case 3: {
      const Value whole = cut(b, type);
      return b.add("Sub", {whole, b.constant(type, {1},
                                             {whole.sample.at(0).middle() + 1 -
                                              2 * static_cast<double>(b.pick(2))})});
    }
    case 4: {
      // How many numbers a Range has.
      const Value end = reshaped(b, computed_constant(b, type, 2), {});
      if (std::abs(end.sample.at(0).middle()) > 20) throw Rejected("a long Range");
      const Value range = b.add(
          "Range", {b.scalar(type, 0), end, b.scalar(type, b.one_of<double>({1, 0.1, 1.0 / 3}))});
      return reshaped(b, b.add("Cast", {b.add("Size", {range})}, {{"to", Index{type}}}), {1});
    }
    default: {
      const Value c = reshaped(b, computed_constant(b, type, 2), {1});
      const auto near = static_cast<float>(c.sample.at(0).middle());
      if (!(near > 0)) throw Rejected("not positive");
      return b.chance(50) ? b.add("ThresholdedRelu", {c}, {{"alpha", near}})
                          : b.add("Shrink", {c}, {{"lambd", near}});
    }
  }
}

Value chosen_by_constant(Builder& b, const Value& x) {
  b.tame = false;
  const Type type = x.type();
  const Value ten = b.add("Mul", {x, b.scalar(type, b.one_of<double>({10, 3, -2, 0}))});
  if (b.chance(60)) return b.add("Where", {condition(b, type), ten, x});
  // Two rows stacked, one of them taken.
  const Value both =
      b.add("Concat", {unsqueezed(b, x, {0}), unsqueezed(b, ten, {0})}, {{"axis", Index{0}}});
  const Value row = b.add("Gather", {both, chosen_index(b, type)}, {{"axis", Index{0}}});
  return reshaped(b, row, x.dims());
}

}  // namespace oracle
