// SPDX-License-Identifier: Apache-2.0
// bench_norm: proved spectral norms against what they may cost. A dense 1000 x 1000 bracket against
// one Cholesky and one product of that size; a convolution, zero-padded or circular, against the
// singular values of every block of its Fourier symbol.
#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "best_seconds.h"
#include "linalg/conv/padded_conv_norm.h"
#include "linalg/norm/operator_norm.h"

extern "C" {
void dpotrf_(const char*, const int* n, double* a, const int* lda, int* info, std::size_t);
void dgesdd_(const char*, const int* m, const int* n, double* a, const int* lda, double* s,
             double* u, const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork,
             int* iwork, int* info, std::size_t);
void zgesdd_(const char*, const int* m, const int* n, std::complex<double>* a, const int* lda,
             double* s, std::complex<double>* u, const int* ldu, std::complex<double>* vt,
             const int* ldvt, std::complex<double>* work, const int* lwork, double* rwork,
             int* iwork, int* info, std::size_t);
}

namespace lipscope {
namespace {

std::vector<double> gaussian(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> out(count);
  for (double& v : out) v = normal(random);
  return out;
}

double largest_singular_value(std::vector<double> a, int m, int n) {
  std::vector<double> s(static_cast<std::size_t>(std::min(m, n)));
  const int lwork = 64 * (m + n), one = 1;
  std::vector<double> work(static_cast<std::size_t>(lwork));
  std::vector<int> iwork(static_cast<std::size_t>(8 * std::min(m, n)));
  int info = 0;
  dgesdd_("N", &m, &n, a.data(), &m, s.data(), nullptr, &one, nullptr, &one, work.data(), &lwork,
          iwork.data(), &info, 1);
  return info == 0 ? s[0] : NAN;
}

bool dense() {
  constexpr int kSize = 1000;
  const std::vector<double> a = gaussian(kSize * kSize, 1);
  std::vector<double> product(a.size()), factor(a.size());
  const double gemm = best_seconds(9, [&] {
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, kSize, kSize, kSize, 1, a.data(), kSize,
                a.data(), kSize, 0, product.data(), kSize);
  });
  int info = 0;
  for (int i = 0; i < kSize; ++i) product[static_cast<std::size_t>(i * (kSize + 1))] += 1;
  const double potrf = best_seconds(9, [&] {
    factor = product;
    dpotrf_("U", &kSize, factor.data(), &kSize, &info, 1);
  });
  NormBracket b;
  const double ours = best_seconds(9, [&] {
    b = matrix_norm({kSize, kSize, a.data()}, parse_norms("2"));
  });
  const double value = largest_singular_value(a, kSize, kSize);
  const double width = b.upper / b.lower - 1;
  const bool right = info == 0 && b.lower <= value * (1 + 1e-12) && value <= b.upper * (1 + 1e-12);
  fmt::print(
      "dense 1000x1000: width {:.1e} (<= 1e-6), {:.1f} ms = {:.2f} x (gemm {:.1f} + potrf {:.1f}) "
      "(<= 3) {}\n",
      width, 1e3 * ours, ours / (gemm + potrf), 1e3 * gemm, 1e3 * potrf, right ? "" : "WRONG");
  return right && width <= 1e-6;
}

// Singular values of all blocks of the symbol on a grid of the image's size.
double symbol_seconds(const std::vector<double>& w, int channels, int size, double& top) {
  const auto area = static_cast<std::size_t>(channels * channels);
  std::vector<std::vector<std::complex<double>>> blocks;
  for (int f = 0; f < size * size; ++f) {
    std::vector<std::complex<double>> block(area);
    for (std::size_t i = 0; i < area; ++i) {
      for (int t = 0; t < 9; ++t) {
        block[i] += w[i * 9 + static_cast<std::size_t>(t)] *
                    std::polar(1.0, 2 * M_PI * (f / size * (t / 3) + f % size * (t % 3)) / size);
      }
    }
    blocks.push_back(block);
  }
  const int lwork = 64 * 2 * channels, one = 1;
  std::vector<std::complex<double>> work(static_cast<std::size_t>(lwork));
  std::vector<double> s(static_cast<std::size_t>(channels)),
      rwork(static_cast<std::size_t>(7 * channels));
  std::vector<int> iwork(static_cast<std::size_t>(8 * channels));
  return best_seconds(1, [&] {
    for (auto& block : blocks) {
      int info = 0;
      zgesdd_("N", &channels, &channels, block.data(), &channels, s.data(), nullptr, &one, nullptr,
              &one, work.data(), &lwork, rwork.data(), iwork.data(), &info, 1);
      top = std::max(top, s[0]);
    }
  });
}

bool convolution(const char* name, const std::vector<double>& w) {
  constexpr int kChannels = 64, kSize = 32;
  const ConvShape shape{.in_channels = kChannels,
                        .out_channels = kChannels,
                        .input = {1, kSize, kSize},
                        .output = {1, kSize, kSize},
                        .kernel = {1, 3, 3},
                        .pad = {0, 1, 1}};
  NormBracket b, upper;
  const double ours =
      best_seconds(3, [&] { b = conv_norm(shape, w.data(), nullptr, parse_norms("2")); });
  const double only_upper = best_seconds(3, [&] {
    upper = conv_norm(shape, w.data(), nullptr, parse_norms("2"), {.want_lower = false});
  });
  double top = 0;
  const double svd = symbol_seconds(w, kChannels, kSize, top);
  const double width = b.upper / b.lower - 1;
  const bool right = b.lower <= b.upper && std::fabs(top / b.upper - 1) < 0.1;
  fmt::print(
      "conv 64->64 3x3 32x32 {}: width {:.2e} (<= 1e-2), {:.0f} ms = {:.2f} x {:.0f} ms of "
      "singular values (<= 1); upper alone {:.0f} ms; [{:.6g}, {:.6g}] symbol {:.6g} {}\n",
      name, width, 1e3 * ours, ours / svd, 1e3 * svd, 1e3 * only_upper, b.lower, b.upper, top,
      right ? "" : "WRONG");
  return right && width <= 1e-2;
}

// Reflections before and after a shift of each channel by one of the 9 taps: an orthogonal map, all
// blocks have the same norm.
std::vector<double> orthogonal_kernel(std::size_t n) {
  std::vector<double> w(n * n * 9), u = gaussian(n, 3), v = gaussian(n, 4);
  const auto reflection = [n](const std::vector<double>& x, std::size_t i, std::size_t j) {
    return (i == j ? 1 : 0) -
           2 * x[i] * x[j] / cblas_ddot(static_cast<int>(n), x.data(), 1, x.data(), 1);
  };
  for (std::size_t i = 0; i < n * n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      w[i * 9 + k % 9] += reflection(u, i / n, k) * reflection(v, k, i % n);
    }
  }
  return w;
}

