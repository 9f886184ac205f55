// SPDX-License-Identifier: Apache-2.0
#include "pieces/gram_bound.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "linalg/norm/definite.h"
#include "linalg/norm/operator_norm.h"
#include "linalg/tensor/blas.h"
#include "net/small.h"

namespace lipscope {
namespace {

// Numbers outside are replaced so that products neither overflow nor lose more than
// kLostToUnderflow.
constexpr double kSmallest = 0x1p-400, kLargest = 0x1p400, kLostToUnderflow = 0x1p-600;

// Unit vectors v_i for which sum M_ij <v_i, v_j> is large, each turned in its turn; then the
// lengths of sum_j M_ij v_j are what a diagonal above M needs, up to a factor near 1.
std::vector<double> diagonal_guess(const std::vector<double>& matrix, Index n) {
  constexpr std::size_t kRank = 8;
  std::mt19937_64 rng(9);
  std::normal_distribution<double> normal;
  std::vector<double> v(to_size(n) * kRank), pull(kRank), diagonal(to_size(n));
  const auto turn = [&](std::size_t i, const double* to) {
    double square = 0;
    for (std::size_t c = 0; c < kRank; ++c) square += to[c] * to[c];
    if (!(square > 0)) return;
    for (std::size_t c = 0; c < kRank; ++c) v[i * kRank + c] = to[c] / std::sqrt(square);
  };
  for (std::size_t i = 0; i < to_size(n); ++i) {
    for (double& e : pull) e = normal(rng);
    turn(i, pull.data());
  }
  for (int round = 0; round < 30; ++round) {
    for (std::size_t i = 0; i < to_size(n); ++i) {
      std::ranges::fill(pull, 0);
      for (std::size_t j = 0; j < to_size(n); ++j) {
        const double m = i == j ? 0 : matrix[i * to_size(n) + j];
        for (std::size_t c = 0; c < kRank; ++c) pull[c] += m * v[j * kRank + c];
      }
      turn(i, pull.data());
      double square = 0;
      for (const double e : pull) square += e * e;
      diagonal[i] = matrix[i * to_size(n + 1)] + std::sqrt(square);
    }
  }
  return diagonal;
}

}  // namespace

double sign_maximum_up(const std::vector<double>& matrix, Index n) {
  // A dominant diagonal needs no proof.
  std::vector<double> dominant(to_size(n));
  for (std::size_t i = 0; i < to_size(n); ++i)
    dominant[i] = abs_sum_up(std::span(&matrix[i * to_size(n)], to_size(n)));
  const double sure = sum_up(dominant);
  if (n == 1 || !std::isfinite(sure) || sure == 0) return sure;
  std::vector<double> y = diagonal_guess(matrix, n);
  const double floor = 1e-9 * sure / static_cast<double>(n);
  for (double& e : y) e = std::max(e, floor);
  // y is raised until it is above: the largest eigenvalue of the matrix scaled by its roots.
  const Ritz top = lanczos(
      n,
      [&](const double* x, double* out) {
        std::vector<double> scaled(to_size(n));
        for (std::size_t i = 0; i < to_size(n); ++i) scaled[i] = x[i] / std::sqrt(y[i]);
        gemv(n, n, 1.0, {matrix.data(), n}, scaled.data(), 1, 0.0, out, 1);
        for (std::size_t i = 0; i < to_size(n); ++i) out[i] /= std::sqrt(y[i]);
      },
      {}, 1e-10, 60);
  double best = sure;
  for (double slack = 1e-9; slack < 1e-2; slack *= 100) {
    std::vector<double> difference(matrix.size()), raised(to_size(n));
    for (std::size_t e = 0; e < matrix.size(); ++e) difference[e] = -matrix[e];
    for (std::size_t i = 0; i < to_size(n); ++i) {
      raised[i] = y[i] * top.value * (1 + slack);
      difference[i * to_size(n + 1)] = sub_down(raised[i], matrix[i * to_size(n + 1)]);
    }
    const double deficit = definite_deficit_up(n, difference.data());
    if (!std::isfinite(deficit)) continue;
    best = std::min(best, add_up(sum_up(raised), mul_up(deficit, static_cast<double>(n))));
    break;
  }
  return best;
}

GramBound::GramBound(const LayeredNet& net) : net_(net), linear_(net, GradientNorm::kOne) {
  const DenseLayer& first = net.layers[0];
  const Index n = first.out, inputs = first.in;
  gram_.resize(to_size(n * n));
  gemm(n, n, inputs, 1.0, {first.weights.data(), inputs}, {first.weights.data(), inputs, true}, 0.0,
       gram_.data(), n);
  double uncertainty = 0;
  for (Index i = 0; i < n; ++i) {
    const double rough =
        first.radius.empty() ? 0 : norm2_up(std::span(first.radius_row(i), to_size(inputs)));
    length_.push_back(
        add_up(add_up(norm2_up(std::span(first.row(i), to_size(inputs))), rough), kSmallest));
    if (rough > 0) uncertainty = std::max(uncertainty, div_up(rough, length_.back()));
  }
  error_ = add_up(add_up(gamma_up(to_size(inputs + 8)), 0x1p-60),
                  mul_up(uncertainty, add_up(2, uncertainty)));
}

GramBound::Row GramBound::row_of(const Slopes& slopes, Index row) {
  const std::vector<Interval> entries = linear_.behind_first_units(slopes, row);
  Row result;
  std::vector<double> sizes;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool usable =
        !is_nan(entries[i]) && magnitude(entries[i]) < kLargest && length_[i] < kLargest;
    double middle = usable ? midpoint(entries[i]) : 0;
    double radius = usable ? radius_up(entries[i]) : kInf;
    if (middle != 0 && std::fabs(middle) < kSmallest) {
      middle = 0;
      radius = add_up(radius, kSmallest);
    }
    result.middle.push_back(middle);
    result.radius.push_back(radius > 0 ? std::max(radius, kSmallest) : 0);
    sizes.push_back(mul_up(add_up(std::fabs(result.middle[i]), result.radius[i]), length_[i]));
  }
  result.size = sum_up(sizes);
  const Index n = std::ssize(entries);
  result.image.resize(to_size(n));
  gemv(n, n, 1.0, {gram_.data(), n}, result.middle.data(), 1, 0.0, result.image.data(), 1);
  return result;
}

