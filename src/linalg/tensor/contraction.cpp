// SPDX-License-Identifier: Apache-2.0
#include "linalg/tensor/contraction.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/parallel.h"
#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

constexpr Index kIntMax = std::numeric_limits<int>::max();
constexpr Index kSmallestGemm = 128;              // multiplications that pay for a BLAS call
constexpr Index kWorkPerThread = Index{1} << 16;  // multiplications that pay for a thread
constexpr Index kLargeGemm = Index{1} << 24;      // gemm shares the work from here on

// Drops indices of extent 1 and joins indices that walk all arrays like one longer index.
void simplify(std::vector<LoopDim>& dims) {
  std::erase_if(dims, [](const LoopDim& d) { return d.extent == 1; });
  for (bool joined = true; joined;) {
    joined = false;
    for (std::size_t i = 0; i < dims.size() && !joined; ++i) {
      for (std::size_t j = 0; j < dims.size() && !joined; ++j) {
        const LoopDim outer = dims[i], inner = dims[j];
        if (i == j || outer.a != inner.a * inner.extent || outer.b != inner.b * inner.extent ||
            outer.out != inner.out * inner.extent) {
          continue;
        }
        dims[j].extent *= outer.extent;
        dims.erase(dims.begin() + static_cast<Index>(i));
        joined = true;
      }
    }
  }
}

// The layout of a rows x cols operand in row-major BLAS terms; nothing when BLAS has none.
struct Layout {
  Index stride;
  bool transposed;
};
std::optional<Layout> matrix_layout(Index rows, Index cols, Index row_stride, Index col_stride) {
  if ((cols == 1 || col_stride == 1) && (rows == 1 || row_stride >= cols)) {
    return Layout{rows == 1 ? std::max<Index>(cols, 1) : row_stride, false};
  }
  if ((rows == 1 || row_stride == 1) && (cols == 1 || col_stride >= rows)) {
    return Layout{cols == 1 ? std::max<Index>(rows, 1) : col_stride, true};
  }
  return std::nullopt;
}

// A product of an m x k and a k x n matrix taken out of the loops.
struct Product {
  LoopDim m{1, 0, 0, 0}, n{1, 0, 0, 0}, k{1, 0, 0, 0};
  Layout a{}, b{}, out{};
  bool swapped = false;  // out is stored n x m: compute the transpose
  [[nodiscard]] Index work() const { return m.extent * n.extent * k.extent; }
};

bool has_layout(Product& p) {
  for (const Index size : {p.m.extent, p.n.extent, p.k.extent}) {
    if (size > kIntMax) return false;
  }
  const auto a = matrix_layout(p.m.extent, p.k.extent, p.m.a, p.k.a);
  const auto b = matrix_layout(p.k.extent, p.n.extent, p.k.b, p.n.b);
  const auto out = matrix_layout(p.m.extent, p.n.extent, p.m.out, p.n.out);
  if (!a || !b || !out || std::max({a->stride, b->stride, out->stride}) > kIntMax) return false;
  p.a = *a;
  p.b = *b;
  p.out = *out;
  p.swapped = out->transposed;
  return true;
}

// The largest product BLAS can do; its indices are removed from `dims`.
std::optional<Product> take_product(std::vector<LoopDim>& dims) {
  const Index none = -1;
  std::vector<Index> ms{none}, ns{none}, ks{none};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const LoopDim& d = dims[i];
    if (d.a != 0 && d.b == 0 && d.out != 0) ms.push_back(static_cast<Index>(i));
    if (d.a == 0 && d.b != 0 && d.out != 0) ns.push_back(static_cast<Index>(i));
    if (d.a != 0 && d.b != 0 && d.out == 0) ks.push_back(static_cast<Index>(i));
  }
  std::optional<Product> best;
  std::vector<Index> taken;
  for (const Index m : ms) {
    for (const Index n : ns) {
      for (const Index k : ks) {
        Product p;
        if (m != none) p.m = dims[static_cast<std::size_t>(m)];
        if (n != none) p.n = dims[static_cast<std::size_t>(n)];
        if (k != none) p.k = dims[static_cast<std::size_t>(k)];
        if (p.work() < kSmallestGemm || (best && p.work() <= best->work()) || !has_layout(p)) {
          continue;
        }
        best = p;
        taken = {m, n, k};
      }
    }
  }
  std::sort(taken.rbegin(), taken.rend());
  for (const Index i : taken) {
    if (i != none) dims.erase(dims.begin() + i);
  }
  return best;
}

