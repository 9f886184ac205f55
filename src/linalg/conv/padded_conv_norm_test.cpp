// SPDX-License-Identifier: Apache-2.0
#include "linalg/conv/padded_conv_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/rounding.h"
#include "linalg/conv/padded_conv_norm_sharp.h"
#include "linalg/norm/norm_reference_for_test.h"

namespace lipscope {
namespace {

using reference::integer;
using reference::Matrix;
using Random = std::mt19937_64;

constexpr PaddingMode kModes[] = {PaddingMode::kCircular, PaddingMode::kReflect,
                                  PaddingMode::kReplicate};

// For every cell of the padded axis its cell in the image, by walking: no arithmetic in common with
// the code under test.
std::vector<Index> padded_axis(PaddingMode mode, Index n, Index before, Index after) {
  const auto walk = [&](Index steps, Index from, Index direction) {
    std::vector<Index> cells;
    for (Index i = 0; i < steps; ++i) {
      const bool leaves = from + direction < 0 || from + direction >= n;
      if (leaves && mode == PaddingMode::kReflect) direction = n == 1 ? 0 : -direction;
      if (leaves && mode == PaddingMode::kCircular) {
        from = direction < 0 ? n - 1 : 0;
      } else if (!leaves || mode == PaddingMode::kReflect) {
        from += direction;
      }
      cells.push_back(from);
    }
    return cells;
  };
  std::vector<Index> out = walk(before, 0, -1);
  std::reverse(out.begin(), out.end());
  for (Index i = 0; i < n; ++i) out.push_back(i);
  const std::vector<Index> behind = walk(after, n - 1, 1);
  out.insert(out.end(), behind.begin(), behind.end());
  return out;
}

struct Reference {
  Matrix matrix, sizes;  // the map, and the sums of |w| behind its entries
};

// Column by column: pads a unit image and convolves it.
Reference padded_matrix(const PaddedConv& map, const std::vector<double>& w) {
  const ConvShape& s = map.conv;
  std::vector<Index> axes[3];
  ConvShape valid = s;
  for (std::size_t a = 0; a < 3; ++a) {
    const Index reach = (s.output[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1;
    axes[a] = padded_axis(map.mode, s.input[a], s.pad[a],
                          std::max<Index>(reach - s.pad[a] - s.input[a], 0));
    valid.input[a] = static_cast<Index>(axes[a].size());
    valid.pad[a] = 0;
  }
  Matrix convolution = reference::conv_matrix(valid, w.data());
  Reference out{Matrix(convolution.rows, s.in_channels * s.input_size()),
                Matrix(convolution.rows, s.in_channels * s.input_size())};
  Index from = 0;
  for (Index c = 0; c < s.in_channels; ++c) {
    for (const Index i : axes[0]) {
      for (const Index j : axes[1]) {
        for (const Index k : axes[2]) {
          const Index to = ((c * s.input[0] + i) * s.input[1] + j) * s.input[2] + k;
          for (Index row = 0; row < convolution.rows; ++row) {
            out.matrix(row, to) += convolution(row, from);
            out.sizes(row, to) += std::fabs(convolution(row, from));
          }
          ++from;
        }
      }
    }
  }
  return out;
}

// Error of a norm computed from the long double matrix: at most 27 additions per entry, and what
// the computation of the norm itself loses.
long double reference_error(Reference& r, long double value) {
  long double rows = 0, cols = 0;
  for (Index i = 0; i < r.sizes.rows; ++i) {
    long double sum = 0;
    for (Index j = 0; j < r.sizes.cols; ++j) sum += r.sizes(i, j);
    rows = std::max(rows, sum);
  }
  for (Index j = 0; j < r.sizes.cols; ++j) {
    long double sum = 0;
    for (Index i = 0; i < r.sizes.rows; ++i) sum += r.sizes(i, j);
    cols = std::max(cols, sum);
  }
  return 1e-17L * value + 27 * 0x1p-64L * std::max(rows, cols);
}

PaddedConv random_map(Random& r) {
  PaddedConv map;
  ConvShape& s = map.conv;
  map.mode = kModes[integer(r, 0, 2)];
  s.groups = integer(r, 1, 2);
  s.in_channels = s.groups * integer(r, 1, 2);
  s.out_channels = s.groups * integer(r, 1, 2);
  const Index kind = integer(r, 0, 5);
  for (std::size_t a = kind == 0 ? 0 : kind <= 3 ? 1 : 2; a < 3; ++a) {
    s.input[a] = integer(r, 1, a == 0 ? 2 : 4 + 4 * (kind > 3));
    s.kernel[a] = integer(r, 1, 3);
    s.stride[a] = integer(r, 1, kind > 3 ? 6 : 3);
    s.dilation[a] = integer(r, 1, 2);
    s.pad[a] = integer(r, 0, 4);
    s.output[a] = integer(r, 1, 4);
    const Index most = s.input[a];
    if (integer(r, 0, 1) == 0 && most % s.stride[a] == 0) s.output[a] = most / s.stride[a];
  }
  return map;
}

std::vector<double> random_padded_weights(Random& r, const ConvShape& s) {
  std::normal_distribution<double> normal;
  std::vector<double> w(static_cast<std::size_t>(s.w_size()));
  const Index kind = integer(r, 0, 3);
  // Small integers make taps cancel exactly.
  for (double& v : w) v = kind == 0 ? static_cast<double>(integer(r, -2, 2)) : normal(r);
  return w;
}

void expect_encloses_padded(const NormBracket& b, Reference& r, long double value) {
  const long double error = reference_error(r, value);
  ASSERT_LE(static_cast<long double>(b.lower), value + error) << b.how;
  ASSERT_GE(static_cast<long double>(b.upper), value - error) << b.how;
}

// Largest norm of a line: ||A||_{1->q} or, with rows, ||A||_{p->inf} for q = p*.
long double line_norm(Matrix& a, bool rows, double q) {
  long double top = 0;
  for (Index i = 0; i < (rows ? a.rows : a.cols); ++i) {
    std::vector<long double> line;
    for (Index j = 0; j < (rows ? a.cols : a.rows); ++j) {
      line.push_back(rows ? a(i, j) : a(j, i));
    }
    top = std::max(top, reference::vector_norm(line, q));
  }
  return top;
}

PaddedConv axis_map(Index size, Index kernel, Index pad, PaddingMode mode) {
  return {
      {.input = {1, 1, size}, .output = {1, 1, size}, .kernel = {1, 1, kernel}, .pad = {0, 0, pad}},
      mode};
}

PaddedConv image_map(Index ci, Index co, Index size, Index kernel, Index stride, PaddingMode mode) {
  return {{.in_channels = ci,
           .out_channels = co,
           .input = {1, size, size},
           .output = {1, size / stride, size / stride},
           .kernel = {1, kernel, kernel},
           .stride = {1, stride, stride},
           .pad = {0, kernel / 2, kernel / 2}},
          mode};
}

TEST(PaddedConvNorm, EnclosesThePaddedMatrix) {
  Random r(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const PaddedConv map = random_map(r);
    const std::vector<double> w = random_padded_weights(r, map.conv);
    Reference a = padded_matrix(map, w);
    const long double value = reference::spectral(a.matrix);
    SCOPED_TRACE(trial);
    const NormPair two = parse_norms("2");
    const NormBracket exact = padded_conv_norm(map, w.data(), nullptr, two);
    expect_encloses_padded(exact, a, value);
    EXPECT_LE(exact.upper, exact.lower * (1 + 2e-11)) << exact.how;
    expect_encloses_padded(padded_conv_norm(map, w.data(), nullptr, two, {.max_work = 0}), a,
                           value);
    expect_encloses_padded(padded_conv_norm(map, w.data(), nullptr, two, {.max_dense = 2}), a,
                           value);
    expect_encloses_padded(padded_conv_norm(map, w.data(), nullptr, two, {.max_dense = 8}), a,
                           value);
    if (HasFatalFailure()) return;
  }
}

TEST(PaddedConvNorm, LinesAreExact) {
  Random r(2);
  for (int trial = 0; trial < 1500; ++trial) {
    const PaddedConv map = random_map(r);
    const std::vector<double> w = random_padded_weights(r, map.conv);
    Reference a = padded_matrix(map, w);
    SCOPED_TRACE(trial);
    const struct {
      const char* norms;
      bool rows;
      double q;
    } cases[] = {{"1", false, 1},  {"1:2", false, 2},  {"1:3", false, 3},   {"1:inf", false, kInf},
                 {"inf", true, 1}, {"2:inf", true, 2}, {"1.5:inf", true, 3}};
    for (const auto& c : cases) {
      const NormBracket b = padded_conv_norm(map, w.data(), nullptr, parse_norms(c.norms));
      const long double value = line_norm(a.matrix, c.rows, c.q);
      expect_encloses_padded(b, a, value);
      EXPECT_LE(b.upper, b.lower * (1 + 1e-12)) << c.norms;
    }
    if (HasFatalFailure()) return;
  }
}

// Any stride: the windows start at the multiples of gcd(stride, size), here each `times` times.
TEST(PaddedConvNorm, CircularIsExact) {
  Random r(3);
  for (int trial = 0; trial < 2000; ++trial) {
    PaddedConv map = random_map(r);
    map.mode = PaddingMode::kCircular;
    for (std::size_t a = 0; a < 3; ++a) {
      Index start = map.conv.stride[a], size = map.conv.input[a];
      map.conv.output[a] = size / std::gcd(start, size) * (integer(r, 0, 5) == 0 ? 2 : 1);
    }
    const std::vector<double> w = random_padded_weights(r, map.conv);
    Reference a = padded_matrix(map, w);
    SCOPED_TRACE(trial);
    const NormBracket b = padded_conv_norm(map, w.data(), nullptr, parse_norms("2"));
    expect_encloses_padded(b, a, reference::spectral(a.matrix));
    EXPECT_LE(b.upper, b.lower * (1 + 1e-12)) << b.how;
    if (HasFatalFailure()) return;
  }
}

TEST(PaddedConvNorm, GeneralNormsAndRadii) {
  Random r(4);
  for (int trial = 0; trial < 150; ++trial) {
    const PaddedConv map = random_map(r);
    const std::vector<double> w = random_padded_weights(r, map.conv);
    std::vector<double> radius(w.size());
    for (double& v : radius) v = trial % 2 == 0 ? 0 : 0.01 * std::fabs(w[0]);
    for (const char* text : {"2", "1", "inf", "1.5", "3", "3:1.2", "inf:1", "1.2:5"}) {
      const NormPair norms = parse_norms(text);
      const double p = norms.in.p(), q = norms.out.p();
      const NormBracket b = padded_conv_norm(map, w.data(), radius.data(), norms);
      ASSERT_LE(b.lower, b.upper) << text;
      std::vector<double> moved = w;
      for (double& v : moved) v += (integer(r, 0, 1) == 0 ? -0.999 : 0.999) * radius[0];
      Reference a = padded_matrix(map, moved);
      if (p == 2 && q == 2) expect_encloses_padded(b, a, reference::spectral(a.matrix));
      if (p == 1 && q == 1) expect_encloses_padded(b, a, line_norm(a.matrix, false, 1));
      if (p == kInf && q == kInf) expect_encloses_padded(b, a, line_norm(a.matrix, true, 1));
      for (int sample = 0; sample < 10; ++sample) {
        std::vector<long double> x(static_cast<std::size_t>(a.matrix.cols));
        for (long double& v : x) v = static_cast<long double>(integer(r, -3, 3));
        const long double quotient = reference::quotient(a.matrix, x, p, q);
        long double slack = 0;
        for (const long double size : a.sizes.at) slack += 27 * 0x1p-64L * size;
        EXPECT_GE(static_cast<long double>(b.upper), quotient * (1 - 1e-17L) - slack) << text;
      }
    }
    if (HasFatalFailure()) return;
  }
}

TEST(PaddedConvNorm, ScalesOutward) {
  Random r(5);
  for (int trial = 0; trial < 200; ++trial) {
    const PaddedConv map = random_map(r);
    std::vector<double> w = random_padded_weights(r, map.conv);
    const int exponent = static_cast<int>(integer(r, -1060, 1000));
    for (double& v : w) v = std::ldexp(v, exponent);
    Reference a = padded_matrix(map, w);
    for (const char* text : {"2", "1", "inf"}) {
      const NormBracket b = padded_conv_norm(map, w.data(), nullptr, parse_norms(text));
      // Jacobi rotations of subnormal numbers are fine in long double.
      const long double value = text[0] == '2'   ? reference::spectral(a.matrix)
                                : text[0] == '1' ? line_norm(a.matrix, false, 1)
                                                 : line_norm(a.matrix, true, 1);
      expect_encloses_padded(b, a, value);
    }
    if (HasFatalFailure()) return;
  }
}

// Zero padding has 2.0608 here: neither a bound for replicate nor the norm of the others.
TEST(PaddedConvNorm, PaddingChangesTheNorm) {
  const double kernel[3] = {1, 1, -1};
  const double values[] = {2, 2.04207896189796, 2.41421356237316};
  for (std::size_t mode = 0; mode < 3; ++mode) {
    const PaddedConv map = axis_map(6, 3, 1, kModes[mode]);
    for (const NormEffort& effort :
         {NormEffort{}, NormEffort{.max_dense = 2}, NormEffort{.max_work = 0}}) {
      const NormBracket b = padded_conv_norm(map, kernel, nullptr, parse_norms("2"), effort);
      EXPECT_GE(b.upper, values[mode] - 1e-13) << b.how;
      EXPECT_LE(b.lower, values[mode] + 1e-13) << b.how;
      EXPECT_GE(b.lower, values[mode] * 0.99) << b.how;
    }
    const NormBracket b = padded_conv_norm(map, kernel, nullptr, parse_norms("2"));
    EXPECT_NEAR(b.upper, values[mode], 1e-12);
    EXPECT_NEAR(b.lower, values[mode], 1e-12);
  }
  const NormBracket zero =
      conv_norm(axis_map(6, 3, 1, kModes[0]).conv, kernel, nullptr, parse_norms("2"));
  EXPECT_NEAR(zero.upper, 2.0608201289, 1e-9);
}

TEST(PaddedConvNorm, ReshapedKernelIsNotTheOperator) {
  const std::vector<double> ones(9, 1.0);
  const double zero =
      conv_norm(image_map(1, 1, 6, 3, 1, kModes[0]).conv, ones.data(), nullptr, parse_norms("2"))
          .upper;
  EXPECT_LE(zero, 7.8509);
  const double values[] = {9, 9.69041575982, 9};
  for (std::size_t mode = 0; mode < 3; ++mode) {
    const PaddedConv map = image_map(1, 1, 6, 3, 1, kModes[mode]);
    for (const NormEffort& effort :
         {NormEffort{}, NormEffort{.max_dense = 2}, NormEffort{.max_work = 0}}) {
      const NormBracket b = padded_conv_norm(map, ones.data(), nullptr, parse_norms("2"), effort);
      EXPECT_GE(b.upper, values[mode] - 1e-10) << b.how;
      EXPECT_LE(b.lower, values[mode] + 1e-10) << b.how;
    }
    const NormBracket b = padded_conv_norm(map, ones.data(), nullptr, parse_norms("2"));
    EXPECT_NEAR(b.upper, values[mode], 1e-10);
    EXPECT_NEAR(b.lower, values[mode], 1e-10);
  }
}

// A cell that several taps of one window see counts with the sum of them: here 0, not 2.
TEST(PaddedConvNorm, TapsOnOneCellAddUp) {
  const double difference[2] = {1, -1};
  PaddedConv map = axis_map(2, 2, 0, PaddingMode::kReplicate);
  map.conv.pad[2] = 5;  // every window in the padding
  for (const char* text : {"1", "2", "inf", "3", "inf:1"}) {
    EXPECT_EQ(padded_conv_norm(map, difference, nullptr, parse_norms(text)).upper, 0) << text;
  }
  // Length 1: all taps on the only cell.
  const double three[3] = {0.1, 0.2, -0.3};
  for (const PaddingMode mode : kModes) {
    const NormBracket b =
        padded_conv_norm(axis_map(1, 3, 1, mode), three, nullptr, parse_norms("2"));
    const long double sum = 0.1L - 0.1L + static_cast<long double>(0.1) + 0.2 - 0.3;
    EXPECT_LE(static_cast<long double>(b.lower), std::fabs(sum));
    EXPECT_GE(static_cast<long double>(b.upper), std::fabs(sum));
    EXPECT_LE(b.upper, 1e-16);
  }
}

TEST(PaddedConvNorm, LayersOfUsualSize) {
  Random r(6);
  std::normal_distribution<double> normal;
  for (const PaddingMode mode : kModes) {
    const PaddedConv map = image_map(8, 12, 10, 3, 1, mode);  // 800 x 1200
    std::vector<double> w(static_cast<std::size_t>(map.conv.w_size()));
    for (double& v : w) v = normal(r);
    const NormPair two = parse_norms("2");
    const NormBracket exact = padded_conv_norm(map, w.data(), nullptr, two);
    EXPECT_LE(exact.upper, exact.lower * (1 + (mode == PaddingMode::kCircular ? 1e-12 : 1e-6)));
    const NormBracket large = padded_conv_norm(map, w.data(), nullptr, two, {.max_dense = 64});
    EXPECT_GE(large.upper, exact.lower);
    EXPECT_LE(large.lower, exact.upper);
    EXPECT_GE(large.lower, exact.lower * 0.999);
    EXPECT_LE(large.upper, exact.upper * 2.1) << large.how;
  }
  // Not covering: one output less on an axis; the torus still bounds it.
  PaddedConv map = image_map(8, 8, 12, 3, 2, PaddingMode::kCircular);
  std::vector<double> w(static_cast<std::size_t>(map.conv.w_size()));
  for (double& v : w) v = normal(r);
  map.conv.output[2] -= 1;
  const NormBracket exact = padded_conv_norm(map, w.data(), nullptr, parse_norms("2"));
  const NormBracket torus =
      padded_conv_norm(map, w.data(), nullptr, parse_norms("2"), {.max_dense = 64});
  EXPECT_EQ(torus.how, "Fourier blocks of the torus [norms-12]");
  EXPECT_GE(torus.upper, exact.lower);
  EXPECT_LE(torus.upper, exact.upper * 1.1);
}

TEST(PaddedConvNorm, CircularWidthAtFullSize) {
  Random r(7);
  std::normal_distribution<double> normal;
  const PaddedConv map = image_map(64, 64, 32, 3, 1, PaddingMode::kCircular);
  std::vector<double> w(static_cast<std::size_t>(map.conv.w_size()));
  for (double& v : w) v = normal(r);
  const NormBracket b = padded_conv_norm(map, w.data(), nullptr, parse_norms("2"));
  EXPECT_LE(b.upper, b.lower * (1 + 1e-12)) << b.how;
  EXPECT_GT(b.lower, 40);
  // A permutation of cells: every block has the same norm.
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = i % 9 == i / 9 % 9 && i / 9 / 64 == i / 9 % 64;
  const NormBracket identity = padded_conv_norm(map, w.data(), nullptr, parse_norms("2"));
  EXPECT_LE(identity.upper, identity.lower * (1 + 1e-12));
  EXPECT_LE(identity.lower, 1);
  EXPECT_GE(identity.upper, 1);
}

TEST(PaddedConvNorm, BadAndEmptyInput) {
  PaddedConv map = image_map(1, 1, 4, 3, 1, PaddingMode::kReflect);
  std::vector<double> w(9, 0.0);
  for (const PaddingMode mode : kModes) {
    map.mode = mode;
    w.assign(9, 0.0);
    EXPECT_EQ(padded_conv_norm(map, w.data(), nullptr, parse_norms("2")).upper, 0);
    w[4] = kNaN;
    EXPECT_EQ(padded_conv_norm(map, w.data(), nullptr, parse_norms("2")).upper, kInf);
    w[4] = 1;
    const std::vector<double> radius(9, -1.0);
    EXPECT_EQ(padded_conv_norm(map, w.data(), radius.data(), parse_norms("3")).upper, kInf);
    const NormBracket identity = padded_conv_norm(map, w.data(), nullptr, parse_norms("2"));
    EXPECT_NEAR(identity.upper, 1, 1e-12);
    EXPECT_LE(identity.lower, 1);
    PaddedConv empty = map;
    empty.conv.output = {1, 0, 4};
    EXPECT_EQ(padded_conv_norm(empty, w.data(), nullptr, parse_norms("2")).upper, 0);
    empty.conv.input = {1, 0, 4};
    EXPECT_EQ(padded_conv_norm(empty, w.data(), nullptr, parse_norms("2")).upper, 0);
  }
}

TEST(PaddedConvNorm, SourcesFollowTheWalk) {
  for (const PaddingMode mode : kModes) {
    for (Index n = 1; n <= 5; ++n) {
      const std::vector<Index> cells = padded_axis(mode, n, 17, 17);
      for (Index i = -17; i < n + 17; ++i) {
        EXPECT_EQ(padding_source(mode, i, n), cells[static_cast<std::size_t>(i + 17)]);
      }
    }
  }
}

TEST(SharpBounds, HoldAndAreNarrow) {
  Random r(8);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 300; ++trial) {
    const Index n = integer(r, 1, 12), depth = integer(r, n, 20);
    Matrix a(n, depth);
    std::vector<double> x;
    for (long double& v : a.at) v = x.emplace_back(normal(r));
    const long double value = reference::spectral(a);
    const auto square = static_cast<double>(value * value);
    const double bound = sharp_top_up(n, depth, x, square * (1 + 1e-13));
    EXPECT_GE(static_cast<long double>(bound), value * value * (1 - 2e-17L));
    EXPECT_LE(bound, square * (1 + 2e-13));
    EXPECT_EQ(sharp_top_up(n, depth, x, square * (1 - 1e-12)), kInf);
    // A factor found below the eigenvalue, by luck of rounding, must not make the bound too small.
    for (int ulps = -24; ulps <= 24; ++ulps) {
      const double close = sharp_top_up(n, depth, x, square * (1 + ulps * 0x1p-52));
      EXPECT_GE(static_cast<long double>(close), value * value * (1 - 2e-17L));
    }
    std::vector<double> v(static_cast<std::size_t>(depth));
    for (double& entry : v) entry = normal(r);
    std::vector<long double> wide(v.begin(), v.end());
    const long double quotient = reference::quotient(a, wide, 2, 2);
    const double below = sharp_quotient_down(n, depth, x, v);
    EXPECT_LE(static_cast<long double>(below), quotient * (1 + 1e-17L));
    EXPECT_GE(static_cast<long double>(below), quotient * (1 - 1e-13L));
  }
}

}  // namespace
}  // namespace lipscope
