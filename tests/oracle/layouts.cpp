// SPDX-License-Identifier: Apache-2.0
// Operators that only move entries: reshapes, slices, pads.
#include <algorithm>
#include <numeric>

#include "tests/oracle/node.h"

namespace oracle {
namespace {

Array reshaped(const Array& x, Dims dims) {
  if (count(dims) != x.size()) throw Undefined("reshape to another number of entries");
  return {x.type, std::move(dims), x.entries};
}

std::vector<Array> reshape(const Node& node) {
  const Array& x = node.in(0);
  const auto given = node.opset() < 5 ? node.integers("shape") : node.input_integers(1);
  const bool zero_is_zero = node.integer("allowzero", 0) != 0;
  Dims dims = given.value();
  Index known = 1, open = -1;
  for (std::size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] == 0 && !zero_is_zero) dims[a] = x.dims.at(a);
    if (dims[a] == -1) {
      open = static_cast<Index>(a);
    } else {
      known *= dims[a];
    }
  }
  if (open >= 0) dims[Array::to_size(open)] = known == 0 ? 0 : x.size() / known;
  return {reshaped(x, dims)};
}
std::vector<Array> flatten(const Node& node) {
  const Array& x = node.in(0);
  const Index axis = Node::axis(node.integer("axis", 1), x.rank());
  Index rows = 1, cols = 1;
  for (Index a = 0; a < x.rank(); ++a) (a < axis ? rows : cols) *= x.dim(a);
  return {reshaped(x, {rows, cols})};
}
std::vector<Array> squeeze(const Node& node) {
  const Array& x = node.in(0);
  const auto axes = node.opset() < 13 ? node.integers("axes") : node.input_integers(1);
  Dims dims;
  for (Index a = 0; a < x.rank(); ++a) {
    const bool named = axes && std::any_of(axes->begin(), axes->end(),
                                           [&](Index b) { return Node::axis(b, x.rank()) == a; });
    if (!(axes ? named : x.dim(a) == 1)) dims.push_back(x.dim(a));
  }
  return {reshaped(x, dims)};
}
std::vector<Array> unsqueeze(const Node& node) {
  const Array& x = node.in(0);
  const auto axes = (node.opset() < 13 ? node.integers("axes") : node.input_integers(1)).value();
  const Index rank = x.rank() + static_cast<Index>(axes.size());
  Dims dims(Array::to_size(rank), 0);
  for (const Index a : axes) dims.at(Array::to_size(Node::axis(a, rank))) = 1;
  std::size_t next = 0;
  for (Index& d : dims) {
    if (d == 0) d = x.dims.at(next++);
  }
  return {reshaped(x, dims)};
}

// Entry i of the result is entry from(index) of x; from gives a place along each axis of x.
template <class From>
Array picked(const Array& x, Dims dims, From&& from) {
  Array y(x.type, std::move(dims));
  const Dims steps = strides(x.dims);
  for_each_index(y.dims, [&](const Dims& at, Index i) { y.at(i) = x.at(dot(from(at), steps)); });
  return y;
}

std::vector<Array> transpose(const Node& node) {
  const Array& x = node.in(0);
  Dims perm(x.dims.size());
  std::iota(perm.rbegin(), perm.rend(), 0);
  perm = node.integers("perm").value_or(perm);
  Dims dims;
  for (const Index a : perm) dims.push_back(x.dim(a));
  return {picked(x, dims, [&](const Dims& at) {
    Dims from(at.size());
    for (std::size_t a = 0; a < at.size(); ++a) from[Array::to_size(perm[a])] = at[a];
    return from;
  })};
}

std::vector<Array> slice(const Node& node) {
  const Array& x = node.in(0);
  const bool old = node.opset() < 10;
  const Dims starts = (old ? node.integers("starts") : node.input_integers(1)).value();
  const Dims ends = (old ? node.integers("ends") : node.input_integers(2)).value();
  Dims axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = (old ? node.integers("axes") : node.input_integers(3)).value_or(axes);
  const Dims steps = (old ? std::nullopt : node.input_integers(4)).value_or(Dims(starts.size(), 1));
  Dims first(x.dims.size(), 0), step(x.dims.size(), 1), dims = x.dims;
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const auto a = Array::to_size(Node::axis(axes[k], x.rank()));
    const Index n = x.dims[a], s = steps[k];
    const auto place = [n](Index v) { return v < 0 ? v + n : v; };
    const Index least = s > 0 ? 0 : -1, most = s > 0 ? n : n - 1;
    // Python's slices: a negative end below the first entry stays below it.
    const Index begin = std::clamp(std::max(place(starts[k]), Index{s > 0 ? 0 : -1}), least, most);
    const Index end = std::clamp(std::max(place(ends[k]), Index{-1}), least, most);
    first[a] = begin;
    step[a] = s;
    dims[a] = std::max<Index>(0, s > 0 ? (end - begin + s - 1) / s : (begin - end - s - 1) / -s);
  }
  return {picked(x, dims, [&](Dims at) {
    for (std::size_t a = 0; a < at.size(); ++a) at[a] = first[a] + at[a] * step[a];
    return at;
  })};
}

