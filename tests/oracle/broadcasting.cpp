// SPDX-License-Identifier: Apache-2.0
// Two or more operands with broadcasting.
#include <algorithm>

#include "tests/oracle/functions.h"
#include "tests/oracle/node.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

// Before opset 7 the second operand could be placed at an axis of the first.
Dims aligned(const Node& node, const Array& a, const Array& b) {
  if (node.opset() >= 7 || node.integer("broadcast", 0) == 0 || node.find("axis") == nullptr) {
    return b.dims;
  }
  const Index axis = Node::axis(node.integer("axis", 0), a.rank());
  Dims dims = b.dims;
  dims.resize(Array::to_size(a.rank() - axis), 1);
  return dims;
}

template <class F>
Array combined(const Node& node, Type type, F&& f) {
  const Array &a = node.in(0), &b = node.in(1);
  const Dims second = aligned(node, a, b);
  Array y(type, broadcast_dims(a.dims, second));
  for_each_index(y.dims, [&](const Dims& at, Index i) {
    y.at(i) = wrapped(type, f(a.at(broadcast_at(a.dims, at)), b.at(broadcast_at(second, at))));
  });
  return y;
}

Number plus(const Number& a, const Number& b) { return a + b; }
Number minus(const Number& a, const Number& b) { return a - b; }
Number times(const Number& a, const Number& b) { return a * b; }

template <Number (*F)(const Number&, const Number&)>
std::vector<Array> binary(const Node& node) {
  return {combined(node, node.in(0).type, F)};
}
std::vector<Array> divide(const Node& node) {
  const bool real = is_floating(node.in(0).type);
  return {combined(node, node.in(0).type, [&](const Number& a, const Number& b) {
    if (!real && sign(b) == 0) throw Undefined("integer division by zero");
    return real ? a / b : truncate(a / b);
  })};
}
std::vector<Array> power(const Node& node) {
  const bool real = is_floating(node.in(0).type);
  return {combined(node, node.in(0).type, [&](const Number& a, const Number& b) {
    return real ? pow(a, b) : truncate(pow(a, b));
  })};
}
std::vector<Array> modulo(const Node& node) {
  const bool like_c = node.integer("fmod", 0) != 0;
  return {combined(node, node.in(0).type, [&](const Number& a, const Number& b) {
    if (b.infinite() != 0) return a;
    const Number q = a / b;
    if (q.is_nan()) return q;
    return a - (like_c ? truncate(q) : floor(q)) * b;
  })};
}

template <class F>
std::vector<Array> compared(const Node& node, F&& f) {
  return {combined(node, T::BOOL, [&](const Number& a, const Number& b) {
    if (a.is_nan() || b.is_nan()) return Number(0);
    return Number(f(compare(a, b)) ? 1 : 0);
  })};
}
std::vector<Array> equal(const Node& node) {
  return compared(node, [](int c) { return c == 0; });
}
std::vector<Array> less(const Node& node) {
  return compared(node, [](int c) { return c < 0; });
}
std::vector<Array> greater(const Node& node) {
  return compared(node, [](int c) { return c > 0; });
}
std::vector<Array> less_or_equal(const Node& node) {
  return compared(node, [](int c) { return c <= 0; });
}
std::vector<Array> greater_or_equal(const Node& node) {
  return compared(node, [](int c) { return c >= 0; });
}

using BitFunction = void (*)(mpz_ptr, mpz_srcptr, mpz_srcptr);
template <BitFunction F>
std::vector<Array> bits(const Node& node) {
  return {combined(node, node.in(0).type, [](const Number& a, const Number& b) {
    mpz_class result;
    const mpz_class x = a.exact().get_num(), y = b.exact().get_num();
    F(result.get_mpz_t(), x.get_mpz_t(), y.get_mpz_t());
    return integer_number(result);
  })};
}
std::vector<Array> bit_shift(const Node& node) {
  const bool left = node.text("direction", "") == "LEFT";
  return {combined(node, node.in(0).type, [&](const Number& a, const Number& b) {
    const Number factor = pow(Number(2), b);
    return left ? a * factor : floor(a / factor);
  })};
}

std::vector<Array> prelu(const Node& node) {
  const Array &x = node.in(0), &slope = node.in(1);
  Array y(x.type, x.dims);
  Dims dims = slope.dims;
  // Before broadcasting there was one slope for all, or one per channel.
  if (node.opset() < 7 && slope.size() > 1) {
    dims = Dims(Array::to_size(x.rank() - 1), 1);
    dims[0] = slope.size();
  }
  for_each_index(x.dims, [&](const Dims& at, Index i) {
    const Number& s = slope.at(broadcast_at(dims, at));
    y.at(i) = wrapped(x.type, max(x.at(i), Number(0)) + s * min(x.at(i), Number(0)));
  });
  return {y};
}

template <Number (*F)(const Number&, const Number&)>
std::vector<Array> variadic(const Node& node) {
  Array y = node.in(0);
  for (Index k = 1; k < node.num_inputs(); ++k) {
    const Array &a = y, &b = node.in(k);
    Array next(a.type, broadcast_dims(a.dims, b.dims));
    for_each_index(next.dims, [&](const Dims& at, Index i) {
      next.at(i) =
          wrapped(a.type, F(a.at(broadcast_at(a.dims, at)), b.at(broadcast_at(b.dims, at))));
    });
    y = std::move(next);
  }
  if (node.type() == "Mean") {
    for (Number& e : y.entries) e = e / Number(node.num_inputs());
  }
  return {y};
}

std::vector<Array> where(const Node& node) {
  const Array &c = node.in(0), &a = node.in(1), &b = node.in(2);
  Array y(a.type, broadcast_dims(broadcast_dims(c.dims, a.dims), b.dims));
  for_each_index(y.dims, [&](const Dims& at, Index i) {
    y.at(i) = sign(c.at(broadcast_at(c.dims, at))) != 0 ? a.at(broadcast_at(a.dims, at))
                                                        : b.at(broadcast_at(b.dims, at));
  });
  return {y};
}

}  // namespace

void add_broadcasting(Table& table) {
  const Table rows = {
      {"Add", binary<plus>},
      {"Sub", binary<minus>},
      {"Mul", binary<times>},
      {"Div", divide},
      {"Pow", power},
      {"Mod", modulo},
      {"Equal", equal},
      {"Less", less},
      {"Greater", greater},
      {"LessOrEqual", less_or_equal},
      {"GreaterOrEqual", greater_or_equal},
      {"And", bits<mpz_and>},
      {"Or", bits<mpz_ior>},
      {"Xor", bits<mpz_xor>},
      {"BitwiseAnd", bits<mpz_and>},
      {"BitwiseOr", bits<mpz_ior>},
      {"BitwiseXor", bits<mpz_xor>},
      {"BitShift", bit_shift},
      {"PRelu", prelu},
      {"Max", variadic<max>},
      {"Min", variadic<min>},
      {"Sum", variadic<plus>},
      {"Mean", variadic<plus>},
      {"Where", where},
  };
  table.insert(rows.begin(), rows.end());
}

}  // namespace oracle
