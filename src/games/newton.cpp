// SPDX-License-Identifier: Apache-2.0
#include "games/newton.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/parallel.h"
#include "games/centred.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/lapack.h"

namespace lipscope {
namespace {

// Actions below this probability do not count in the matrix; they still follow the others.
constexpr double kNegligible = 1e-20;
constexpr double kRare = 1e-8;

std::vector<std::size_t> played(const std::vector<double>& p) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] > kNegligible) out.push_back(i);
  }
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return cblas_ddot(static_cast<int>(a.size()), a.data(), 1, b.data(), 1);
}

// sqrt(x_i) (b_ij - row_i - col_j + mean) sqrt(y_j) / tau on the actions played: B without its
// means under x and y, so that the constraints sum dx = 0 and sum dy = 0 hold by themselves.
std::vector<double> weighted_payoffs(const Board& board, double tau, const Point& point,
                                     const std::vector<std::size_t>& rows,
                                     const std::vector<std::size_t>& cols) {
  const double mean = dot(point.x, point.row);
  std::vector<double> out(rows.size() * cols.size());
  const auto fill = [&](Index begin, Index end) {
    for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
      const double* b = &board.entries[rows[r] * static_cast<std::size_t>(board.cols)];
      const double weight = std::sqrt(point.x[rows[r]]) / tau, offset = mean - point.row[rows[r]];
      double* g = &out[r * cols.size()];
      for (std::size_t c = 0; c < cols.size(); ++c)
        g[c] = weight * (b[cols[c]] - point.col[cols[c]] + offset) * std::sqrt(point.y[cols[c]]);
    }
  };
  parallel_for(static_cast<Index>(rows.size()), grain(board.cols), fill);
  return out;
}

}  // namespace

std::optional<NewtonStep> newton_step(const Board& board, double tau, const Point& point) {
  const std::vector<std::size_t> rows = played(point.x), cols = played(point.y);
  const std::vector<double> g = weighted_payoffs(board, tau, point, rows, cols);
  const int n = static_cast<int>(rows.size()), m = static_cast<int>(cols.size());
  std::vector<double> s(cols.size() * cols.size());
  for (std::size_t c = 0; c < cols.size(); ++c) s[c * cols.size() + c] = 1;
  syrk(Triangle::kUpper, m, n, 1.0, {g.data(), m, true}, 1.0, s.data(), m);
  int info = 0;
  dpotrf_("L", &m, s.data(), &m, &info, 1);
  if (info != 0) return std::nullopt;
  std::vector<double> b(cols.size());
  for (std::size_t c = 0; c < cols.size(); ++c)
    b[c] = std::sqrt(point.y[cols[c]]) * point.rho[cols[c]];
  std::vector<double> solution = b;
  const int one = 1;
  dpotrs_("L", &m, &one, s.data(), &m, solution.data(), &m, &info, 1);

  NewtonStep step;
  step.decrement = dot(b, solution);
  std::vector<double> dy(point.y.size());
  for (std::size_t c = 0; c < cols.size(); ++c)
    dy[cols[c]] = std::sqrt(point.y[cols[c]]) * solution[c];
  std::vector<double> dx = board.times(dy);
  const double mean = dot(point.x, dx);
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = -point.x[i] * (dx[i] - mean) / tau;
  // Where y is small dy / y says little, and the change of the payoffs is the answer; elsewhere the
  // two terms of the latter may nearly cancel.
  step.direction = board.transposed_times(dx);
  for (std::size_t j = 0; j < step.direction.size(); ++j) {
    const double change = step.direction[j] / tau + point.rho[j];
    step.direction[j] = point.y[j] > kRare ? dy[j] / point.y[j] : change;
  }
  for (const double value : step.direction) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  if (!(step.decrement >= 0)) return std::nullopt;
  return step;
}

}  // namespace lipscope
