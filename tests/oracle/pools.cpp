// SPDX-License-Identifier: Apache-2.0
// Pools.
#include <algorithm>

#include "tests/oracle/functions.h"
#include "tests/oracle/node.h"

namespace oracle {
namespace {

using Entries = std::vector<Number>;

// fold(entries of a window, its size) for each window of each plane.
template <class Fold>
Array pooled(const Node& node, const Windows& windows, Fold&& fold) {
  const Array& x = node.in(0);
  Dims dims{x.dim(0), x.dim(1)};
  dims.insert(dims.end(), windows.out.begin(), windows.out.end());
  Array y(x.type, dims);
  const Dims steps = strides(windows.in);
  const Index plane = count(windows.in), size = count(windows.out);
  for (Index p = 0; p < x.dim(0) * x.dim(1); ++p) {
    for_each_index(windows.out, [&](const Dims& at, Index i) {
      std::vector<Index> places;
      windows.for_each_place(
          at, [&](const Dims& from, Index) { places.push_back(p * plane + dot(from, steps)); });
      y.at(p * size + i) = fold(p * size + i, places, at);
    });
  }
  return y;
}

Windows pool_windows(const Node& node) {
  return {node, node.in(0).dims, node.integers("kernel_shape").value(),
          node.integer("ceil_mode", 0) != 0};
}

std::vector<Array> max_pool(const Node& node) {
  const Array& x = node.in(0);
  const Windows windows = pool_windows(node);
  Array places(onnx::TensorProto::INT64, {});
  const bool wanted = node.wants_output(1);
  std::vector<Number> found;
  Array y = pooled(node, windows, [&](Index, const std::vector<Index>& from, const Dims&) {
    if (from.empty()) throw Undefined("a window in the padding");
    Number best = x.at(from[0]);
    Index at = from[0];
    for (const Index i : from) {
      if (wanted && compare(x.at(i), x.at(at)) > 0) at = i;
      best = max(best, x.at(i));
    }
    found.emplace_back(at);
    return best;
  });
  if (!wanted) return {y};
  places.dims = y.dims;
  places.entries = found;
  if (node.integer("storage_order", 0) != 0) {
    const Dims steps = strides(windows.in);
    const Index plane = count(windows.in);
    for (Number& e : places.entries) {
      const Index i = e.integer();
      Index rest = i % plane, column = 0, step = 1;
      for (std::size_t a = 0; a < steps.size(); ++a) {
        column += rest / steps[a] * step;
        rest %= steps[a];
        step *= windows.in[a];
      }
      e = Number(i / plane * plane + column);
    }
  }
  return {y, places};
}

std::vector<Array> average_pool(const Node& node) {
  const Array& x = node.in(0);
  const Windows windows = pool_windows(node);
  const bool include = node.integer("count_include_pad", 0) != 0;
  return {pooled(node, windows, [&](Index, const std::vector<Index>& from, const Dims& at) {
    Number sum(0);
    for (const Index i : from) sum = sum + x.at(i);
    auto n = static_cast<Index>(from.size());
    if (include) {
      // Padding counts, what ceil_mode lets reach beyond it does not.
      n = 1;
      for (std::size_t a = 0; a < at.size(); ++a) {
        Index inside = 0;
        for (Index k = 0; k < windows.kernel[a]; ++k) {
          const Index place = at[a] * windows.strides[a] + k * windows.dilations[a];
          inside += place < windows.begin[a] + windows.in[a] + windows.end[a] ? 1 : 0;
        }
        n *= inside;
      }
    }
    if (n == 0) throw Undefined("a window in the padding");
    return sum / Number(n);
  })};
}

Number lp_norm(const Node& node, const std::vector<Index>& from) {
  const auto* a = node.find("p");
  const Number p = a == nullptr ? Number(2)
                   : a->has_i() ? Number(static_cast<Index>(a->i()))
                                : Number(static_cast<double>(a->f()));
  Number sum(0);
  for (const Index i : from) sum = sum + pow(abs(node.in(0).at(i)), p);
  return pow(sum, Number(1) / p);
}
std::vector<Array> lp_pool(const Node& node) {
  return {pooled(node, pool_windows(node), [&](Index, const std::vector<Index>& from, const Dims&) {
    return lp_norm(node, from);
  })};
}

template <class Fold>
Array whole_planes(const Node& node, Fold&& fold) {
  const Array& x = node.in(0);
  Dims dims(x.dims.size(), 1);
  dims[0] = x.dim(0);
  dims[1] = x.dim(1);
  Array y(x.type, dims);
  const Index plane = y.size() == 0 ? 0 : x.size() / y.size();
  for (Index p = 0; p < y.size(); ++p) {
    std::vector<Index> from;
    for (Index i = 0; i < plane; ++i) from.push_back(p * plane + i);
    y.at(p) = fold(from);
  }
  return y;
}
std::vector<Array> global_average_pool(const Node& node) {
  return {whole_planes(node, [&](const std::vector<Index>& from) {
    Number sum(0);
    for (const Index i : from) sum = sum + node.in(0).at(i);
    return sum / Number(static_cast<Index>(from.size()));
  })};
}
std::vector<Array> global_max_pool(const Node& node) {
  return {whole_planes(node, [&](const std::vector<Index>& from) {
    Number best = node.in(0).at(from.at(0));
    for (const Index i : from) best = max(best, node.in(0).at(i));
    return best;
  })};
}
std::vector<Array> global_lp_pool(const Node& node) {
  return {whole_planes(node, [&](const std::vector<Index>& from) { return lp_norm(node, from); })};
}

}  // namespace

void add_pools(Table& table) {
  table["MaxPool"] = max_pool;
  table["AveragePool"] = average_pool;
  table["LpPool"] = lp_pool;
  table["GlobalMaxPool"] = global_max_pool;
  table["GlobalAveragePool"] = global_average_pool;
  table["GlobalLpPool"] = global_lp_pool;
}

}  // namespace oracle
