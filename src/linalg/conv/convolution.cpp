// SPDX-License-Identifier: Apache-2.0
#include "linalg/conv/convolution.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

// Entries of one thread's patch matrix: bounds memory and keeps it in cache.
constexpr Index kPatchEntries = Index{1} << 16;
constexpr Index kWorkPerPiece = Index{1} << 18;  // multiplications that pay for threads

// A run of output positions of one line that see the input at one kernel position.
struct Line {
  Index out;         // first output position of the line inside the block
  Index length;      // output positions of the line inside the block
  Index begin, end;  // those of [0, length) that see the input and not the padding
  Index in;          // input position `begin` sees; the next one is `stride` further
};

Index ceil_div(Index a, Index b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// body(line) for the lines of output positions [from, to) at kernel position `tap`.
template <class Body>
void for_each_line(const ConvShape& s, Index tap, Index from, Index to, Body&& body) {
  const Index k2 = tap % s.kernel[2], k1 = tap / s.kernel[2] % s.kernel[1];
  const Index k0 = tap / s.kernel[2] / s.kernel[1];
  const Index shift = k2 * s.dilation[2] - s.pad[2];
  const Index stride = s.stride[2], width = s.output[2];
  // Positions p with 0 <= p * stride + shift < input.
  const Index first = std::clamp<Index>(ceil_div(-shift, stride), 0, width);
  const Index last = std::clamp<Index>(ceil_div(s.input[2] - shift, stride), first, width);
  for (Index p = from; p < to;) {
    const Index o2 = p % width, o1 = p / width % s.output[1], o0 = p / width / s.output[1];
    const Index length = std::min(width - o2, to - p);
    const Index i0 = o0 * s.stride[0] - s.pad[0] + k0 * s.dilation[0];
    const Index i1 = o1 * s.stride[1] - s.pad[1] + k1 * s.dilation[1];
    Line line{p - from, length, 0, 0, 0};
    if (i0 >= 0 && i0 < s.input[0] && i1 >= 0 && i1 < s.input[1]) {
      line.begin = std::clamp<Index>(first - o2, 0, length);
      line.end = std::clamp<Index>(last - o2, line.begin, length);
      line.in = (i0 * s.input[1] + i1) * s.input[2] + (o2 + line.begin) * stride + shift;
    }
    body(line);
    p += length;
  }
}

// Geometry of one group of one image.
struct Group {
  Index channels, filters, taps, rows, in, out;  // rows = channels * taps of the patch matrix
  bool pointwise;                                // the patch matrix is the image itself
  Index block;                                   // output positions per patch matrix
  explicit Group(const ConvShape& s)
      : channels(s.in_channels / s.groups),
        filters(s.out_channels / s.groups),
        taps(s.kernel_size()),
        rows(channels * taps),
        in(s.input_size()),
        out(s.output_size()),
        pointwise(taps == 1 && s.stride == ConvShape::Spatial{1, 1, 1} &&
                  s.pad == ConvShape::Spatial{0, 0, 0} && s.input == s.output),
        block(std::min(std::max<Index>(kPatchEntries / std::max<Index>(1, rows), 16),
                       std::max<Index>(1, out))) {}
  // Few channels per group: going through a patch matrix costs more than it gives.
  [[nodiscard]] bool thin() const { return filters * channels <= 4; }
};

template <class T>
void fill_patches(const ConvShape& s, const Group& g, const T* x, Index from, Index to,
                  T* patches) {
  const Index stride = s.stride[2], n = to - from;
  for (Index c = 0; c < g.channels; ++c) {
    const T* plane = x + c * g.in;
    for (Index tap = 0; tap < g.taps; ++tap) {
      T* row = patches + (c * g.taps + tap) * n;
      for_each_line(s, tap, from, to, [&](const Line& line) {
        T* to_line = row + line.out;
        const T* at = plane + line.in;
        std::fill(to_line, to_line + line.begin, T(0));
        if (stride == 1) {
          std::copy(at, at + (line.end - line.begin), to_line + line.begin);
        } else {
          for (Index i = line.begin; i < line.end; ++i) to_line[i] = at[(i - line.begin) * stride];
        }
        std::fill(to_line + line.end, to_line + line.length, T(0));
      });
    }
  }
}

template <class T>
void add_patches(const ConvShape& s, const Group& g, const T* patches, Index from, Index to, T* x) {
  const Index stride = s.stride[2], n = to - from;
  for (Index c = 0; c < g.channels; ++c) {
    T* plane = x + c * g.in;
    for (Index tap = 0; tap < g.taps; ++tap) {
      const T* row = patches + (c * g.taps + tap) * n;
      for_each_line(s, tap, from, to, [&](const Line& line) {
        const T* from_line = row + line.out + line.begin;
        T* at = plane + line.in;
        for (Index i = 0; i < line.end - line.begin; ++i) at[i * stride] += from_line[i];
      });
    }
  }
}

// body(m, c, line) over all terms of a thin group.
template <class Body>
void for_each_term(const ConvShape& s, const Group& g, Body&& body) {
  for (Index m = 0; m < g.filters; ++m) {
    for (Index c = 0; c < g.channels; ++c) {
      for (Index tap = 0; tap < g.taps; ++tap) {
        for_each_line(s, tap, 0, g.out, [&](const Line& line) {
          if (line.begin < line.end) body(m, c, (m * g.channels + c) * g.taps + tap, line);
        });
      }
    }
  }
}

// y += W x for positions [from, to) of one group of one image.
template <class T>
void forward_block(const ConvShape& s, const Group& g, const T* x, const T* w, Index from, Index to,
                   std::vector<T>& patches, T* y) {
  const Index n = to - from;
  if (g.pointwise) {
    return gemm(g.filters, n, g.rows, T(1), {w, g.rows}, {x + from, g.in}, T(1), y + from, g.out);
  }
  patches.resize(static_cast<std::size_t>(g.rows * n));
  fill_patches(s, g, x, from, to, patches.data());
  gemm(g.filters, n, g.rows, T(1), {w, g.rows}, {patches.data(), n}, T(1), y + from, g.out);
}

template <class T>
void forward_thin(const ConvShape& s, const Group& g, const T* x, const T* w, T* y) {
  const Index stride = s.stride[2];
  for_each_term(s, g, [&](Index m, Index c, Index weight, const Line& line) {
    T* to = y + m * g.out + line.out + line.begin;
    const T* at = x + c * g.in + line.in;
    const T factor = w[weight];
    const Index n = line.end - line.begin;
    if (stride == 1) {
      for (Index i = 0; i < n; ++i) to[i] += factor * at[i];
    } else {
      for (Index i = 0; i < n; ++i) to[i] += factor * at[i * stride];
    }
  });
}

template <class T>
void adjoint_thin(const ConvShape& s, const Group& g, const T* y, const T* w, T* x) {
  const Index stride = s.stride[2];
  for_each_term(s, g, [&](Index m, Index c, Index weight, const Line& line) {
    const T* from = y + m * g.out + line.out + line.begin;
    T* at = x + c * g.in + line.in;
    const T factor = w[weight];
    for (Index i = 0; i < line.end - line.begin; ++i) at[i * stride] += factor * from[i];
  });
}

template <class T>
void adjoint_group(const ConvShape& s, const Group& g, const T* y, const T* w,
                   std::vector<T>& patches, T* x) {
  if (g.thin()) return adjoint_thin(s, g, y, w, x);
  for (Index from = 0; from < g.out; from += g.block) {
    const Index to = std::min(from + g.block, g.out), n = to - from;
    if (g.pointwise) {
      gemm(g.rows, n, g.filters, T(1), {w, g.rows, true}, {y + from, g.out}, T(1), x + from, g.in);
      continue;
    }
    patches.resize(static_cast<std::size_t>(g.rows * n));
    gemm(g.rows, n, g.filters, T(1), {w, g.rows, true}, {y + from, g.out}, T(0), patches.data(), n);
    add_patches(s, g, patches.data(), from, to, x);
  }
}

// body(begin, end) over [0, pieces), on several threads when the work is worth it; BLAS then runs
// on one thread in each.
template <class Body>
void over_pieces(Index pieces, Index work_per_piece, Body&& body) {
  const Index grain = std::max<Index>(1, kWorkPerPiece / std::max<Index>(1, work_per_piece));
  if (pieces <= grain) return body(0, pieces);
  parallel_for(pieces, grain, body);
}

template <class T>
void forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Group g(s);
  if (s.y_size() == 0) return;
  const Index blocks = g.thin() ? 1 : (g.out + g.block - 1) / g.block;
  const Index width = g.thin() ? g.out : g.block;
  const Index work = g.filters * std::max<Index>(1, g.rows) * width;
  over_pieces(s.batch * s.groups * blocks, work, [&](Index begin, Index end) {
    std::vector<T> patches;
    for (Index i = begin; i < end; ++i) {
      const Index image_group = i / blocks, group = image_group % s.groups;
      const Index from = i % blocks * width, to = std::min(from + width, g.out);
      const T* xg = x + image_group * g.channels * g.in;
      const T* wg = w + group * g.filters * g.rows;
      T* yg = y + image_group * g.filters * g.out;
      for (Index m = 0; m < g.filters; ++m) {
        std::fill(yg + m * g.out + from, yg + m * g.out + to,
                  bias != nullptr ? bias[group * g.filters + m] : T(0));
      }
      if (g.rows == 0 || g.in == 0) continue;
      if (g.thin()) {
        forward_thin(s, g, xg, wg, yg);
      } else {
        forward_block(s, g, xg, wg, from, to, patches, yg);
      }
    }
  });
}