double GramBound::square_up(const Row& row, bool with_middle) const {
  if (!std::isfinite(row.size)) return kInf;
  const std::size_t width = row.middle.size();
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < width; ++i) {
    if (row.radius[i] > 0) open.push_back(i);
  }
  // First the middle, whose sign is +, then the unstable units.
  const std::size_t first = with_middle ? 1 : 0, n = open.size() + first;
  if (n == 0) return 0;
  std::vector<double> matrix(n * n);
  if (with_middle) {
    for (std::size_t i = 0; i < width; ++i) matrix[0] += row.middle[i] * row.image[i];
    for (std::size_t i = 0; i < open.size(); ++i)
      matrix[i + 1] = matrix[(i + 1) * n] = row.radius[open[i]] * row.image[open[i]];
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double entry =
          row.radius[open[i]] * row.radius[open[j]] * gram_[open[i] * width + open[j]];
      matrix[(i + first) * n + j + first] = matrix[(j + first) * n + i + first] = entry;
    }
  }
  // Entries err by their roundings and by the errors of the Gram matrix, in all by this share of
  // products of sizes.
  const double share = add_up(error_, gamma_up(2 * width + 8));
  const double error =
      add_up(mul_up(mul_up(2, share), mul_up(row.size, row.size)), kLostToUnderflow);
  return add_up(sign_maximum_up(matrix, static_cast<Index>(n)), error);
}

double GramBound::product_up(const Row& u, const Row& v) const {
  const std::size_t n = u.middle.size();
  double middle = 0, spread = 0;
  for (std::size_t i = 0; i < n; ++i) {
    middle += u.middle[i] * v.image[i];
    spread += u.radius[i] * std::fabs(v.image[i]) + v.radius[i] * std::fabs(u.image[i]);
    if (u.radius[i] == 0) continue;
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += std::fabs(gram_[i * n + j]) * v.radius[j];
    spread += u.radius[i] * sum;
  }
  const double share = add_up(error_, gamma_up(4 * n + 16));
  const double error = add_up(mul_up(mul_up(4, share), mul_up(u.size, v.size)), kLostToUnderflow);
  return add_up(add_up(std::fabs(middle), spread), error);
}

double GramBound::row_up(const Slopes& slopes, Index row) {
  return sqrt_up(square_up(row_of(slopes, row), true));
}

double GramBound::whole_up(const Slopes& slopes) {
  const Index count = net_.outputs();
  std::vector<Row> rows;
  std::vector<double> square, radius_square;
  for (Index r = 0; r < count; ++r) {
    rows.push_back(row_of(slopes, r));
    square.push_back(square_up(rows.back(), true));
    radius_square.push_back(square_up(rows.back(), false));
    if (!std::isfinite(square.back())) return kInf;
  }
  // Entries of the matrix of products of rows, all of them or of what the radii add alone.
  std::vector<double> products(to_size(count * count));
  for (Index r = 0; r < count; ++r) {
    for (Index c = 0; c <= r; ++c) {
      const double limit = sqrt_up(mul_up(square[to_size(r)], square[to_size(c)]));
      products[to_size(r * count + c)] = products[to_size(c * count + r)] =
          r == c ? square[to_size(r)]
                 : std::min(limit, product_up(rows[to_size(r)], rows[to_size(c)]));
    }
  }
  const NormEffort effort{.want_lower = false};
  const double together =
      sqrt_up(matrix_norm({count, count, products.data()}, {Norm(2), Norm(2)}, effort).upper);
  // The middle alone has an exact length; the radii add at most theirs.
  std::vector<double> middle(to_size(count * count)), doubt(to_size(count * count));
  for (Index r = 0; r < count; ++r) {
    for (Index c = 0; c < count; ++c) {
      double sum = 0;
      for (std::size_t i = 0; i < rows[to_size(r)].middle.size(); ++i)
        sum += rows[to_size(r)].middle[i] * rows[to_size(c)].image[i];
      const double sizes = mul_up(rows[to_size(r)].size, rows[to_size(c)].size);
      const double share = add_up(error_, gamma_up(2 * rows[to_size(r)].middle.size() + 8));
      middle[to_size(r * count + c)] = sum;
      doubt[to_size(r * count + c)] = add_up(mul_up(mul_up(2, share), sizes), kLostToUnderflow);
    }
  }
  const double center = sqrt_up(
      matrix_norm({count, count, middle.data(), doubt.data()}, {Norm(2), Norm(2)}, effort).upper);
  return std::min(together, add_up(center, sqrt_up(sum_up(radius_square))));
}

}  // namespace lipscope
