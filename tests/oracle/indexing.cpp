// SPDX-License-Identifier: Apache-2.0
// Operators that read or write entries at given indices.
#include <algorithm>

#include "tests/oracle/node.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;

Index place(const Number& index, Index length) {
  const Index i = Node::axis(index.integer(), length);
  if (i < 0 || i >= length) throw Undefined("an index out of range");
  return i;
}

std::vector<Array> gather(const Node& node) {
  const Array &x = node.in(0), &where = node.in(1);
  const Index axis = Node::axis(node.integer("axis", 0), x.rank());
  Dims dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), where.dims.begin(), where.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  Array y(x.type, dims);
  const Lines lines(x.dims, axis);
  Index next = 0;
  for (Index o = 0; o < lines.outer; ++o) {
    for (const Number& index : where.entries) {
      const Index k = place(index, lines.length);
      for (Index i = 0; i < lines.inner; ++i) y.at(next++) = x.at(lines.at(o, k, i));
    }
  }
  return {y};
}

std::vector<Array> gather_elements(const Node& node) {
  const Array &x = node.in(0), &where = node.in(1);
  const auto axis = Array::to_size(Node::axis(node.integer("axis", 0), x.rank()));
  Array y(x.type, where.dims);
  const Dims steps = strides(x.dims);
  for_each_index(where.dims, [&](Dims at, Index i) {
    at[axis] = place(where.at(i), x.dims[axis]);
    y.at(i) = x.at(dot(at, steps));
  });
  return {y};
}

std::vector<Array> gather_nd(const Node& node) {
  const Array &x = node.in(0), &where = node.in(1);
  const Index batch = node.integer("batch_dims", 0), depth = where.dims.back();
  const Dims steps = strides(x.dims);
  Dims outer(where.dims.begin(), where.dims.end() - 1);
  const Dims inner(x.dims.begin() + batch + depth, x.dims.end());
  Dims dims = outer;
  dims.insert(dims.end(), inner.begin(), inner.end());
  Array y(x.type, dims);
  Index next = 0;
  for_each_index(outer, [&](const Dims& at, Index i) {
    Index from = 0;
    for (Index a = 0; a < batch; ++a) from += at[Array::to_size(a)] * steps[Array::to_size(a)];
    for (Index k = 0; k < depth; ++k) {
      from += place(where.at(i * depth + k), x.dim(batch + k)) * steps[Array::to_size(batch + k)];
    }
    for (Index k = 0; k < count(inner); ++k) y.at(next++) = x.at(from + k);
  });
  return {y};
}

void combine(const Node& node, Type type, Number& to, const Number& update) {
  const std::string how = node.text("reduction", "none");
  if (how == "none") {
    to = update;
  } else if (how == "add") {
    to = wrapped(type, to + update);
  } else if (how == "mul") {
    to = wrapped(type, to * update);
  } else {
    to = how == "max" ? max(to, update) : min(to, update);
  }
}
std::vector<Array> scatter_elements(const Node& node) {
  Array y = node.in(0);
  const Array &where = node.in(1), &updates = node.in(2);
  const auto axis = Array::to_size(Node::axis(node.integer("axis", 0), y.rank()));
  const Dims steps = strides(y.dims);
  for_each_index(where.dims, [&](Dims at, Index i) {
    at[axis] = place(where.at(i), y.dims[axis]);
    combine(node, y.type, y.at(dot(at, steps)), updates.at(i));
  });
  return {y};
}
std::vector<Array> scatter_nd(const Node& node) {
  Array y = node.in(0);
  const Array &where = node.in(1), &updates = node.in(2);
  const Index depth = where.dims.back(), rows = depth == 0 ? 0 : where.size() / depth;
  const Dims steps = strides(y.dims);
  const Index inner = count(Dims(y.dims.begin() + depth, y.dims.end()));
  for (Index r = 0; r < rows; ++r) {
    Index to = 0;
    for (Index k = 0; k < depth; ++k) {
      to += place(where.at(r * depth + k), y.dim(k)) * steps[Array::to_size(k)];
    }
    for (Index k = 0; k < inner; ++k) {
      combine(node, y.type, y.at(to + k), updates.at(r * inner + k));
    }
  }
  return {y};
}