// The blocks on the grid of the image are the map itself: the answers must agree.
bool circular(const char* name, const std::vector<double>& w) {
  constexpr int kChannels = 64, kSize = 32;
  const PaddedConv map{{.in_channels = kChannels,
                        .out_channels = kChannels,
                        .input = {1, kSize, kSize},
                        .output = {1, kSize, kSize},
                        .kernel = {1, 3, 3},
                        .pad = {0, 1, 1}},
                       PaddingMode::kCircular};
  NormBracket b;
  const double ours =
      best_seconds(3, [&] { b = padded_conv_norm(map, w.data(), nullptr, parse_norms("2")); });
  double top = 0;
  const double svd = symbol_seconds(w, kChannels, kSize, top);
  const double width = b.upper / b.lower - 1;
  const bool right = b.lower <= top * (1 + 1e-12) && top <= b.upper * (1 + 1e-12);
  fmt::print(
      "circular 64->64 3x3 32x32 {}: width {:.1e} (<= 1e-12), {:.0f} ms = {:.2f} x {:.0f} ms of "
      "singular values (<= 1); [{:.15g}, {:.15g}] symbol {:.15g} {}\n",
      name, width, 1e3 * ours, ours / svd, 1e3 * svd, b.lower, b.upper, top, right ? "" : "WRONG");
  return right && width <= 1e-12;
}

}  // namespace
}  // namespace lipscope

int main() {
  using namespace lipscope;
  bool good = dense();
  std::vector<double> w = gaussian(64 * 64 * 9, 2);
  good = convolution("gaussian", w) && good;
  good = circular("gaussian", w) && good;
  // Smooth kernels, as training makes them: a dominant low frequency.
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.3 * w[i] + w[i / 9 * 9];
  good = convolution("smooth", w) && good;
  good = circular("smooth", w) && good;
  good = circular("orthogonal", orthogonal_kernel(64)) && good;
  return good ? 0 : 1;
}
