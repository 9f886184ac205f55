// SPDX-License-Identifier: Apache-2.0
#include "linalg/norm/gram_iteration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "base/rounding.h"
#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

// One squaring: the matrix before it was divided by 2^exponent, the product is wrong by at most
// `error` in the 2-norm.
struct Step {
  int exponent;
  double error;
};

// g = XX' or X'X.
void square(bool transposed, Index n, Index depth, const double* x, Index stride,
            std::vector<double>& g) {
  syrk(Triangle::kUpper, n, depth, 1.0, {x, stride, transposed}, 0.0, g.data(), n);
  copy_upper_to_lower(n, g.data());
}

double frobenius_up(Index lines, Index length, const double* x) {
  std::vector<double> norms(static_cast<std::size_t>(lines));
  parallel_for(lines, std::max<Index>(1, 65536 / std::max<Index>(1, length)),
               [&](Index begin, Index end) {
                 for (Index i = begin; i < end; ++i)
                   norms[i] = norm2_up({x + i * length, static_cast<std::size_t>(length)});
               });
  return norm2_up(norms);
}

// Bound of the error of `depth`-term products with Frobenius norm `size` of the factor [norms-6].
double product_error_up(Index n, Index depth, double size) {
  const double gamma = gamma_up(static_cast<std::size_t>(depth + 2));
  const double underflow = static_cast<double>(n) * static_cast<double>(depth + 2) * kMinSubnormal;
  return add_up(mul_up(gamma, mul_up(size, size)), underflow);
}

// The norm of the first matrix from that of the last.
double unwind(double last, const std::vector<Step>& steps, Index n) {
  const double lost = static_cast<double>(n) * kMinSubnormal;  // by scaling
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const double scaled = add_up(sqrt_up(add_up(last, step->error)), lost);
    last = mul_up(scaled, std::ldexp(1.0, step->exponent));
  }
  return last;
}

}  // namespace

SpectralUpper gram_iteration(Index rows, Index cols, const double* entries,
                             const NormEffort& effort, int max_squarings) {
  static constexpr std::string_view kStep = "squarings [norms-15]";
  const bool follows = effort.steps != nullptr && effort.steps->given();
  if (follows) {
    if (effort.steps->theorem() != kStep) return {};
    const double times = effort.steps->take();
    max_squarings = times >= 0 && times <= max_squarings ? static_cast<int>(times) : 0;
  }
  const bool tall = rows >= cols;
  const Index n = std::min(rows, cols), depth = std::max(rows, cols);
  const double order = static_cast<double>(n), per_step = order * order * order / 2;
  double left = effort.max_work - order * order * static_cast<double>(depth) / 2;
  if (n == 0 || left < 0 || depth > std::numeric_limits<int>::max()) return {};
  std::vector<double> g(static_cast<std::size_t>(n * n)), next(g.size());
  square(tall, n, depth, entries, cols, g);
  const double first_error = product_error_up(n, depth, frobenius_up(rows, cols, entries));
  double size = frobenius_up(n, n, g.data()), best = size;
  std::vector<Step> steps;
  for (; static_cast<int>(steps.size()) < max_squarings && left >= per_step; left -= per_step) {
    if (!(size > 0) || !(size < 0x1p1000)) break;
    const int exponent = std::ilogb(size);
    const double factor = std::ldexp(1.0, -exponent);
    for (double& value : g) value *= factor;
    square(false, n, n, g.data(), n, next);
    steps.push_back({exponent, product_error_up(n, n, frobenius_up(n, n, g.data()))});
    std::swap(g, next);
    size = frobenius_up(n, n, g.data());
    const double bound = unwind(size, steps, n);
    const bool settled = !(bound < best * (1 - 1e-4));
    if (bound < best) best = bound;
    if (settled && !follows) break;
  }
  const double upper = sqrt_up(add_up(best, first_error));
  if (!(upper < kInf)) return {};
  if (effort.steps != nullptr && !follows)
    effort.steps->add(kStep, static_cast<double>(steps.size()));
  return {upper, "Gram iteration [norms-15]", {}};
}

}  // namespace lipscope
