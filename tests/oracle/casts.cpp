// SPDX-License-Identifier: Apache-2.0
// Cast, CastLike, quantisation.
#include "tests/oracle/node.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

bool narrows(Type from, Type to) {
  return significant_bits(to) < significant_bits(from) || (from == T::BFLOAT16 && to == T::FLOAT16);
}

// Conventions of the project: constants are rounded as the file says, what depends on an input is a
// real number and stays one.
Array cast_to(const Array& x, Type type) {
  Array y(type, x.dims);
  for (Index i = 0; i < x.size(); ++i) {
    const Number& e = x.at(i);
    if (is_floating(type)) {
      y.at(i) = x.moving ? e : rounded(type, e);
      // A computed constant that is no number of its own type: whether a Cast that changes nothing
      // rounds it is left open.
      if (!x.moving && is_floating(x.type) && !narrows(x.type, type) && e.is_finite() &&
          compare(y.at(i), e) != 0) {
        throw Undefined("a Cast that may round or not");
      }
    } else if (x.real && type != T::BOOL) {
      y.at(i) = e;
    } else if (type == T::BOOL) {
      y.at(i) = Number(e.is_nan() || sign(e) != 0 ? 1 : 0);
    } else {
      if (!e.is_finite()) throw Undefined("a Cast of " + e.text() + " to an integer");
      y.at(i) = wrapped(type, truncate(e));
    }
  }
  return y;
}

Type type_named(const std::string& name) {
  T::DataType type{};
  if (!T::DataType_Parse(name, &type)) throw Undefined("type " + name);
  return type;
}
std::vector<Array> cast(const Node& node) {
  return {cast_to(node.in(0), node.opset() < 6 ? type_named(node.text("to", ""))
                                               : static_cast<Type>(node.integer("to", 0)))};
}
std::vector<Array> cast_like(const Node& node) {
  Array x = node.in(0);
  return {cast_to(x, node.in(1).type)};
}

// Scale and zero point of an entry: one for all, or one per index of an axis.
struct Grid {
  const Array* scale;
  const Array* zero;
  Lines lines;
  explicit Grid(const Node& node)
      : scale(&node.in(1)), zero(node.has(2) ? &node.in(2) : nullptr), lines(1, 1, 1) {
    const Array& x = node.in(0);
    if (scale->rank() > 1 || node.integer("block_size", 0) != 0) throw Missing("blocked scales");
    lines = scale->size() == 1 ? Lines(1, 1, x.size())
                               : Lines(x.dims, Node::axis(node.integer("axis", 1), x.rank()));
  }
  Index channel(Index i) const { return i / lines.inner % lines.length; }
  Number zero_at(Index i) const { return zero != nullptr ? zero->at(channel(i)) : Number(0); }
  const Number& scale_at(Index i) const { return scale->at(channel(i)); }
};

std::vector<Array> quantize(const Node& node) {
  const Array& x = node.in(0);
  const Grid grid(node);
  const auto code = static_cast<Type>(node.integer("output_dtype", 0));
  const Type type = node.has(2) ? node.in(2).type : code != 0 ? code : Type{T::UINT8};
  const int size = type == T::UINT8 || type == T::INT8 ? 8 : 16;
  if (type != T::UINT8 && type != T::INT8 && type != T::UINT16 && type != T::INT16) {
    throw Missing("quantisation to " + type_name(type));
  }
  const bool is_signed = type == T::INT8 || type == T::INT16;
  const Number low(is_signed ? -(Index{1} << (size - 1)) : 0);
  const Number high = low + Number((Index{1} << size) - 1);
  Array y(type, x.dims);
  for (Index i = 0; i < x.size(); ++i) {
    const Number level = x.at(i) / grid.scale_at(i);
    if (level.is_nan()) throw Undefined("a level that is no number");
    // Saturation first: it needs no decision about numbers far away.
    const Number zero = grid.zero_at(i);
    const Number cut = min(max(level, low - zero - Number(1)), high - zero + Number(1));
    y.at(i) = min(max(round_half_even(cut) + zero, low), high);
  }
  return {y};
}
std::vector<Array> dequantize(const Node& node) {
  const Array& x = node.in(0);
  const Grid grid(node);
  const auto code = static_cast<Type>(node.integer("output_dtype", 0));
  Array y(code != 0 ? code : node.in(1).type, x.dims);
  for (Index i = 0; i < x.size(); ++i) y.at(i) = (x.at(i) - grid.zero_at(i)) * grid.scale_at(i);
  return {y};
}

}  // namespace

void add_casts(Table& table) {
  table["Cast"] = cast;
  table["CastLike"] = cast_like;
}
void add_quantisation(Table& table) {
  table["QuantizeLinear"] = quantize;
  table["DequantizeLinear"] = dequantize;
}

}  // namespace oracle
