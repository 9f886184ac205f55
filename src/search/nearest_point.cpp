// SPDX-License-Identifier: Apache-2.0
#include "search/nearest_point.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Solves the symmetric positive definite system in place; false where it is singular.
bool solve(std::vector<Vector> a, Vector& b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i != j) {
        a[i][j] = sum / a[j][j];
      } else if (!(sum > 1e-14 * a[i][i])) {
        return false;
      } else {
        a[i][i] = std::sqrt(sum);
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return true;
}

}  // namespace

NearestPoint nearest_point(const std::vector<std::vector<double>>& points) {
  constexpr double kSmall = 1e-13;
  NearestPoint best;
  if (points.empty()) return best;
  std::size_t first = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (dot(points[i], points[i]) < dot(points[first], points[first])) first = i;
  }
  best = {points[first], {first}, {1}};
  const auto combine = [&] {
    std::ranges::fill(best.x, 0);
    for (std::size_t i = 0; i < best.points.size(); ++i) {
      for (std::size_t c = 0; c < best.x.size(); ++c)
        best.x[c] += best.weights[i] * points[best.points[i]][c];
    }
  };
  for (std::size_t round = 0; round < 20 * (points.size() + best.x.size()); ++round) {
    const double here = dot(best.x, best.x);
    std::size_t lowest = 0;
    double least = HUGE_VAL;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double value = dot(points[i], best.x);
      if (value < least) {
        least = value;
        lowest = i;
      }
    }
    if (here < kSmall * kSmall || least > here * (1 - 1e-10) - 1e-16 ||
        std::ranges::find(best.points, lowest) != best.points.end())
      break;
    best.points.push_back(lowest);
    best.weights.push_back(0);
    while (true) {
      // The affine minimiser: (G + 1 1') a proportional to 1.
      const std::size_t q = best.points.size();
      std::vector<Vector> gram(q, Vector(q));
      for (std::size_t i = 0; i < q; ++i) {
        for (std::size_t j = 0; j <= i; ++j)
          gram[i][j] = gram[j][i] = 1 + dot(points[best.points[i]], points[best.points[j]]);
      }
      Vector a(q, 1);
      if (!solve(std::move(gram), a)) {
        best.points.pop_back();
        best.weights.pop_back();
        combine();
        return best;
      }
      double sum = 0;
      for (const double e : a) sum += e;
      for (double& e : a) e /= sum;
      double step = 1;
      for (std::size_t i = 0; i < q; ++i) {
        if (a[i] < 1e-14)
          step = std::min(step, best.weights[i] / (best.weights[i] - a[i] + 1e-300));
      }
      std::vector<std::size_t> kept;
      Vector weights;
      for (std::size_t i = 0; i < q; ++i) {
        const double w = best.weights[i] + step * (a[i] - best.weights[i]);
        if (step < 1 && w < 1e-14) continue;
        kept.push_back(best.points[i]);
        weights.push_back(w);
      }
      const bool inside = kept.size() == q;
      best.points = std::move(kept);
      best.weights = std::move(weights);
      if (inside || best.points.empty()) break;
    }
    if (best.points.empty()) break;
    combine();
  }
  return best;
}

}  // namespace lipscope
