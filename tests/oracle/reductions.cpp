// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, and functions of lines along one axis.
#include <algorithm>
#include <functional>

#include "tests/oracle/functions.h"
#include "tests/oracle/node.h"

namespace oracle {
namespace {

using T = onnx::TensorProto;
using Entries = std::vector<Number>;
using Fold = Number (*)(const Entries&);

Number total(const Entries& e) {
  Number sum(0);
  for (const Number& x : e) sum = sum + x;
  return sum;
}
Number mean(const Entries& e) { return total(e) / Number(static_cast<Index>(e.size())); }
Number product(const Entries& e) {
  Number result(1);
  for (const Number& x : e) result = result * x;
  return result;
}
Number largest(const Entries& e) {
  Number best = Number::infinity(-1);
  for (const Number& x : e) best = max(best, x);
  return best;
}
Number smallest(const Entries& e) {
  Number best = Number::infinity(1);
  for (const Number& x : e) best = min(best, x);
  return best;
}
Number size_sum(const Entries& e) {
  Number sum(0);
  for (const Number& x : e) sum = sum + abs(x);
  return sum;
}
Number square_sum(const Entries& e) {
  Number sum(0);
  for (const Number& x : e) sum = sum + x * x;
  return sum;
}
Number length(const Entries& e) { return sqrt(square_sum(e)); }
Number log_sum(const Entries& e) { return log(total(e)); }

// An exact number near the largest entry, to keep exponentials in range.
Number shift_of(const Entries& e) {
  const Number top = largest(e);
  if (!top.is_finite()) return Number(0);
  return top.is_exact() ? top : floor(Number(top.middle()));
}
Number log_sum_exp(const Entries& e) {
  const Number shift = shift_of(e);
  Number sum(0);
  for (const Number& x : e) sum = sum + exp(x - shift);
  return shift + log(sum);
}

std::vector<bool> reduced_axes(const Node& node, Index input_since) {
  const Index rank = node.in(0).rank();
  const auto given = node.opset() >= input_since ? node.input_integers(1) : node.integers("axes");
  const bool none = !given || given->empty();
  const bool keep_all =
      none && node.opset() >= input_since && node.integer("noop_with_empty_axes", 0) != 0;
  std::vector<bool> reduced(Array::to_size(rank), none && !keep_all);
  if (given) {
    for (const Index a : *given) reduced[Array::to_size(Node::axis(a, rank))] = true;
  }
  return reduced;
}

template <Fold F, int kInputSince>
std::vector<Array> reduce(const Node& node) {
  const Array& x = node.in(0);
  const std::vector<bool> reduced = reduced_axes(node, kInputSince);
  const bool keep = node.integer("keepdims", 1) != 0;
  Dims kept, dims;
  for (std::size_t a = 0; a < x.dims.size(); ++a) {
    kept.push_back(reduced[a] ? 1 : x.dims[a]);
    if (keep || !reduced[a]) dims.push_back(kept.back());
  }
  std::vector<Entries> groups(Array::to_size(count(kept)));
  for_each_index(x.dims, [&](const Dims& at, Index i) {
    groups[Array::to_size(broadcast_at(kept, at))].push_back(x.at(i));
  });
  Array y(x.type, dims);
  for (Index i = 0; i < y.size(); ++i) {
    const Number value = F(groups[Array::to_size(i)]);
    y.at(i) = is_floating(x.type) ? value : wrapped(x.type, truncate(value));
  }
  return {y};
}

// The index of the largest entry (or the smallest), the first or the last of equals.
Index best_place(const Entries& e, bool least, bool last) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < e.size(); ++i) {
    const int c = least ? compare(e[best], e[i]) : compare(e[i], e[best]);
    if (c > 0 || (c == 0 && last)) best = i;
  }
  return static_cast<Index>(best);
}

Entries line(const Array& x, const Lines& lines, Index o, Index i) {
  Entries e;
  for (Index k = 0; k < lines.length; ++k) e.push_back(x.at(lines.at(o, k, i)));
  return e;
}