std::vector<Array> expand(const Node& node) {
  const Array& x = node.in(0);
  Array y(x.type, broadcast_dims(x.dims, integers(node.in(1))));
  for_each_index(y.dims,
                 [&](const Dims& at, Index i) { y.at(i) = x.at(broadcast_at(x.dims, at)); });
  return {y};
}
std::vector<Array> tile(const Node& node) {
  const Array& x = node.in(0);
  Dims repeats = integers(node.in(1));
  if (node.opset() < 6) {
    const Index tiles = repeats.at(0);
    repeats = Dims(x.dims.size(), 1);
    repeats.at(Array::to_size(node.in(2).at(0).integer())) = tiles;
  }
  Dims dims = x.dims;
  for (std::size_t a = 0; a < dims.size(); ++a) dims[a] *= repeats.at(a);
  return {picked(x, dims, [&](Dims at) {
    for (std::size_t a = 0; a < at.size(); ++a) at[a] %= x.dims[a];
    return at;
  })};
}

std::vector<Array> depth_to_space(const Node& node) {
  const Array& x = node.in(0);
  const Index s = node.integer("blocksize", 1), c = x.dim(1) / (s * s);
  const bool columns = node.text("mode", "DCR") == "CRD";
  return {picked(x, {x.dim(0), c, x.dim(2) * s, x.dim(3) * s}, [&](const Dims& at) {
    const Index block = at[2] % s * s + at[3] % s;
    return Dims{at[0], columns ? at[1] * s * s + block : block * c + at[1], at[2] / s, at[3] / s};
  })};
}
std::vector<Array> space_to_depth(const Node& node) {
  const Array& x = node.in(0);
  const Index s = node.integer("blocksize", 1), c = x.dim(1);
  return {picked(x, {x.dim(0), c * s * s, x.dim(2) / s, x.dim(3) / s}, [&](const Dims& at) {
    const Index block = at[1] / c;
    return Dims{at[0], at[1] % c, at[2] * s + block / s, at[3] * s + block % s};
  })};
}

std::vector<Array> concat(const Node& node) {
  const Array& first = node.in(0);
  const auto axis = Array::to_size(Node::axis(node.integer("axis", 1), first.rank()));
  Dims dims = first.dims;
  dims.at(axis) = 0;
  for (Index k = 0; k < node.num_inputs(); ++k) dims[axis] += node.in(k).dims.at(axis);
  Array y(first.type, dims);
  const Dims steps = strides(dims);
  Index offset = 0;
  for (Index k = 0; k < node.num_inputs(); ++k) {
    const Array& x = node.in(k);
    for_each_index(x.dims, [&](Dims at, Index i) {
      at[axis] += offset;
      y.at(dot(at, steps)) = x.at(i);
    });
    offset += x.dims[axis];
  }
  return {y};
}
std::vector<Array> split(const Node& node) {
  const Array& x = node.in(0);
  const auto axis = Array::to_size(Node::axis(node.integer("axis", 0), x.rank()));
  auto lengths = node.integers("split");
  if (!lengths) lengths = node.input_integers(1);
  if (!lengths) {
    const Index parts = node.num_outputs(), each = (x.dims[axis] + parts - 1) / parts;
    lengths = Dims(Array::to_size(parts), each);
    lengths->back() = x.dims[axis] - each * (parts - 1);
  }
  std::vector<Array> out;
  Index offset = 0;
  for (const Index n : *lengths) {
    Dims dims = x.dims;
    dims[axis] = n;
    out.push_back(picked(x, dims, [&](Dims at) {
      at[axis] += offset;
      return at;
    }));
    offset += n;
  }
  return out;
}

// Where a padded place lies on an axis of length n; -1: in the constant padding.
Index pad_source(const std::string& mode, Index at, Index n) {
  if (at >= 0 && at < n) return at;
  if (mode == "edge") return at < 0 ? 0 : n - 1;
  if (mode == "wrap") return ((at % n) + n) % n;
  if (mode == "reflect") {
    if (n == 1) return 0;
    const Index period = 2 * (n - 1), rest = ((at % period) + period) % period;
    return rest < n ? rest : period - rest;
  }
  return -1;
}
std::vector<Array> pad(const Node& node) {
  const Array& x = node.in(0);
  const bool old = node.opset() < 11;
  const std::string mode = node.text("mode", "constant");
  const Dims pads =
      old ? node.integers(node.opset() < 2 ? "paddings" : "pads").value() : integers(node.in(1));
  Number fill(0);
  if (old) fill = node.real("value", 0);
  if (!old && node.has(2) && node.in(2).size() > 0) fill = node.in(2).at(0);
  Dims axes(x.dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (!old) axes = node.input_integers(3).value_or(axes);
  Dims before(x.dims.size(), 0), dims = x.dims;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const auto a = Array::to_size(Node::axis(axes[k], x.rank()));
    before[a] = pads.at(k);
    dims[a] += pads[k] + pads.at(k + axes.size());
  }
  Array y(x.type, dims);
  const Dims steps = strides(x.dims);
  for_each_index(dims, [&](Dims at, Index i) {
    bool outside = false;
    for (std::size_t a = 0; a < at.size(); ++a) {
      at[a] = pad_source(mode, at[a] - before[a], x.dims[a]);
      outside = outside || at[a] < 0;
    }
    y.at(i) = outside ? fill : x.at(dot(at, steps));
  });
  return {y};
}

}  // namespace

void add_layouts(Table& table) {
  table["Reshape"] = reshape;
  table["Flatten"] = flatten;
  table["Squeeze"] = squeeze;
  table["Unsqueeze"] = unsqueeze;
  table["Transpose"] = transpose;
  table["Slice"] = slice;
  table["Expand"] = expand;
  table["Tile"] = tile;
  table["DepthToSpace"] = depth_to_space;
  table["SpaceToDepth"] = space_to_depth;
  table["Concat"] = concat;
  table["Split"] = split;
  table["Pad"] = pad;
}

}  // namespace oracle
