// SPDX-License-Identifier: Apache-2.0
// One node of a file as the oracle's operators see it, and the table of operators.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/oracle/array.h"

namespace oracle {

class Node {
 public:
  Node(const onnx::NodeProto& proto, int opset, std::vector<const Array*> inputs)
      : proto_(proto), opset_(opset), inputs_(std::move(inputs)) {}

  const std::string& type() const { return proto_.op_type(); }
  int opset() const { return opset_; }
  Index num_inputs() const { return static_cast<Index>(inputs_.size()); }
  Index num_outputs() const { return proto_.output_size(); }
  bool wants_output(int k) const { return k < proto_.output_size() && !proto_.output(k).empty(); }
  bool has(Index k) const { return k < num_inputs() && inputs_[Array::to_size(k)] != nullptr; }
  const Array& in(Index k) const;
  bool any_moving() const;
  bool any_real() const;

  const onnx::AttributeProto* find(const std::string& name) const;
  Index integer(const std::string& name, Index fallback) const;
  // The schemas keep defaults as float32, and so does this argument.
  Number real(const std::string& name, float fallback) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::optional<std::vector<Index>> integers(const std::string& name) const;
  std::optional<std::vector<Number>> reals(const std::string& name) const;
  // An input, or the attribute that older opsets had in its place.
  std::optional<std::vector<Index>> input_integers(Index k) const;
  // In [0, rank).
  static Index axis(Index given, Index rank) { return given < 0 ? given + rank : given; }

 private:
  const onnx::NodeProto& proto_;
  int opset_;
  std::vector<const Array*> inputs_;
};

using Operator = std::vector<Array> (*)(const Node&);
using Table = std::map<std::string, Operator>;

void add_elementwise(Table& table);
void add_broadcasting(Table& table);
void add_casts(Table& table);
void add_reductions(Table& table);
void add_rows(Table& table);
void add_layouts(Table& table);
void add_indexing(Table& table);
void add_selections(Table& table);
void add_constants(Table& table);
void add_contractions(Table& table);
void add_convolutions(Table& table);
void add_pools(Table& table);
void add_normalisations(Table& table);
void add_losses(Table& table);
void add_quantisation(Table& table);
void add_resizing(Table& table);
const Table& operators();

// Shared by several of them.
Dims broadcast_dims(const Dims& a, const Dims& b);
// The entry of `from` that stands at `index` of the larger shape.
Index broadcast_at(const Dims& from, const Dims& index);

// A line of an array along one axis.
struct Lines {
  Index outer, length, inner;
  Lines(const Dims& dims, Index axis);
  Lines(Index o, Index l, Index i) : outer(o), length(l), inner(i) {}
  Index at(Index o, Index k, Index i) const { return (o * length + k) * inner + i; }
};

// Windows of pools and convolutions over the axes behind the first two.
struct Windows {
  Dims kernel, strides, dilations, begin, end, in, out;
  Windows(const Node& node, const Dims& image, Dims kernel_dims, bool ceil_mode);
  // body(index in the input, place in the kernel): every place of window `at` that lies on the
  // input.
  template <class Body>
  void for_each_place(const Dims& at, Body&& body) const {
    for_each_index(kernel, [&](const Dims& k, Index place) {
      Dims from(in.size());
      for (std::size_t a = 0; a < in.size(); ++a) {
        from[a] = at[a] * strides[a] - begin[a] + k[a] * dilations[a];
        if (from[a] < 0 || from[a] >= in[a]) return;
      }
      body(from, place);
    });
  }
};

}  // namespace oracle
