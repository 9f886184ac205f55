// SPDX-License-Identifier: Apache-2.0
#include "sdp/seqlip.h"

#include <algorithm>
#include <cmath>

#include "base/interval.h"
#include "base/rounding.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/lapack.h"
#include "sdp/rank_one_cover.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;

constexpr Index kMostUnits = 12;  // of a layer whose patterns are enumerated

// One side of a factorisation A = X Y: X, or Y transposed. What is true of it is true of
// [X, d I], d^2 = extra.
struct Side {
  RankOneCover cover;
  NearMatrix factor;  // without rows when it is not known
  double extra = 0;
};

struct Layer {
  Side left, right;
};

double largest_slope(const UnitNode& node) {
  double largest = 0;
  for (const Interval& slope : node.slopes) largest = std::max(largest, magnitude(slope));
  return largest;
}

Side side_of(NearMatrix factor, double extra) {
  Side side{cover_of_gram(factor), std::move(factor), extra};
  side.cover.beside = add_up(side.cover.beside, extra);
  return side;
}

// A = X Y from the singular values, X = U S^(1/2); what is left of A goes into `extra`.
Layer split(const NearMatrix& a) {
  const int rows = static_cast<int>(a.rows), cols = static_cast<int>(a.cols);
  const int rank = std::min(rows, cols);
  const auto wide = static_cast<std::size_t>(rank);
  // Column-major: the transpose of A, so that its left vectors are the right ones of A.
  Vector copy = a.entries, s(wide), right(wide * static_cast<std::size_t>(cols)),
         left(wide * static_cast<std::size_t>(rows)), work(1);
  int info = 0, size = -1;
  for (int pass = 0; pass < 2; ++pass) {
    dgesvd_("S", "S", &cols, &rows, copy.data(), &cols, s.data(), right.data(), &cols, left.data(),
            &rank, work.data(), &size, &info, 1, 1);
    size = static_cast<int>(work[0]);
    if (pass == 0) work.resize(static_cast<std::size_t>(size));
  }
  // Row-major: left is rows x rank, right is rank x cols.
  for (std::size_t k = 0; k < wide; ++k) {
    const double root = std::sqrt(s[k]);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) left[i * wide + k] *= root;
    for (std::size_t j = 0; j < static_cast<std::size_t>(cols); ++j)
      right[k * static_cast<std::size_t>(cols) + j] *= root;
  }
  Vector rest = a.entries;
  gemm(a.rows, a.cols, rank, -1.0, {left.data(), rank}, {right.data(), cols}, 1.0, rest.data(),
       a.cols);
  const double products = mul_up(norm2_up(left), norm2_up(right));
  const double rounding = mul_up(gamma_up(wide + 4), add_up(products, norm2_up(a.entries)));
  const double lost = static_cast<double>(rows) * cols * (rank + 4) * kMinSubnormal;
  const double extra = add_up(add_up(norm2_up(rest), rounding), add_up(a.error, lost));
  return {side_of({a.rows, rank, std::move(left), 0}, extra),
          side_of(transposed(NearMatrix{rank, a.cols, std::move(right), 0}), extra)};
}

// The largest |sum d_i u_i w_i| for d_i in the slopes.
double overlap_up(const std::vector<Interval>& slopes, const Vector& u, const Vector& w) {
  Interval sum = point(0);
  for (std::size_t i = 0; i < slopes.size(); ++i)
    sum = sum + slopes[i] * (point(u[i]) * point(w[i]));
  return magnitude(sum);
}

// max |Y D X|^2 from the covers K of X X' and H of Y'Y, for D in the slopes.
double covered_up(const std::vector<Interval>& slopes, const RankOneCover& k,
                  const RankOneCover& h) {
  const double overlap = overlap_up(slopes, k.direction, h.direction);
  double largest = 0;
  Vector moved;
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const double slope = magnitude(slopes[i]);
    largest = std::max(largest, slope);
    moved.push_back(mul_up(slope, std::fabs(h.direction[i])));
  }
  const double turned = norm2_up(moved), length = norm2_up(k.direction);
  const double along =
      add_up(mul_up(k.along, mul_up(overlap, overlap)), mul_up(k.beside, mul_up(turned, turned)));
  const double all = add_up(mul_up(k.along, mul_up(length, length)), k.beside);
  return add_up(mul_up(h.along, along), mul_up(h.beside, mul_up(mul_up(largest, largest), all)));
}