template <bool kLeast>
std::vector<Array> arg_best(const Node& node) {
  const Array& x = node.in(0);
  const Index axis = Node::axis(node.integer("axis", 0), x.rank());
  const bool last = node.integer("select_last_index", 0) != 0;
  Dims dims = x.dims;
  if (node.integer("keepdims", 1) != 0) {
    dims[Array::to_size(axis)] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  Array y(T::INT64, dims);
  const Lines lines(x.dims, axis);
  for (Index o = 0; o < lines.outer; ++o) {
    for (Index i = 0; i < lines.inner; ++i) {
      y.at(o * lines.inner + i) = Number(best_place(line(x, lines, o, i), kLeast, last));
    }
  }
  return {y};
}

// f turns a line into a line of the same length.
template <class F>
Array each_line(const Array& x, const Lines& lines, F&& f) {
  Array y(x.type, x.dims);
  for (Index o = 0; o < lines.outer; ++o) {
    for (Index i = 0; i < lines.inner; ++i) {
      const Entries e = f(line(x, lines, o, i));
      for (Index k = 0; k < lines.length; ++k) {
        y.at(lines.at(o, k, i)) = wrapped(x.type, e[Array::to_size(k)]);
      }
    }
  }
  return y;
}

Entries softmax(const Entries& e) {
  const Number shift = shift_of(e);
  Entries p;
  for (const Number& x : e) p.push_back(exp(x - shift));
  const Number sum = total(p);
  for (Number& x : p) x = x / sum;
  return p;
}
Entries log_softmax(const Entries& e) {
  const Number lse = log_sum_exp(e);
  Entries p;
  for (const Number& x : e) p.push_back(x - lse);
  return p;
}
Entries hardmax(const Entries& e) {
  Entries p(e.size(), Number(0));
  if (!e.empty()) p[Array::to_size(best_place(e, false, false))] = Number(1);
  return p;
}

// Before opset 13 everything from the axis on was one line.
Lines softmax_lines(const Node& node) {
  const Array& x = node.in(0);
  const bool flattens = node.opset() < 13;
  const Index axis = Node::axis(node.integer("axis", flattens ? 1 : -1), x.rank());
  if (!flattens) return x.rank() == 0 ? Lines(1, 1, 1) : Lines(x.dims, axis);
  Index outer = 1;
  for (Index a = 0; a < std::min(axis, x.rank()); ++a) outer *= x.dim(a);
  return {outer, outer == 0 ? 0 : x.size() / outer, 1};
}
template <Entries (*F)(const Entries&)>
std::vector<Array> along_line(const Node& node) {
  return {each_line(node.in(0), softmax_lines(node), F)};
}

std::vector<Array> lp_normalization(const Node& node) {
  const bool first = node.integer("p", 2) == 1;
  const Lines lines(node.in(0).dims, Node::axis(node.integer("axis", -1), node.in(0).rank()));
  return {each_line(node.in(0), lines, [&](Entries e) {
    const Number norm = first ? size_sum(e) : length(e);
    for (Number& x : e) x = x / norm;
    return e;
  })};
}

std::vector<Array> cum_sum(const Node& node) {
  const Array& x = node.in(0);
  const Lines lines(x.dims, Node::axis(node.in(1).at(0).integer(), x.rank()));
  const bool exclusive = node.integer("exclusive", 0) != 0;
  const bool reverse = node.integer("reverse", 0) != 0;
  return {each_line(x, lines, [&](Entries e) {
    if (reverse) std::reverse(e.begin(), e.end());
    Number sum(0);
    for (Number& entry : e) {
      const Number before = sum;
      sum = sum + entry;
      entry = exclusive ? before : sum;
    }
    if (reverse) std::reverse(e.begin(), e.end());
    return e;
  })};
}

std::vector<Array> top_k(const Node& node) {
  const Array& x = node.in(0);
  const Index axis = Node::axis(node.integer("axis", -1), x.rank());
  const Index k = node.opset() < 10 ? node.integer("k", 0) : node.in(1).at(0).integer();
  const bool least = node.integer("largest", 1) == 0;
  Dims dims = x.dims;
  dims[Array::to_size(axis)] = k;
  Array values(x.type, dims), places(T::INT64, dims);
  const Lines lines(x.dims, axis), to(dims, axis);
  for (Index o = 0; o < lines.outer; ++o) {
    for (Index i = 0; i < lines.inner; ++i) {
      const Entries e = line(x, lines, o, i);
      std::vector<Index> order(e.size());
      for (std::size_t j = 0; j < e.size(); ++j) order[j] = static_cast<Index>(j);
      std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
        const int c = compare(e[Array::to_size(a)], e[Array::to_size(b)]);
        return least ? c < 0 : c > 0;
      });
      for (Index j = 0; j < k; ++j) {
        values.at(to.at(o, j, i)) = e[Array::to_size(order[Array::to_size(j)])];
        places.at(to.at(o, j, i)) = Number(order[Array::to_size(j)]);
      }
    }
  }
  return {values, places};
}

}  // namespace

void add_reductions(Table& table) {
  constexpr int kLate = 18;
  table["ReduceSum"] = reduce<total, 13>;
  table["ReduceMean"] = reduce<mean, kLate>;
  table["ReduceProd"] = reduce<product, kLate>;
  table["ReduceMax"] = reduce<largest, kLate>;
  table["ReduceMin"] = reduce<smallest, kLate>;
  table["ReduceL1"] = reduce<size_sum, kLate>;
  table["ReduceL2"] = reduce<length, kLate>;
  table["ReduceSumSquare"] = reduce<square_sum, kLate>;
  table["ReduceLogSum"] = reduce<log_sum, kLate>;
  table["ReduceLogSumExp"] = reduce<log_sum_exp, kLate>;
  table["ArgMax"] = arg_best<false>;
  table["ArgMin"] = arg_best<true>;
}
void add_rows(Table& table) {
  table["Softmax"] = along_line<softmax>;
  table["LogSoftmax"] = along_line<log_softmax>;
  table["Hardmax"] = along_line<hardmax>;
  table["LpNormalization"] = lp_normalization;
  table["CumSum"] = cum_sum;
  table["TopK"] = top_k;
}

}  // namespace oracle
