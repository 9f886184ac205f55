// SPDX-License-Identifier: Apache-2.0
// Sums of products: MatMul, Gemm, Einsum, Conv, ConvTranspose.
#include <algorithm>
#include <map>

#include "tests/oracle/node.h"

namespace oracle {
namespace {

std::vector<Array> matmul(const Node& node) {
  Array a = node.in(0), b = node.in(1);
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a.dims.insert(a.dims.begin(), 1);
  if (column) b.dims.push_back(1);
  const Index n = a.dim(a.rank() - 2), m = a.dim(a.rank() - 1), p = b.dim(b.rank() - 1);
  if (b.dim(b.rank() - 2) != m) throw Undefined("factors that do not fit");
  const Dims outer_a(a.dims.begin(), a.dims.end() - 2), outer_b(b.dims.begin(), b.dims.end() - 2);
  const Dims outer = broadcast_dims(outer_a, outer_b);
  Dims dims = outer;
  if (!row) dims.push_back(n);
  if (!column) dims.push_back(p);
  Array y(a.type, dims);
  for_each_index(outer, [&](const Dims& at, Index o) {
    const Index from_a = broadcast_at(outer_a, at) * n * m;
    const Index from_b = broadcast_at(outer_b, at) * m * p;
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < p; ++j) {
        Number sum(0);
        for (Index k = 0; k < m; ++k) {
          sum = sum + a.at(from_a + i * m + k) * b.at(from_b + k * p + j);
        }
        y.at((o * n + i) * p + j) = wrapped(y.type, sum);
      }
    }
  });
  return {y};
}

std::vector<Array> gemm(const Node& node) {
  const Array &a = node.in(0), &b = node.in(1);
  const bool flip_a = node.integer("transA", 0) != 0, flip_b = node.integer("transB", 0) != 0;
  const Number alpha = node.real("alpha", 1.0F), beta = node.real("beta", 1.0F);
  const Index n = a.dim(flip_a ? 1 : 0), m = a.dim(flip_a ? 0 : 1), p = b.dim(flip_b ? 0 : 1);
  Array y(a.type, {n, p});
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < p; ++j) {
      Number sum(0);
      for (Index k = 0; k < m; ++k) {
        sum = sum + a.at(flip_a ? k * n + i : i * m + k) * b.at(flip_b ? j * m + k : k * p + j);
      }
      sum = alpha * sum;
      if (node.has(2)) sum = sum + beta * node.in(2).at(broadcast_at(node.in(2).dims, {i, j}));
      y.at(i * p + j) = wrapped(y.type, sum);
    }
  }
  return {y};
}

// Axes of one term: letters, and the axes of the ellipsis under names of their own.
std::vector<int> term_axes(const std::string& term, Index rank, Index& ellipsis) {
  std::vector<int> axes;
  const auto letters =
      static_cast<Index>(std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; }));
  constexpr int kEllipsis = 1000;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] != '.') {
      axes.push_back(term[i]);
      continue;
    }
    i += 2;
    const Index n = rank >= 0 ? rank - letters : ellipsis;
    ellipsis = std::max(ellipsis, n);
    for (Index k = 0; k < n; ++k) axes.push_back(kEllipsis - static_cast<int>(n - k));
  }
  return axes;
}

std::vector<Array> einsum(const Node& node) {
  std::string equation = node.text("equation", "");
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (const char c : left) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  Index ellipsis = 0;
  std::vector<std::vector<int>> axes;
  std::map<int, Index> sizes;
  std::map<int, int> uses;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Array& x = node.in(static_cast<Index>(t));
    axes.push_back(term_axes(terms[t], x.rank(), ellipsis));
    for (std::size_t a = 0; a < axes[t].size(); ++a) {
      Index& size = sizes.try_emplace(axes[t][a], 1).first->second;
      if (x.dims[a] != 1) size = x.dims[a];
      ++uses[axes[t][a]];
    }
  }
  std::vector<int> out;
  if (arrow != std::string::npos) {
    out = term_axes(equation.substr(arrow + 2), -1, ellipsis);
  } else {
    constexpr int kLetters = 256;
    for (const auto& [name, size] : sizes) {
      if (name > kLetters) out.push_back(name);
    }
    for (const auto& [name, n] : uses) {
      if (name < kLetters && n == 1) out.push_back(name);
    }
  }
  std::vector<int> order = out;
  for (const auto& [name, size] : sizes) {
    if (std::find(out.begin(), out.end(), name) == out.end()) order.push_back(name);
  }
  Dims all, dims;
  for (std::size_t i = 0; i < order.size(); ++i) {
    all.push_back(sizes.at(order[i]));
    if (i < out.size()) dims.push_back(all.back());
  }
  Array y(node.in(0).type, dims);
  const Dims steps = strides(dims);
  for_each_index(all, [&](const Dims& at, Index) {
    Number product(1);
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const Array& x = node.in(static_cast<Index>(t));
      Dims index;
      for (const int name : axes[t]) {
        index.push_back(at[static_cast<std::size_t>(std::find(order.begin(), order.end(), name) -
                                                    order.begin())]);
      }
      product = product * x.at(broadcast_at(x.dims, index));
    }
    const Dims head(at.begin(), at.begin() + static_cast<Index>(out.size()));
    Number& to = y.at(dot(head, steps));
    to = wrapped(y.type, to + product);
  });
  return {y};
}