std::vector<Array> one_hot(const Node& node) {
  const Array &where = node.in(0), &values = node.in(2);
  const Index depth = truncate(node.in(1).at(0)).integer();
  const Index axis = Node::axis(node.integer("axis", -1), where.rank() + 1);
  Dims dims = where.dims;
  dims.insert(dims.begin() + axis, depth);
  Array y(values.type, dims);
  for (Number& e : y.entries) e = values.at(0);
  const Lines lines(dims, axis);
  for (Index i = 0; i < where.size(); ++i) {
    const Number& entry = where.at(i);
    const Index k =
        Node::axis((is_floating(where.type) ? truncate(entry) : entry).integer(), depth);
    if (k < 0 || k >= depth) continue;
    y.at(lines.at(i / lines.inner, k, i % lines.inner)) = values.at(1);
  }
  return {y};
}

std::vector<Array> non_zero(const Node& node) {
  const Array& x = node.in(0);
  std::vector<Dims> found;
  for_each_index(x.dims, [&](const Dims& at, Index i) {
    if (sign(x.at(i)) != 0) found.push_back(at);
  });
  const auto n = static_cast<Index>(found.size());
  Array y(T::INT64, {x.rank(), n});
  for (Index a = 0; a < x.rank(); ++a) {
    for (Index i = 0; i < n; ++i)
      y.at(a * n + i) = Number(found[Array::to_size(i)][Array::to_size(a)]);
  }
  return {y};
}

std::vector<Array> trilu(const Node& node) {
  Array y = node.in(0);
  const bool upper = node.integer("upper", 1) != 0;
  const Index k = node.has(1) ? node.in(1).at(0).integer() : 0;
  for_each_index(y.dims, [&](const Dims& at, Index i) {
    const Index above = at[at.size() - 1] - at[at.size() - 2] - k;
    if (upper ? above < 0 : above > 0) y.at(i) = Number(0);
  });
  return {y};
}

std::vector<Array> compress(const Node& node) {
  const Array& x = node.in(0);
  const bool flat = node.find("axis") == nullptr;
  const Index axis = flat ? 0 : Node::axis(node.integer("axis", 0), x.rank());
  const Dims from = flat ? Dims{x.size()} : x.dims;
  const Lines lines(from, axis);
  Dims kept;
  for (Index k = 0; k < node.in(1).size(); ++k) {
    if (sign(node.in(1).at(k)) != 0) kept.push_back(k);
  }
  Dims dims = from;
  dims[Array::to_size(axis)] = static_cast<Index>(kept.size());
  Array y(x.type, dims);
  Index next = 0;
  for (Index o = 0; o < lines.outer; ++o) {
    for (const Index k : kept) {
      for (Index i = 0; i < lines.inner; ++i) y.at(next++) = x.at(lines.at(o, k, i));
    }
  }
  return {y};
}

std::vector<Array> reverse_sequence(const Node& node) {
  const Array& x = node.in(0);
  const auto time = Array::to_size(node.integer("time_axis", 0));
  const auto batch = Array::to_size(node.integer("batch_axis", 1));
  const std::vector<Index> lengths = integers(node.in(1));
  Array y(x.type, x.dims);
  const Dims steps = strides(x.dims);
  for_each_index(x.dims, [&](Dims at, Index i) {
    const Index n = lengths.at(Array::to_size(at[batch]));
    if (at[time] < n) at[time] = n - 1 - at[time];
    y.at(i) = x.at(dot(at, steps));
  });
  return {y};
}

}  // namespace

void add_indexing(Table& table) {
  table["Gather"] = gather;
  table["GatherElements"] = gather_elements;
  table["GatherND"] = gather_nd;
  table["ScatterElements"] = scatter_elements;
  table["Scatter"] = scatter_elements;
  table["ScatterND"] = scatter_nd;
  table["OneHot"] = one_hot;
  table["NonZero"] = non_zero;
}
void add_selections(Table& table) {
  table["Trilu"] = trilu;
  table["Compress"] = compress;
  table["ReverseSequence"] = reverse_sequence;
}

}  // namespace oracle