template <class T>
void run_product(const Product& p, T alpha, const T* a, const T* b, T beta, T* out) {
  const MatrixArg<T> left{a, p.a.stride, p.a.transposed}, right{b, p.b.stride, p.b.transposed};
  const Index m = p.m.extent, n = p.n.extent, k = p.k.extent;
  const auto or_one = [](Index stride) { return std::max<Index>(stride, 1); };
  if (n == 1) return gemv(m, k, alpha, left, b, or_one(p.k.b), beta, out, or_one(p.m.out));
  const MatrixArg<T> right_t{b, p.b.stride, !p.b.transposed};
  if (m == 1) return gemv(n, k, alpha, right_t, a, or_one(p.k.a), beta, out, or_one(p.n.out));
  if (!p.swapped) return gemm(m, n, k, alpha, left, right, beta, out, p.out.stride);
  const MatrixArg<T> left_t{a, p.a.stride, !p.a.transposed};
  gemm(n, m, k, alpha, right_t, left_t, beta, out, p.out.stride);
}

struct Offsets {
  Index a = 0, b = 0, out = 0;
};

// body(offsets) for the index tuples numbered [begin, end) of the loops.
template <class Body>
void walk(const std::vector<LoopDim>& dims, Index begin, Index end, Body&& body) {
  std::vector<Index> at(dims.size());
  Offsets o;
  Index rest = begin;
  for (std::size_t i = dims.size(); i-- > 0;) {
    at[i] = rest % dims[i].extent;
    rest /= dims[i].extent;
    o.a += at[i] * dims[i].a;
    o.b += at[i] * dims[i].b;
    o.out += at[i] * dims[i].out;
  }
  for (Index t = begin; t < end; ++t) {
    body(o);
    for (std::size_t i = dims.size(); i-- > 0;) {
      const LoopDim& d = dims[i];
      o.a += d.a, o.b += d.b, o.out += d.out;
      if (++at[i] < d.extent) break;
      at[i] = 0;
      o.a -= d.extent * d.a, o.b -= d.extent * d.b, o.out -= d.extent * d.out;
    }
  }
}

Index total(const std::vector<LoopDim>& dims) {
  Index n = 1;
  for (const LoopDim& d : dims) n *= d.extent;
  return n;
}

template <class T>
T multiply(T x, T y) {
  if constexpr (std::is_same_v<T, Index>) {
    return static_cast<Index>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  } else {
    return x * y;
  }
}
template <class T>
T plus(T x, T y) {
  if constexpr (std::is_same_v<T, Index>) {
    return static_cast<Index>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y));
  } else {
    return x + y;
  }
}

// The innermost loop without BLAS.
template <class T>
void run_inner(const LoopDim& d, T alpha, const T* a, const T* b, T* out, bool overwrite) {
  if (d.out == 0) {
    T sum = 0;
    for (Index i = 0; i < d.extent; ++i) sum = plus(sum, multiply(a[i * d.a], b[i * d.b]));
    *out = plus(overwrite ? T(0) : *out, multiply(alpha, sum));
    return;
  }
  if (overwrite) {
    for (Index i = 0; i < d.extent; ++i) out[i * d.out] = T(0);
  }
  if (d.a == 1 && d.b == 0 && d.out == 1) {
    const T factor = multiply(alpha, *b);
    for (Index i = 0; i < d.extent; ++i) out[i] = plus(out[i], multiply(factor, a[i]));
    return;
  }
  for (Index i = 0; i < d.extent; ++i) {
    T& to = out[i * d.out];
    to = plus(to, multiply(alpha, multiply(a[i * d.a], b[i * d.b])));
  }
}

// Long and densely stored indices go inside.
LoopDim take_inner(std::vector<LoopDim>& dims) {
  if (dims.empty()) return {1, 0, 0, 0};
  const auto cost = [](const LoopDim& d) {
    return static_cast<double>(d.a + d.b + d.out + 1) / static_cast<double>(d.extent);
  };
  const auto best = std::min_element(
      dims.begin(), dims.end(), [&](const auto& x, const auto& y) { return cost(x) < cost(y); });
  const LoopDim inner = *best;
  dims.erase(best);
  return inner;
}

}  // namespace

