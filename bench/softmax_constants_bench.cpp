// SPDX-License-Identifier: Apache-2.0
// bench_softmax_constants: local constants of softmax. The l2 constant against a long double
// bisection (checked) and LAPACK's symmetric eigensolver (timed); the bracket for other p.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "best_seconds.h"
#include "softmax/norm.h"
#include "softmax/secular.h"

extern "C" {
void dsyev_(const char*, const char*, const int* n, double* a, const int* lda, double* w,
            double* work, const int* lwork, int* info, std::size_t, std::size_t);
}

namespace lipscope {
namespace {

std::vector<double> random_logits(std::mt19937_64& random, int n, double scale) {
  std::normal_distribution<double> normal;
  std::vector<double> x(static_cast<std::size_t>(n));
  for (double& v : x) v = scale * normal(random);
  return x;
}

// The largest zero of sum w / (w - nu) by bisection on nu - second, over the sum of the weights.
long double reference(const SoftmaxRow& row) {
  long double second = 0, total = row.top();
  for (const double w : row.tail()) {
    second = std::max(second, static_cast<long double>(w));
    total += w;
  }
  const long double top = row.top();
  long double from = 0, to = top - second;
  for (int step = 0; step < 400 && from < to; ++step) {
    const long double x = (from + to) / 2;
    if (x == from || x == to) break;
    long double h = top / ((top - second) - x);
    for (const double w : row.tail()) h -= w / ((second - w) + x);
    (h < 0 ? from : to) = x;
  }
  return (second + from) / total;
}

double lapack_seconds(const SoftmaxRow& row, double& top) {
  const int n = static_cast<int>(row.weights().size()), lwork = 64 * n;
  const auto size = static_cast<std::size_t>(n);
  std::vector<double> a(size * size), w(size), work(static_cast<std::size_t>(lwork));
  const double total = midpoint(row.total());
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) {
      const double si = row.weights()[i] / total, sj = row.weights()[j] / total;
      a[i * size + j] = (i == j ? si : 0) - si * sj;
    }
  }
  int info = 0;
  const double seconds = best_seconds(
      1, [&] { dsyev_("N", "U", &n, a.data(), &n, w.data(), work.data(), &lwork, &info, 1, 1); });
  top = w.back();
  return seconds;
}

bool spectral() {
  bool fine = true;
  std::mt19937_64 random(1);
  for (const int n : {2, 3, 8, 17, 64, 512, 4096}) {
    for (const double scale : {0.1, 1.0, 3.0, 10.0}) {
      std::vector<SoftmaxRow> rows;
      std::vector<std::vector<double>> logits;
      const int count = n > 1000 ? 50 : 500;
      for (int r = 0; r < count; ++r) {
        logits.push_back(random_logits(random, n, scale));
        rows.emplace_back(logits.back(), 1.0);
      }
      double error = 0, width = 0;
      for (int r = 0; r < std::min(count, 50); ++r) {
        const SoftmaxRow& row = rows[static_cast<std::size_t>(r)];
        const Interval b = top_eigenvalue(row.top(), row.tail());
        const long double exact = reference(row);
        fine = fine && b.lo <= exact * (1 + 1e-17L) && exact * (1 - 1e-17L) <= b.hi;
        error = std::max(error, std::fabs(static_cast<double>(midpoint(b) / exact - 1)));
        width = std::max(width, b.hi / b.lo - 1);
      }
      double sum = 0;
      const double seconds = best_seconds(15, [&] {
        for (const SoftmaxRow& row : rows) sum += top_eigenvalue(row.top(), row.tail()).hi;
      });
      const SoftmaxNorm norm(parse_norms("2"));
      const double whole = best_seconds(5, [&] {
        for (const auto& x : logits) sum += norm(SoftmaxRow(x, 1.0)).upper;
      });
      const double each = 1e6 * seconds / count;
      fine = fine && error <= 1e-12 && sum > 0;
      fmt::print(
          "n {:4} scale {:4}: error {:.1e} (<= 1e-12), width {:.1e}, {:.3f} us per row{}, "
          "{:.2f} us from logits",
          n, scale, error, width, each, n <= 64 ? " (< 0.5)" : "", 1e6 * whole / count);
      if (n == 512) {
        double top = 0;
        const double lapack = lapack_seconds(rows[0], top);
        fine = fine && std::fabs(top / top_eigenvalue(rows[0].top(), rows[0].tail()).hi - 1) < 1e-9;
        fmt::print(", dsyev {:.1f} ms = {:.0f} x (>= 1000)", 1e3 * lapack, 1e6 * lapack / each);
      }
      fmt::print("\n");
    }
  }
  return fine;
}

bool general() {
  bool fine = true;
  std::mt19937_64 random(2);
  for (const char* p : {"1.2", "1.5", "3", "6"}) {
    const SoftmaxNorm norm(parse_norms(p));
    double sum = 0, worst = 0;
    constexpr int kRows = 1000;
    const double seconds = best_seconds(1, [&] {
      for (int r = 0; r < kRows; ++r) {
        const int n = 2 + static_cast<int>(random() % 63);
        const double scale = std::vector<double>{0.3, 1, 2, 4}[random() % 4];
        const NormBracket b = norm(SoftmaxRow(random_logits(random, n, scale), 1.0));
        sum += b.upper / b.lower;
        worst = std::max(worst, b.upper / b.lower);
      }
    });
    fine = fine && sum / kRows <= 1.07;
    fmt::print("p {:>3}: mean upper/lower {:.4f} (<= 1.07), worst {:.3f}, {:.0f} us per row\n", p,
               sum / kRows, worst, 1e6 * seconds / kRows);
  }
  return fine;
}

}  // namespace
}  // namespace lipscope

int main() {
  const bool fine = lipscope::spectral();
  return lipscope::general() && fine ? 0 : 1;
}
