// SPDX-License-Identifier: Apache-2.0
// Tensors of exact or enclosed numbers, and the element types of ONNX.
#pragma once

#include <vector>

#include "io/onnx/onnx_proto.h"
#include "tests/oracle/number.h"

namespace oracle {

using Dims = std::vector<Index>;
using Type = int;  // onnx::TensorProto::DataType

Index count(const Dims& dims);
bool is_floating(Type type);
// The value an integer takes in the type: two's complement wrap-around, bool: 0 or 1. Numbers of
// floating types stay what they are.
Number wrapped(Type type, const Number& value);
// The number that a Cast of a constant stores.
Number rounded(Type type, const Number& value);
int significant_bits(Type type);  // of floating types
std::string type_name(Type type);

struct Array {
  Type type = onnx::TensorProto::FLOAT;
  Dims dims;
  std::vector<Number> entries;
  bool moving = false;  // depends on an input of the graph
  bool real = false;    // integers of the file, taken as real numbers until they are cast

  Array() = default;
  Array(Type t, Dims d) : type(t), dims(std::move(d)), entries(to_size(count(dims))) {}
  Array(Type t, Dims d, std::vector<Number> e)
      : type(t), dims(std::move(d)), entries(std::move(e)) {}

  Index rank() const { return static_cast<Index>(dims.size()); }
  Index size() const { return static_cast<Index>(entries.size()); }
  Index dim(Index a) const { return dims.at(to_size(a)); }
  Number& at(Index i) { return entries.at(to_size(i)); }
  const Number& at(Index i) const { return entries.at(to_size(i)); }

  static std::size_t to_size(Index i) { return static_cast<std::size_t>(i); }
};

Array int64_array(Dims dims, const std::vector<Index>& entries);
std::vector<Index> integers(const Array& array);
Array read_tensor(const onnx::TensorProto& tensor);

// Row-major steps of a shape.
Dims strides(const Dims& dims);
// All index tuples of a shape, in row-major order.
template <class Body>
void for_each_index(const Dims& dims, Body&& body) {
  const Index n = count(dims);
  Dims at(dims.size(), 0);
  for (Index i = 0; i < n; ++i) {
    body(at, i);
    for (std::size_t a = dims.size(); a-- > 0;) {
      if (++at[a] < dims[a]) break;
      at[a] = 0;
    }
  }
}
Index dot(const Dims& a, const Dims& b);

}  // namespace oracle
