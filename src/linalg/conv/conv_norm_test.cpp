// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/rounding.h"
#include "linalg/norm/norm_reference_for_test.h"
#include "linalg/norm/operator_norm.h"

namespace lipscope {
namespace {

using reference::integer;
using reference::kReferenceError;
using reference::Matrix;
using Random = std::mt19937_64;

ConvShape image(Index ci, Index co, Index size, Index kernel, Index stride, Index pad) {
  const Index out = (size + 2 * pad - kernel) / stride + 1;
  return {.in_channels = ci,
          .out_channels = co,
          .input = {1, size, size},
          .output = {1, out, out},
          .kernel = {1, kernel, kernel},
          .stride = {1, stride, stride},
          .pad = {0, pad, pad}};
}

ConvShape random_shape(Random& r) {
  ConvShape s;
  s.groups = integer(r, 1, 3);
  s.in_channels = s.groups * integer(r, 1, 2);
  s.out_channels = s.groups * integer(r, 1, 2);
  for (std::size_t a = integer(r, 0, 4) == 0 ? 0 : 1; a < 3; ++a) {
    s.input[a] = integer(r, 1, a == 0 ? 2 : 4);
    s.kernel[a] = integer(r, 1, 3);
    s.stride[a] = integer(r, 1, 3);
    s.dilation[a] = integer(r, 1, 2);
    s.pad[a] = integer(r, 0, 3);
    // Any number of outputs, also windows that see only padding.
    s.output[a] = integer(r, 1, 4);
  }
  return s;
}

std::vector<double> random_weights(Random& r, const ConvShape& s) {
  std::normal_distribution<double> normal;
  std::vector<double> w(static_cast<std::size_t>(s.w_size()));
  for (double& v : w) v = normal(r);
  return w;
}

void expect_encloses_conv(const NormBracket& b, long double value) {
  EXPECT_LE(static_cast<long double>(b.lower), value * (1 + kReferenceError)) << b.how;
  EXPECT_GE(static_cast<long double>(b.upper), value * (1 - kReferenceError)) << b.how;
}

TEST(ConvNorm, EnclosesTheDenseMatrix) {
  Random r(1);
  for (int trial = 0; trial < 250; ++trial) {
    const ConvShape s = random_shape(r);
    std::vector<double> w = random_weights(r, s);
    if (trial % 5 == 0) {
      const double scale = std::pow(10.0, static_cast<double>(integer(r, -300, 300)));
      for (double& v : w) v *= scale;
    }
    Matrix a = reference::conv_matrix(s, w.data());
    const NormBracket two = conv_norm(s, w.data(), nullptr, parse_norms("2"));
    const long double value = reference::spectral(a);
    expect_encloses_conv(two, value);
    EXPECT_LE(two.upper, two.lower * (1 + 1e-11));
    // Without factorisation: Fourier, kernel and sums.
    expect_encloses_conv(conv_norm(s, w.data(), nullptr, parse_norms("2"), {.max_work = 0}), value);
    NormEffort fourier{.max_dense = 2 * s.in_channels * s.out_channels};
    for (const Index stride : s.stride) fourier.max_dense *= stride;
    expect_encloses_conv(conv_norm(s, w.data(), nullptr, parse_norms("2"), fourier), value);
    for (const char* text : {"1", "inf", "1:2", "1:3", "2:inf", "1.5:inf", "1:inf"}) {
      const NormPair norms = parse_norms(text);
      const NormBracket b = conv_norm(s, w.data(), nullptr, norms);
      std::vector<double> dense(a.at.size());
      for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = static_cast<double>(a.at[i]);
      const NormBracket d = matrix_norm({a.rows, a.cols, dense.data()}, norms);
      EXPECT_LE(b.upper, d.upper * (1 + 1e-12)) << text;
      EXPECT_GE(b.upper, d.lower) << text;
      EXPECT_LE(b.lower, d.upper) << text;
      EXPECT_GE(b.lower, d.lower * (1 - 1e-12)) << text;
    }
  }
}

TEST(ConvNorm, GeneralNormsAndRadii) {
  Random r(2);
  for (int trial = 0; trial < 60; ++trial) {
    const ConvShape s = random_shape(r);
    const std::vector<double> w = random_weights(r, s);
    std::vector<double> radius(w.size());
    for (double& v : radius) v = trial % 2 == 0 ? 0 : 0.01 * std::fabs(w[0]);
    for (const char* text : {"2", "1", "inf", "1.5", "3", "3:1.2", "inf:1", "1.2:5"}) {
      const NormPair norms = parse_norms(text);
      const double p = norms.in.p(), q = norms.out.p();
      const NormBracket b = conv_norm(s, w.data(), radius.data(), norms);
      ASSERT_LE(b.lower, b.upper) << text;
      std::vector<double> moved = w;
      for (double& v : moved) v += (integer(r, 0, 1) == 0 ? -0.999 : 0.999) * radius[0];
      Matrix a = reference::conv_matrix(s, moved.data());
      if (p == 2 && q == 2) expect_encloses_conv(b, reference::spectral(a));
      for (int sample = 0; sample < 20; ++sample) {
        std::vector<long double> x(static_cast<std::size_t>(a.cols));
        for (long double& v : x) v = static_cast<long double>(integer(r, -3, 3));
        EXPECT_GE(static_cast<long double>(b.upper),
                  reference::quotient(a, x, p, q) * (1 - kReferenceError))
            << text;
      }
    }
  }
}

// The reshaped kernel has norm 3; the operator does not.
TEST(ConvNorm, ReshapedKernelIsNotTheOperator) {
  const std::vector<double> ones(9, 1.0);
  const ConvShape s = image(1, 1, 6, 3, 1, 1);
  for (const NormEffort& effort :
       {NormEffort{}, NormEffort{.max_dense = 2}, NormEffort{.max_work = 0}}) {
    const NormBracket b = conv_norm(s, ones.data(), nullptr, parse_norms("2"), effort);
    EXPECT_GE(b.upper, 7.850855075327) << b.how;
    EXPECT_LE(b.upper, 9.0000001) << b.how;
    EXPECT_LE(b.lower, 7.850855075328) << b.how;
    EXPECT_GE(b.lower, 7.85) << b.how;
  }
  EXPECT_LE(conv_norm(s, ones.data(), nullptr, parse_norms("2")).upper, 7.8508550755);
}

// The Fourier symbol on the grid of the image itself would give 2.
TEST(ConvNorm, SameGridFourierIsNoBound) {
  const double kernel[3] = {1, 1, -1};
  const ConvShape s{.input = {1, 1, 6}, .output = {1, 1, 6}, .kernel = {1, 1, 3}, .pad = {0, 0, 1}};
  for (const NormEffort& effort :
       {NormEffort{}, NormEffort{.max_dense = 2}, NormEffort{.max_work = 0}}) {
    const NormBracket b = conv_norm(s, kernel, nullptr, parse_norms("2"), effort);
    EXPECT_GE(b.upper, 2.060820128909) << b.how;
    EXPECT_LE(b.upper, 3.0000001) << b.how;
    EXPECT_LE(b.lower, 2.060820128910) << b.how;
    EXPECT_GE(b.lower, 2.06) << b.how;
  }
  const NormBracket fourier = conv_norm(s, kernel, nullptr, parse_norms("2"), {.max_dense = 2});
  EXPECT_EQ(fourier.how, "Fourier symbol on a larger grid [norms-10]");
  EXPECT_LE(fourier.upper, std::sqrt(5) + 1e-9);
}

TEST(ConvNorm, AveragePoolGolden) {
  const std::vector<double> w(9, 1.0 / 9);
  const ConvShape s = image(1, 1, 12, 3, 2, 0);
  const NormBracket two = conv_norm(s, w.data(), nullptr, parse_norms("2"));
  EXPECT_NEAR(two.upper, 0.525783423063, 1e-11);
  EXPECT_NEAR(two.lower, 0.525783423063, 1e-11);
  EXPECT_NEAR(conv_norm(s, w.data(), nullptr, parse_norms("1")).upper, 4.0 / 9, 1e-14);
  EXPECT_NEAR(conv_norm(s, w.data(), nullptr, parse_norms("inf")).upper, 1, 1e-14);
  const NormBracket fourier = conv_norm(s, w.data(), nullptr, parse_norms("2"), {.max_dense = 2});
  EXPECT_GE(fourier.upper, 0.525783423062);
  EXPECT_LE(fourier.upper, 0.6);
}

TEST(ConvNorm, WidthOnLayersOfUsualSize) {
  Random r(3);
  const ConvShape small = image(16, 16, 12, 3, 1, 1);  // 2304 features
  const std::vector<double> w = random_weights(r, small);
  const NormBracket exact = conv_norm(small, w.data(), nullptr, parse_norms("2"));
  EXPECT_LE(exact.upper, exact.lower * (1 + 1e-6));
  const NormBracket fourier =
      conv_norm(small, w.data(), nullptr, parse_norms("2"), {.max_dense = 64});
  EXPECT_EQ(fourier.how, "Fourier symbol on a larger grid [norms-10]");
  EXPECT_GE(fourier.upper, exact.lower);
  EXPECT_LE(fourier.lower, exact.upper);
  EXPECT_LE(fourier.upper, exact.upper * 1.06);
  EXPECT_GE(fourier.lower, exact.lower * 0.999);
}

TEST(ConvNorm, BadAndEmptyInput) {
  ConvShape s = image(1, 1, 4, 3, 1, 1);
  std::vector<double> w(9, 0.0);
  EXPECT_EQ(conv_norm(s, w.data(), nullptr, parse_norms("2")).upper, 0);
  w[4] = kNaN;
  EXPECT_EQ(conv_norm(s, w.data(), nullptr, parse_norms("2")).upper, kInf);
  w[4] = 1;
  std::vector<double> radius(9, kNaN);
  EXPECT_EQ(conv_norm(s, w.data(), radius.data(), parse_norms("3")).upper, kInf);
  const NormBracket identity = conv_norm(s, w.data(), nullptr, parse_norms("2"));
  EXPECT_NEAR(identity.upper, 1, 1e-12);
  s.output = {1, 0, 4};
  EXPECT_EQ(conv_norm(s, w.data(), nullptr, parse_norms("2")).upper, 0);
  // Every window in the padding.
  s.output = {1, 1, 1};
  s.pad = {0, 7, 7};
  EXPECT_EQ(conv_norm(s, w.data(), nullptr, parse_norms("2")).upper, 0);
  EXPECT_EQ(conv_norm(s, w.data(), nullptr, parse_norms("2"), {.max_dense = 0}).upper, 0);
}

}  // namespace
}  // namespace lipscope
