// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <random>

#include "attention/head.h"

namespace lipscope::testing_support {

struct HeadSpec {
  Index tokens = 4, width = 3, key_width = 2, value_width = 3;
  double score_scale = 1, token_scale = 1;
  bool bias = false, causal = false, normalised = false;
};

struct HeadCase {
  HeadWeights head;
  std::vector<double> tokens;
};

inline IntervalMatrix random_weights(std::mt19937_64& rng, Index rows, Index cols, double scale) {
  std::normal_distribution<double> normal;
  std::vector<double> entries(static_cast<std::size_t>(rows * cols));
  for (double& e : entries) e = scale * normal(rng);
  return {rows, cols, entries};
}

// Gaussian weights with variance 1 / width, scores divided by the root of the key width.
inline HeadCase random_head(std::mt19937_64& rng, const HeadSpec& s) {
  const double unit = 1 / std::sqrt(static_cast<double>(s.width));
  const double scale = s.score_scale / std::sqrt(static_cast<double>(s.key_width));
  HeadCase out{{s.tokens,
                s.width,
                s.key_width,
                s.value_width,
                random_weights(rng, s.width, s.key_width, scale * unit),
                random_weights(rng, s.width, s.key_width, unit),
                random_weights(rng, s.width, s.value_width, unit),
                {},
                {},
                {},
                {}},
               {}};
  if (s.bias) {
    out.head.query_bias = random_weights(rng, 1, s.key_width, scale).entries;
    out.head.key_bias = random_weights(rng, 1, s.key_width, 1).entries;
    out.head.value_bias = random_weights(rng, 1, s.value_width, 1).entries;
  }
  if (s.causal) {
    for (Index i = 0; i < s.tokens; ++i) {
      for (Index j = 0; j < s.tokens; ++j) out.head.mask.push_back(point(j > i ? -1e9 : 0));
    }
  }
  std::normal_distribution<double> normal;
  out.tokens.resize(static_cast<std::size_t>(s.tokens * s.width));
  for (double& e : out.tokens) e = s.token_scale * normal(rng);
  if (!s.normalised) return out;
  for (Index i = 0; i < s.tokens; ++i) {
    double* x = out.tokens.data() + i * s.width;
    double mean = 0, square = 0;
    for (Index b = 0; b < s.width; ++b) mean += x[b] / static_cast<double>(s.width);
    for (Index b = 0; b < s.width; ++b) square += (x[b] - mean) * (x[b] - mean);
    const double deviation = std::sqrt(square / static_cast<double>(s.width));
    for (Index b = 0; b < s.width; ++b) x[b] = (x[b] - mean) / deviation;
  }
  return out;
}

// Tokens at most `radius` away, usually on the surface.
inline std::vector<double> moved(std::mt19937_64& rng, const std::vector<double>& tokens,
                                 std::vector<double> direction, double radius) {
  std::normal_distribution<double> normal;
  if (direction.empty()) {
    direction.resize(tokens.size());
    for (double& e : direction) e = normal(rng);
  }
  double length = 0;
  for (const double e : direction) length += e * e;
  const double step = (1 - 1e-12) * radius / std::sqrt(length);
  std::vector<double> out = tokens;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += step * direction[i];
  return out;
}

}  // namespace lipscope::testing_support
