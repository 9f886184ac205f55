// SPDX-License-Identifier: Apache-2.0
// A zero-padded convolution is a submatrix of a circular one on a grid large enough that no window
// wraps into the image; that one is block-diagonal in the Fourier basis [norms-10].
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/interval.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "linalg/blas.h"
#include "linalg/definite.h"
#include "linalg/norm_map.h"

namespace lipscope {
namespace {

using Spatial = ConvShape::Spatial;

// Smallest multiple of the stride that works for one axis; 0 if no window meets the image.
Index grid_size(Index input, Index output, Index kernel, Index stride, Index dilation, Index pad) {
  Index before = 0, after = 0, first = -1, last = -1;
  for (Index o = 0; o < output; ++o) {
    Index low = 0, high = 0;
    bool meets = false;
    for (Index k = 0; k < kernel; ++k) {
      const Index i = o * stride - pad + k * dilation;
      meets = meets || (i >= 0 && i < input);
      low = std::max(low, -i);
      high = std::max(high, i - (input - 1));
    }
    if (!meets) continue;
    before = std::max(before, low);
    after = std::max(after, high);
    if (first < 0) first = o;
    last = o;
  }
  if (first < 0) return 0;
  const Index least = std::max(input + std::max(before, after), (last - first + 1) * stride);
  return (least + stride - 1) / stride * stride;
}

struct Complex {
  Interval re, im;
};
Complex operator*(const Complex& a, const Complex& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

Spatial unflatten(Index i, const Spatial& size) {
  return {i / (size[1] * size[2]), i / size[2] % size[1], i % size[2]};
}
Index count(const Spatial& size) { return size[0] * size[1] * size[2]; }

// Result of a range of frequencies, in units of squared norms of the unscaled blocks.
struct Part {
  double bound = 0;   // proved, of the computed blocks
  double best = 0;    // estimate at `frequency`
  double spread = 0;  // largest radius of an exponential
  Index frequency = -1;
  std::vector<double> vector;  // right singular vector there: per alias, real then imaginary parts
};

class Symbol {
 public:
  Symbol(const ConvShape& shape, const double* weights) : shape_(shape), weights_(weights) {
    for (std::size_t a = 0; a < 3; ++a) {
      grid_[a] = grid_size(shape.input[a], shape.output[a], shape.kernel[a], shape.stride[a],
                           shape.dilation[a], shape.pad[a]);
      base_[a] = grid_[a] / shape.stride[a];
      for (Index i = 0; i < grid_[a]; ++i) {
        const Interval angle = point(static_cast<double>(2 * i)) /
                               point(static_cast<double>(grid_[a])) * Interval{kPiDown, kPiUp};
        waves_[a].push_back({cos(angle), sin(angle)});
      }
    }
    aliases_ = count(shape.stride);
    outs_ = shape.out_channels;
    ins_ = shape.in_channels;
    by_rows_ = outs_ <= ins_ * aliases_;
    // A frequency and its negative have conjugate blocks.
    for (Index f = 0; f < count(base_); ++f) {
      const Spatial at = unflatten(f, base_);
      Spatial negative;
      for (std::size_t a = 0; a < 3; ++a) negative[a] = (base_[a] - at[a]) % base_[a];
      if (f <= (negative[0] * base_[1] + negative[1]) * base_[2] + negative[2]) {
        frequencies_.push_back(f);
      }
    }
  }
  [[nodiscard]] bool empty() const { return count(grid_) == 0; }
  [[nodiscard]] Index frequencies() const { return static_cast<Index>(frequencies_.size()); }
  [[nodiscard]] Index order() const { return 2 * std::min(outs_, ins_ * aliases_); }
  [[nodiscard]] double work() const {
    const double n = static_cast<double>(order());
    return static_cast<double>(frequencies()) * n * n *
           (n + 2 * static_cast<double>(std::max(outs_, ins_ * aliases_)));
  }
  [[nodiscard]] Index shard() const {
    return std::clamp<Index>((Index{1} << 20) / (2 * aliases_ * outs_ * ins_), 1, 32);
  }
  [[nodiscard]] Part bound(Index begin, Index end) const;
  [[nodiscard]] double error_up(double spread) const;
  [[nodiscard]] std::vector<double> start_vector(const Part& part) const;

 private:
  // The two rows (real and imaginary part) of the exponentials at all taps; returns their radius.
  double exponentials(Index frequency, Index alias, double* rows) const;
  void bound_block(const double* block, Index frequency, double& limit, Part& part) const;
  Spatial full_frequency(Index frequency, Index alias) const {
    Spatial at = unflatten(frequency, base_);
    const Spatial r = unflatten(alias, shape_.stride);
    for (std::size_t a = 0; a < 3; ++a) at[a] += r[a] * base_[a];
    return at;
  }

  ConvShape shape_;
  const double* weights_;
  Spatial grid_{}, base_{};
  std::array<std::vector<Complex>, 3> waves_;
  std::vector<Index> frequencies_;
  Index aliases_ = 1, outs_ = 0, ins_ = 0;
  bool by_rows_ = true;
};

double Symbol::exponentials(Index frequency, Index alias, double* rows) const {
  const Spatial at = full_frequency(frequency, alias);
  const Index taps = shape_.kernel_size();
  double spread = 0;
  for (Index t = 0; t < taps; ++t) {
    const Spatial tap = unflatten(t, shape_.kernel);
    Complex wave{point(1), point(0)};
    for (std::size_t a = 0; a < 3; ++a) {
      const Index turn = at[a] * (tap[a] * shape_.dilation[a] % grid_[a]) % grid_[a];
      if (turn != 0) wave = wave * waves_[a][turn];
    }
    rows[t] = midpoint(wave.re);
    rows[taps + t] = midpoint(wave.im);
    spread = max_nan(spread, max_nan(radius_up(wave.re), radius_up(wave.im)));
  }
  return spread;
}

// block: per alias the real part [outs x ins], then the imaginary part.
void Symbol::bound_block(const double* block, Index frequency, double& limit, Part& part) const {
  const Index plane = outs_ * ins_, width = 2 * ins_ * aliases_;
  const double frobenius = norm2_up({block, static_cast<std::size_t>(2 * plane * aliases_)});
  const double easy = mul_up(frobenius, frobenius);
  if (easy <= part.bound) return;
  if (order() == 2) {  // rank one
    part.bound = part.best = easy;
    part.frequency = frequency;
    return;
  }
  // [Re, -Im; Im, Re] has the singular values of the complex block, each twice.
  std::vector<double> real(static_cast<std::size_t>(2 * outs_ * width));
  for (Index alias = 0; alias < aliases_; ++alias) {
    for (Index o = 0; o < outs_; ++o) {
      const double* re = block + 2 * plane * alias + o * ins_;
      const double* im = re + plane;
      double* top = real.data() + o * width + 2 * ins_ * alias;
      double* low = top + outs_ * width;
      for (Index c = 0; c < ins_; ++c) {
        top[c] = low[ins_ + c] = re[c];
        low[c] = im[c];
        top[ins_ + c] = -im[c];
      }
    }
  }
  Gram gram(order());
  const Index depth = by_rows_ ? width : 2 * outs_;
  cblas_dsyrk(CblasRowMajor, CblasUpper, by_rows_ ? CblasNoTrans : CblasTrans,
              static_cast<int>(order()), static_cast<int>(depth), 1.0, real.data(),
              static_cast<int>(width), 0.0, gram.data(), static_cast<int>(order()));
  gram.finish(depth + 2);
  double top = gram.top_up(limit, 0, 1);
  if (!(top < kInf)) {
    constexpr double kSlack = 1e-5;
    Ritz ritz = lanczos(
        order(), [&](const double* x, double* y) { gram.multiply(x, y); }, {}, kSlack / 4, 100);
    top = std::min(gram.top_up(ritz.value, kSlack, 5), easy);
    limit = std::max(limit, ritz.value * (1 + kSlack));
    if (ritz.value > part.best) {
      part.best = ritz.value;
      part.frequency = frequency;
      part.vector.resize(static_cast<std::size_t>(width));
      if (by_rows_) {
        gemv(width, 2 * outs_, 1.0, {real.data(), width, true}, ritz.vector.data(), 1, 0.0,
             part.vector.data(), 1);
      } else {
        part.vector = std::move(ritz.vector);
      }
    }
  }
  part.bound = max_nan(part.bound, top);
}

Part Symbol::bound(Index begin, Index end) const {
  const Index taps = shape_.kernel_size(), plane = outs_ * ins_, rows = 2 * aliases_;
  std::vector<double> waves(static_cast<std::size_t>((end - begin) * rows * taps));
  std::vector<double> blocks(static_cast<std::size_t>((end - begin) * rows * plane));
  Part part;
  for (Index f = begin; f < end; ++f) {
    for (Index alias = 0; alias < aliases_; ++alias) {
      double* to = waves.data() + ((f - begin) * rows + 2 * alias) * taps;
      part.spread = max_nan(part.spread, exponentials(frequencies_[f], alias, to));
    }
  }
  gemm((end - begin) * rows, plane, taps, 1.0, {waves.data(), taps}, {weights_, taps, true}, 0.0,
       blocks.data(), plane);
  double limit = 0;
  for (Index f = begin; f < end; ++f) {
    bound_block(blocks.data() + (f - begin) * rows * plane, frequencies_[f], limit, part);
  }
  return part;
}

double Symbol::error_up(double spread) const {
  const Index taps = shape_.kernel_size();
  std::vector<double> sums(static_cast<std::size_t>(outs_ * ins_));
  for (Index i = 0; i < outs_ * ins_; ++i) {
    sums[i] = abs_sum_up({weights_ + i * taps, static_cast<std::size_t>(taps)});
  }
  const auto map = dense_map(outs_, ins_, sums.data(), nullptr);
  const double norm = gain_mul_up(sqrt_up(largest(map->norms(Lines::kRows, Toward::kUp, 1))),
                                  sqrt_up(largest(map->norms(Lines::kColumns, Toward::kUp, 1))));
  const double gamma = gamma_up(static_cast<std::size_t>(taps + 2));
  const double tiny = static_cast<double>(outs_ * ins_ * taps) * 0x1p-1070;
  return add_up(mul_up(mul_up(2, add_up(spread, gamma)), norm), tiny);
}

// The wave of the best frequency under the first sine arch of each axis.
std::vector<double> Symbol::start_vector(const Part& part) const {
  if (part.vector.empty()) return {};
  const Index positions = shape_.input_size();
  std::vector<double> x(static_cast<std::size_t>(ins_ * positions));
  for (Index at = 0; at < positions; ++at) {
    const Spatial place = unflatten(at, shape_.input);
    double window = 1;
    for (std::size_t a = 0; a < 3; ++a) {
      window *= std::sin(kPiDown * static_cast<double>(place[a] + 1) /
                         static_cast<double>(shape_.input[a] + 1));
    }
    for (Index alias = 0; alias < aliases_; ++alias) {
      const Spatial frequency = full_frequency(part.frequency, alias);
      double angle = 0;
      for (std::size_t a = 0; a < 3; ++a) {
        angle += 2 * kPiDown * static_cast<double>(frequency[a] * place[a] % grid_[a]) /
                 static_cast<double>(grid_[a]);
      }
      const double re = window * std::cos(angle), im = window * std::sin(angle);
      const double* v = part.vector.data() + 2 * ins_ * alias;
      for (Index c = 0; c < ins_; ++c) x[c * positions + at] += re * v[c] - im * v[ins_ + c];
    }
  }
  return x;
}

}  // namespace

SpectralUpper fourier_spectral(const ConvShape& shape, const double* weights,
                               const NormEffort& effort) {
  static constexpr std::string_view kHow = "Fourier symbol on a larger grid [norms-10]";
  const Symbol symbol(shape, weights);
  if (symbol.empty()) return {0, kHow, {}};
  if (symbol.order() > effort.max_dense || symbol.work() > effort.max_work) return {};
  // Shards by size, not by thread: the same answer on any machine.
  const Index shard = symbol.shard(), shards = (symbol.frequencies() + shard - 1) / shard;
  std::vector<Part> parts(static_cast<std::size_t>(shards));
  {
    const SerialBlas serial;
    parallel_for(shards, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        parts[i] = symbol.bound(i * shard, std::min((i + 1) * shard, symbol.frequencies()));
      }
    });
  }
  Part all;
  for (Part& part : parts) {
    all.bound = max_nan(all.bound, part.bound);
    all.spread = max_nan(all.spread, part.spread);
    if (part.best > all.best) {
      all.best = part.best;
      all.frequency = part.frequency;
      all.vector = std::move(part.vector);
    }
  }
  const double aliases = static_cast<double>(count(shape.stride));
  const double norm = sqrt_up(div_up(all.bound, aliases));
  return {add_up(norm, symbol.error_up(all.spread)), kHow, symbol.start_vector(all)};
}

}  // namespace lipscope