std::vector<Array> conv(const Node& node) {
  const Array &x = node.in(0), &w = node.in(1);
  const Windows windows(node, x.dims, Dims(w.dims.begin() + 2, w.dims.end()), false);
  const Index group = node.integer("group", 1), channels = w.dim(1), out = w.dim(0);
  if (channels * group != x.dim(1)) throw Undefined("channels");
  Dims dims{x.dim(0), out};
  dims.insert(dims.end(), windows.out.begin(), windows.out.end());
  Array y(x.type, dims);
  const Dims steps = strides(windows.in);
  const Index plane = count(windows.in), places = count(windows.kernel), size = count(windows.out);
  for (Index n = 0; n < x.dim(0); ++n) {
    for (Index o = 0; o < out; ++o) {
      const Index first = o / (out / group) * channels;
      for_each_index(windows.out, [&](const Dims& at, Index i) {
        Number sum = node.has(2) ? node.in(2).at(o) : Number(0);
        windows.for_each_place(at, [&](const Dims& from, Index place) {
          for (Index c = 0; c < channels; ++c) {
            sum = sum + x.at((n * x.dim(1) + first + c) * plane + dot(from, steps)) *
                            w.at((o * channels + c) * places + place);
          }
        });
        y.at((n * out + o) * size + i) = sum;
      });
    }
  }
  return {y};
}

// Lengths of the output and of what is cut off before it.
void transposed_lengths(const Node& node, const Dims& in, const Dims& kernel, Dims& out,
                        Dims& begin) {
  const std::size_t n = in.size();
  const Dims step = node.integers("strides").value_or(Dims(n, 1));
  const Dims dilation = node.integers("dilations").value_or(Dims(n, 1));
  const Dims extra = node.integers("output_padding").value_or(Dims(n, 0));
  const Dims pads = node.integers("pads").value_or(Dims(2 * n, 0));
  auto shape = node.integers("output_shape");
  if (shape && shape->size() > n)
    shape->erase(shape->begin(), shape->end() - static_cast<Index>(n));
  const std::string mode = node.text("auto_pad", "NOTSET");
  const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  for (std::size_t a = 0; a < n; ++a) {
    const Index full = step[a] * (in[a] - 1) + extra[a] + (kernel[a] - 1) * dilation[a] + 1;
    if (!shape && !same) {
      const bool valid = mode == "VALID";
      begin.push_back(valid ? 0 : pads[a]);
      out.push_back(full - (valid ? 0 : pads[a] + pads[a + n]));
      continue;
    }
    out.push_back(shape ? (*shape)[a] : in[a] * step[a]);
    const Index total = std::max<Index>(0, full - out[a]);
    begin.push_back(mode == "SAME_UPPER" ? total / 2 : total - total / 2);
  }
}

std::vector<Array> conv_transpose(const Node& node) {
  const Array &x = node.in(0), &w = node.in(1);
  const Dims kernel(w.dims.begin() + 2, w.dims.end()), in(x.dims.begin() + 2, x.dims.end());
  const std::size_t n = in.size();
  const Dims step = node.integers("strides").value_or(Dims(n, 1));
  const Dims dilation = node.integers("dilations").value_or(Dims(n, 1));
  const Index group = node.integer("group", 1), each = w.dim(1), channels = x.dim(1) / group;
  Dims out, begin;
  transposed_lengths(node, in, kernel, out, begin);
  Dims dims{x.dim(0), each * group};
  dims.insert(dims.end(), out.begin(), out.end());
  Array y(x.type, dims);
  const Dims steps = strides(out);
  const Index plane = count(in), places = count(kernel), size = count(out);
  for (Index i = 0; i < y.size() && node.has(2); ++i) {
    y.at(i) = node.in(2).at(i / size % (each * group));
  }
  for_each_index(in, [&](const Dims& from, Index i) {
    for_each_index(kernel, [&](const Dims& k, Index place) {
      Dims to(n);
      for (std::size_t a = 0; a < n; ++a) {
        to[a] = from[a] * step[a] + k[a] * dilation[a] - begin[a];
        if (to[a] < 0 || to[a] >= out[a]) return;
      }
      const Index at = dot(to, steps);
      for (Index b = 0; b < x.dim(0); ++b) {
        for (Index c = 0; c < x.dim(1); ++c) {
          for (Index o = 0; o < each; ++o) {
            Number& entry = y.at((b * each * group + c / channels * each + o) * size + at);
            entry = entry +
                    x.at((b * x.dim(1) + c) * plane + i) * w.at((c * each + o) * places + place);
          }
        }
      }
    });
  });
  return {y};
}

}  // namespace

void add_contractions(Table& table) {
  table["MatMul"] = matmul;
  table["Gemm"] = gemm;
  table["Einsum"] = einsum;
}
void add_convolutions(Table& table) {
  table["Conv"] = conv;
  table["ConvTranspose"] = conv_transpose;
}

}  // namespace oracle