template <class T>
void contract(std::vector<LoopDim> dims, T alpha, const T* a, const T* b, T* out, bool overwrite) {
  if (total(dims) == 0) {
    if (!overwrite) return;
    std::erase_if(dims, [](const LoopDim& d) { return d.out == 0; });
    return walk(dims, 0, total(dims), [&](const Offsets& o) { out[o.out] = T(0); });
  }
  simplify(dims);
  std::optional<Product> product;
  if constexpr (!std::is_same_v<T, Index>) product = take_product(dims);
  const LoopDim inner = product ? LoopDim{1, 0, 0, 0} : take_inner(dims);

  std::vector<LoopDim> kept, summed;
  for (const LoopDim& d : dims) (d.out != 0 ? kept : summed).push_back(d);
  const Index outer = total(kept), repeats = total(summed);
  const Index inner_work = product ? product->work() : inner.extent;
  const auto piece = [&](Index begin, Index end) {
    walk(kept, begin, end, [&](const Offsets& at) {
      bool first = overwrite;
      walk(summed, 0, repeats, [&](const Offsets& o) {
        const T* from_a = a + at.a + o.a;
        const T* from_b = b + at.b + o.b;
        if constexpr (!std::is_same_v<T, Index>) {
          if (product) {
            run_product(*product, alpha, from_a, from_b, T(first ? 0 : 1), out + at.out);
            first = false;
            return;
          }
        }
        run_inner(inner, alpha, from_a, from_b, out + at.out, first);
        first = false;
      });
    });
  };
  if (outer == 1 || inner_work >= kLargeGemm) return piece(0, outer);
  const Index grain = std::max<Index>(1, kWorkPerThread / std::max<Index>(1, inner_work * repeats));
  if (outer <= grain) return piece(0, outer);
  parallel_for(outer, grain, piece);
}

template <class T>
void contract_all(const std::vector<Index>& extents, std::vector<Factor<T>> factors, T alpha,
                  const std::vector<Index>& out_strides, T* out, bool overwrite) {
  const std::size_t labels = extents.size();
  const T one = 1;
  std::vector<std::vector<T>> held;
  while (factors.size() > 2) {
    // The pair with the smallest product goes first.
    std::size_t best_i = 0, best_j = 1;
    Index best_size = -1;
    const auto kept = [&](std::size_t i, std::size_t j, std::size_t l) {
      if (factors[i].strides[l] == 0 && factors[j].strides[l] == 0) return false;
      if (out_strides[l] != 0) return true;
      for (std::size_t f = 0; f < factors.size(); ++f) {
        if (f != i && f != j && factors[f].strides[l] != 0) return true;
      }
      return false;
    };
    for (std::size_t i = 0; i < factors.size(); ++i) {
      for (std::size_t j = i + 1; j < factors.size(); ++j) {
        Index size = 1;
        for (std::size_t l = 0; l < labels; ++l) size *= kept(i, j, l) ? extents[l] : 1;
        if (best_size < 0 || size < best_size) best_size = size, best_i = i, best_j = j;
      }
    }
    const Factor<T> x = factors[best_i], y = factors[best_j];
    Factor<T> joined{nullptr, std::vector<Index>(labels, 0)};
    std::vector<LoopDim> dims;
    Index size = 1;
    for (std::size_t l = labels; l-- > 0;) {
      if (kept(best_i, best_j, l) && extents[l] != 1) {
        joined.strides[l] = size;
        size *= extents[l];
      }
      if (x.strides[l] != 0 || y.strides[l] != 0) {
        dims.push_back({extents[l], x.strides[l], y.strides[l], joined.strides[l]});
      }
    }
    held.emplace_back(static_cast<std::size_t>(size), T(0));
    joined.data = held.back().data();
    contract(std::move(dims), one, x.data, y.data, held.back().data(), true);
    factors.erase(factors.begin() + static_cast<Index>(best_j));
    factors[best_i] = std::move(joined);
  }
  std::vector<LoopDim> dims;
  for (std::size_t l = 0; l < labels; ++l) {
    const LoopDim dim{extents[l], factors[0].strides[l],
                      factors.size() > 1 ? factors[1].strides[l] : 0, out_strides[l]};
    const bool summed_before = dim.a == 0 && dim.b == 0 && dim.out == 0;
    if (!summed_before) dims.push_back(dim);
  }
  contract(std::move(dims), alpha, factors[0].data, factors.size() > 1 ? factors[1].data : &one,
           out, overwrite);
}

template void contract(std::vector<LoopDim>, double, const double*, const double*, double*, bool);
template void contract(std::vector<LoopDim>, float, const float*, const float*, float*, bool);
template void contract(std::vector<LoopDim>, Index, const Index*, const Index*, Index*, bool);
template void contract_all(const std::vector<Index>&, std::vector<Factor<double>>, double,
                           const std::vector<Index>&, double*, bool);
template void contract_all(const std::vector<Index>&, std::vector<Factor<float>>, float,
                           const std::vector<Index>&, float*, bool);
template void contract_all(const std::vector<Index>&, std::vector<Factor<Index>>, Index,
                           const std::vector<Index>&, Index*, bool);

}  // namespace lipscope
