// SPDX-License-Identifier: Apache-2.0
// Spectral bounds of one group of a convolution that do not use Fourier transforms.
#include <algorithm>
#include <vector>

#include "base/rounding.h"
#include "linalg/conv/conv_taps.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/norm_map.h"
#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

SpectralUpper dense_spectral(const ConvShape& shape, const double* weights,
                             const NormEffort& effort) {
  if (shape.y_size() > kMaxProducts / std::max<Index>(shape.x_size(), 1)) return {};
  std::vector<double> matrix(static_cast<std::size_t>(shape.y_size() * shape.x_size()));
  const TapLists lists(shape, true);
  const Index taps = shape.kernel_size();
  for (Index m = 0; m < shape.out_channels; ++m) {
    for (Index c = 0; c < shape.in_channels; ++c) {
      for (Index at = 0; at < lists.positions(); ++at) {
        double* row = matrix.data() + (m * lists.positions() + at) * shape.x_size();
        const double* w = weights + (m * shape.in_channels + c) * taps;
        lists.for_each(at, [&](Index i, Index tap) { row[c * shape.input_size() + i] = w[tap]; });
      }
    }
  }
  return dense_map(shape.y_size(), shape.x_size(), matrix.data(), nullptr)->spectral(effort);
}

}  // namespace

SpectralUpper conv_gram_spectral(const ConvShape& shape, const double* weights,
                                 const NormEffort& effort) {
  const bool input = shape.x_size() <= shape.y_size();  // the shorter side
  const Index n = std::min(shape.x_size(), shape.y_size()), taps = shape.kernel_size();
  const Index channels = input ? shape.in_channels : shape.out_channels;
  const Index others = input ? shape.out_channels : shape.in_channels;
  const double order = static_cast<double>(n);
  if (n > effort.max_dense || order * order * order / 3 > effort.max_work) return {};
  const Index width = taps * channels;
  if (width > kMaxProducts / width) return dense_spectral(shape, weights, effort);
  // products = B'B with B[other][tap, channel]: all inner products of two taps' kernels.
  std::vector<double> b(static_cast<std::size_t>(others * width));
  for (Index other = 0; other < others; ++other) {
    for (Index c = 0; c < channels; ++c) {
      const Index from = (input ? other * channels + c : c * others + other) * taps;
      for (Index t = 0; t < taps; ++t) b[other * width + t * channels + c] = weights[from + t];
    }
  }
  std::vector<double> products(static_cast<std::size_t>(width * width));
  gemm(width, width, others, 1.0, {b.data(), width, true}, {b.data(), width}, 0.0, products.data(),
       width);
  Gram gram(n);
  double* g = gram.data();
  std::fill_n(g, n * n, 0.0);
  const TapLists lists(shape, input);
  struct Seen {
    Index at, tap;
  };
  std::vector<Seen> seen;
  // Position-major order of the short side keeps each block of channels contiguous.
  for (Index line = 0; line < lists.positions(); ++line) {
    seen.clear();
    lists.for_each(line, [&](Index at, Index tap) { seen.push_back({at, tap}); });
    for (const Seen& i : seen) {
      for (const Seen& j : seen) {
        if (i.at > j.at) continue;
        for (Index c = 0; c < channels; ++c) {
          double* to = g + (i.at * channels + c) * n + j.at * channels;
          const double* from = products.data() + (i.tap * channels + c) * width + j.tap * channels;
          for (Index k = 0; k < channels; ++k) to[k] += from[k];
        }
      }
    }
  }
  gram.finish(others + taps + 2);
  SpectralUpper result = top_of_gram(gram, effort.steps);
  if (result.vector.empty()) return result;
  const Index positions = input ? shape.input_size() : shape.output_size();
  std::vector<double> vector(static_cast<std::size_t>(n));
  for (Index at = 0; at < positions; ++at) {
    for (Index c = 0; c < channels; ++c) {
      vector[c * positions + at] = result.vector[at * channels + c];
    }
  }
  if (!input) {
    result.vector.resize(static_cast<std::size_t>(shape.x_size()));
    conv_adjoint_input(shape, vector.data(), weights, result.vector.data());
  } else {
    result.vector = std::move(vector);
  }
  return result;
}

SpectralUpper kernel_spectral(const ConvShape& shape, const double* weights,
                              const NormEffort& effort) {
  const Index cols = shape.in_channels * shape.kernel_size();
  const auto kernel = dense_map(shape.out_channels, cols, weights, nullptr);
  double norm = kernel->spectral(effort).upper;
  if (!(norm < kInf)) norm = cheap_spectral(*kernel, effort).upper;
  const double copies = static_cast<double>(TapLists(shape, false).most());
  return {gain_mul_up(sqrt_up(copies), norm), "patches and reshaped kernel [norms-11]", {}};
}

}  // namespace lipscope