template <class T>
void adjoint_input(const ConvShape& s, const T* y, const T* w, T* x) {
  const Group g(s);
  if (s.x_size() == 0) return;
  const Index work = g.filters * g.rows * g.out;
  over_pieces(s.batch * s.groups, work, [&](Index begin, Index end) {
    std::vector<T> patches;
    for (Index i = begin; i < end; ++i) {
      T* xg = x + i * g.channels * g.in;
      std::fill_n(xg, g.channels * g.in, T(0));
      if (g.filters == 0 || g.out == 0) continue;
      adjoint_group(s, g, y + i * g.filters * g.out, w + i % s.groups * g.filters * g.rows, patches,
                    xg);
    }
  });
}

}  // namespace

void conv_forward(const ConvShape& shape, const double* x, const double* w, const double* bias,
                  double* y) {
  forward(shape, x, w, bias, y);
}
void conv_forward_plain(const ConvShape& shape, const float* x, const float* w, const float* bias,
                        float* y) {
  forward(shape, x, w, bias, y);
}
void conv_forward(const ConvShape& shape, const float* x, const float* w, const float* bias,
                  float* y) {
  if (!conv_forward_dnnl(shape, x, w, bias, y)) conv_forward_plain(shape, x, w, bias, y);
}

void conv_adjoint_input(const ConvShape& shape, const double* y, const double* w, double* x) {
  adjoint_input(shape, y, w, x);
}
void conv_adjoint_input_plain(const ConvShape& shape, const float* y, const float* w, float* x) {
  adjoint_input(shape, y, w, x);
}
void conv_adjoint_input(const ConvShape& shape, const float* y, const float* w, float* x) {
  if (!conv_adjoint_input_dnnl(shape, y, w, x)) conv_adjoint_input_plain(shape, y, w, x);
}

void conv_adjoint_weights(const ConvShape& s, const double* x, const double* y, double* w) {
  const Group g(s);
  std::fill_n(w, s.w_size(), 0.0);
  if (s.y_size() == 0 || s.x_size() == 0) return;
  std::vector<double> patches;
  for (Index i = 0; i < s.batch * s.groups; ++i) {
    const double* xg = x + i * g.channels * g.in;
    const double* yg = y + i * g.filters * g.out;
    double* wg = w + i % s.groups * g.filters * g.rows;
    for (Index from = 0; from < g.out; from += g.block) {
      const Index to = std::min(from + g.block, g.out), n = to - from;
      patches.resize(static_cast<std::size_t>(g.rows * n));
      fill_patches(s, g, xg, from, to, patches.data());
      gemm(g.filters, g.rows, n, 1.0, {yg + from, g.out}, {patches.data(), n, true}, 1.0, wg,
           g.rows);
    }
  }
}

}  // namespace lipscope