// max |Y D X|^2 over all D with an end of each slope. |Y D X| is convex in D.
double enumerated_up(const UnitNode& node, const Side& x, const Side& y) {
  const NearMatrix &left = y.factor, &right = x.factor;  // left is Y'
  const Index n = node.size, rows = left.cols, cols = right.cols;
  const double slope = largest_slope(node);
  const double size_x = frobenius_up(right), size_y = frobenius_up(left);
  const double rounding = add_up(
      mul_up(gamma_up(static_cast<std::size_t>(n + 4)), mul_up(slope, mul_up(size_x, size_y))),
      static_cast<double>(rows) * static_cast<double>(cols * (n + 4)) * kMinSubnormal);
  double most = 0;
  Vector scaled(right.entries.size());
  for (std::size_t pattern = 0; pattern < std::size_t{1} << n; ++pattern) {
    for (Index i = 0; i < n; ++i) {
      const Interval& s = node.slopes[static_cast<std::size_t>(i)];
      const double d = (pattern >> i & 1U) != 0 ? s.hi : s.lo;
      for (Index c = 0; c < cols; ++c) {
        const auto at = static_cast<std::size_t>(i * cols + c);
        scaled[at] = d * right.entries[at];
      }
    }
    NearMatrix product{rows, cols, Vector(static_cast<std::size_t>(rows * cols)), rounding};
    gemm(rows, cols, n, 1.0, {left.entries.data(), rows, true}, {scaled.data(), cols}, 0.0,
         product.entries.data(), cols);
    if (!(frobenius_up(product) <= most)) most = max_nan(most, spectral_up(product));
  }
  const double errors = add_up(mul_up(left.error, size_x), mul_up(right.error, size_y));
  const double whole = add_up(most, mul_up(slope, errors));
  // The blocks of [Y; d I] D [X, e I].
  const double others = add_up(
      add_up(mul_up(x.extra, mul_up(size_y, size_y)), mul_up(y.extra, mul_up(size_x, size_x))),
      mul_up(x.extra, y.extra));
  return add_up(mul_up(whole, whole), mul_up(mul_up(slope, slope), others));
}

bool is_small(const UnitNode& node) { return !node.slopes.empty() && node.size <= kMostUnits; }

Layer layer_of(const UnitNetwork& network, std::size_t k) {
  const std::vector<UnitNode>& nodes = network.nodes;
  NearMatrix a = near_matrix(nodes[k].edges[0].map);
  // The input and the output leave the whole map to the other side.
  if (k == 1) return {side_of(std::move(a), 0), {}};
  if (k + 1 == nodes.size()) return {{}, side_of(transposed(a), 0)};
  if (is_small(nodes[k - 1]) || is_small(nodes[k])) return split(a);
  FactorCovers covers = cover_of_factors(a);
  return {{std::move(covers.left), {}, 0}, {std::move(covers.right), {}, 0}};
}

}  // namespace

std::string why_no_seqlip(const UnitNetwork& network, const NormPair& norms) {
  const std::vector<UnitNode>& nodes = network.nodes;
  const bool one_output = !nodes.empty() && nodes.back().size == 1;
  if (norms.in != Norm(2) || (norms.out != Norm(2) && !one_output))
    return "supports only the l2 norm";
  for (std::size_t k = 1; k < nodes.size(); ++k) {
    if (nodes[k].edges.size() != 1 || nodes[k].edges[0].from + 1 != k)
      return "supports only chains of layers";
  }
  return nodes.size() == 2 ? "one affine layer" : "";
}

double seqlip_up(const UnitNetwork& network, const NormPair&, const std::function<bool()>& stop) {
  const std::vector<UnitNode>& nodes = network.nodes;
  if (nodes.empty()) return 0;
  double product = 1;
  Side before = layer_of(network, 1).left;
  for (std::size_t k = 1; k + 1 < nodes.size(); ++k) {
    if (stop && stop()) return kInf;
    Layer next = layer_of(network, k + 1);
    double square = covered_up(nodes[k].slopes, before.cover, next.right.cover);
    if (is_small(nodes[k])) square = min_nan(square, enumerated_up(nodes[k], before, next.right));
    product = mul_up(product, sqrt_up(square));
    before = std::move(next.left);
  }
  if (std::isnan(product)) return kInf;
  const double scaled = std::ldexp(product, network.exponent);
  return scaled < 0x1p-900 ? add_up(scaled, kMinSubnormal) : scaled;
}

double seqlip_cost(const UnitNetwork& network, const NormPair&) {
  const std::vector<UnitNode>& nodes = network.nodes;
  double cost = 0;
  for (std::size_t k = 1; k < nodes.size(); ++k) {
    const auto rows = static_cast<double>(nodes[k].size),
               cols = static_cast<double>(nodes[k - 1].size);
    const double less = std::min(rows, cols), more = std::max(rows, cols);
    cost += 100 * rows * cols + less * less * (more + less);
    if (!is_small(nodes[k])) continue;
    const auto after = static_cast<double>(nodes[k + 1].size);
    const double pattern = rows * cols * after + 2e4;
    cost += std::ldexp(pattern, static_cast<int>(nodes[k].size));
  }
  return cost;
}

}  // namespace lipscope
