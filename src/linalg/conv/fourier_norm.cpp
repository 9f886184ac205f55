// SPDX-License-Identifier: Apache-2.0
// Convolutions on a torus are block-diagonal in the Fourier basis [norms-12]; a zero-padded
// convolution is a submatrix of one on a grid large enough that no window wraps into the image
// [norms-10].
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/interval.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "linalg/conv/padded_conv_norm_sharp.h"
#include "linalg/conv/padded_conv_norm_torus.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/norm_map.h"
#include "linalg/tensor/blas.h"

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

Torus larger_grid(const ConvShape& shape) {
  Torus torus{.ins = shape.in_channels, .outs = shape.out_channels, .stride = shape.stride};
  for (std::size_t a = 0; a < 3; ++a) {
    torus.grid[a] = grid_size(shape.input[a], shape.output[a], shape.kernel[a], shape.stride[a],
                              shape.dilation[a], shape.pad[a]);
    for (Index k = 0; k < shape.kernel[a]; ++k) torus.offsets[a].push_back(k * shape.dilation[a]);
  }
  return torus;
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
  std::vector<double> bounds;  // proved, of each computed block
  double bound = 0;            // the largest of them
  double best = 0;             // estimate at `frequency`
  double spread = 0;           // largest radius of an exponential
  Index frequency = -1;
  std::vector<double> vector;  // right singular vector there: per alias, real then imaginary parts
};

class Symbol {
 public:
  Symbol(const Torus& torus, const double* weights)
      : grid_(torus.grid),
        stride_(torus.stride),
        offsets_(torus.offsets),
        weights_(weights),
        taps_(torus.taps()),
        aliases_(count(torus.stride)),
        outs_(torus.outs),
        ins_(torus.ins),
        by_rows_(outs_ <= ins_ * aliases_) {
    for (std::size_t a = 0; a < 3; ++a) {
      base_[a] = grid_[a] / stride_[a];
      for (Index i = 0; i < grid_[a]; ++i) {
        const Interval angle = point(static_cast<double>(2 * i)) /
                               point(static_cast<double>(grid_[a])) * Interval{kPiDown, kPiUp};
        waves_[a].push_back({cos(angle), sin(angle)});
      }
    }
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
  [[nodiscard]] double aliases() const { return static_cast<double>(aliases_); }
  // All blocks, with a few digits.
  [[nodiscard]] Part bound_all() const;
  // Whether no block has a squared norm above `claim`; then the largest radius of an exponential,
  // else +inf. Nothing is looked for. `sharp`: claims near the last digit are meant, too.
  [[nodiscard]] double spread_if_at_most(double claim, bool sharp) const;
  // Above `bound`, which was proved of all blocks: what every machine can prove.
  [[nodiscard]] double portable(double bound, bool sharp) const;
  [[nodiscard]] double error_up(double spread) const;
  // The wave of the best frequency on an image, which starts at cell 0 of the grid; `fade`: under
  // the first sine arch of each axis.
  [[nodiscard]] std::vector<double> wave(const Part& part, const Spatial& image, bool fade) const;
  // To all digits: part.bound as small as rounding allows; a quotient of one block from below.
  [[nodiscard]] double sharpen(Part& part) const;

 private:
  [[nodiscard]] Index shard() const {
    return std::clamp<Index>((Index{1} << 20) / (2 * aliases_ * outs_ * ins_), 1, 32);
  }
  [[nodiscard]] Part bound(Index begin, Index end) const;
  // The two rows (real and imaginary part) of the exponentials at all taps; returns their radius.
  double exponentials(Index frequency, Index alias, double* rows) const;
  // Blocks of frequencies [begin, end) of the list; returns the largest radius of an exponential.
  double blocks(Index begin, Index end, std::vector<double>& out) const;
  [[nodiscard]] std::vector<double> real_block(const double* block) const;
  [[nodiscard]] double bound_block(const double* block, Index frequency, double& limit,
                                   Part& part) const;
  [[nodiscard]] Gram gram_of(const std::vector<double>& real) const;
  [[nodiscard]] double sharp_bound(Index at, double square, double slack) const;
  [[nodiscard]] double sharp_top(const std::vector<double>& real, double shift) const;
  [[nodiscard]] bool block_at_most(const double* block, double claim, bool sharp) const;
  [[nodiscard]] double sharp_quotient(Index at, Part& part) const;
  Spatial full_frequency(Index frequency, Index alias) const {
    Spatial at = unflatten(frequency, base_);
    const Spatial r = unflatten(alias, stride_);
    for (std::size_t a = 0; a < 3; ++a) at[a] += r[a] * base_[a];
    return at;
  }

  Spatial grid_, stride_, base_{};
  std::array<std::vector<Index>, 3> offsets_;
  const double* weights_;
  Index taps_, aliases_, outs_, ins_;
  bool by_rows_;
  std::array<std::vector<Complex>, 3> waves_;
  std::vector<Index> frequencies_;
};

double Symbol::exponentials(Index frequency, Index alias, double* rows) const {
  const Spatial at = full_frequency(frequency, alias);
  Spatial sizes;
  for (std::size_t a = 0; a < 3; ++a) sizes[a] = static_cast<Index>(offsets_[a].size());
  double spread = 0;
  for (Index t = 0; t < taps_; ++t) {
    const Spatial tap = unflatten(t, sizes);
    Complex wave{point(1), point(0)};
    for (std::size_t a = 0; a < 3; ++a) {
      const Index turn = at[a] * (offsets_[a][tap[a]] % grid_[a]) % grid_[a];
      if (turn != 0) wave = wave * waves_[a][turn];
    }
    rows[t] = midpoint(wave.re);
    rows[taps_ + t] = midpoint(wave.im);
    spread = max_nan(spread, max_nan(radius_up(wave.re), radius_up(wave.im)));
  }
  return spread;
}

// [Re, -Im; Im, Re] has the singular values of the complex block, each twice. block: per alias the
// real part [outs x ins], then the imaginary part.
std::vector<double> Symbol::real_block(const double* block) const {
  const Index plane = outs_ * ins_, width = 2 * ins_ * aliases_;
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
  return real;
}

Gram Symbol::gram_of(const std::vector<double>& real) const {
  const Index width = 2 * ins_ * aliases_, depth = by_rows_ ? width : 2 * outs_;
  Gram gram(order());
  syrk(Triangle::kUpper, order(), depth, 1.0, {real.data(), width, !by_rows_}, 0.0, gram.data(),
       order());
  gram.finish(depth + 2);
  return gram;
}

double Symbol::bound_block(const double* block, Index frequency, double& limit, Part& part) const {
  const Index plane = outs_ * ins_, width = 2 * ins_ * aliases_;
  const double frobenius = norm2_up({block, static_cast<std::size_t>(2 * plane * aliases_)});
  const double easy = mul_up(frobenius, frobenius);
  if (easy <= part.bound) return easy;
  if (order() == 2) {  // rank one
    part.best = easy;
    part.frequency = frequency;
    return easy;
  }
  const std::vector<double> real = real_block(block);
  Gram gram = gram_of(real);
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
  return top;
}

double Symbol::blocks(Index begin, Index end, std::vector<double>& out) const {
  const Index plane = outs_ * ins_, rows = 2 * aliases_;
  std::vector<double> waves(static_cast<std::size_t>((end - begin) * rows * taps_));
  out.resize(static_cast<std::size_t>((end - begin) * rows * plane));
  double spread = 0;
  for (Index f = begin; f < end; ++f) {
    for (Index alias = 0; alias < aliases_; ++alias) {
      double* to = waves.data() + ((f - begin) * rows + 2 * alias) * taps_;
      spread = max_nan(spread, exponentials(frequencies_[f], alias, to));
    }
  }
  gemm((end - begin) * rows, plane, taps_, 1.0, {waves.data(), taps_}, {weights_, taps_, true}, 0.0,
       out.data(), plane);
  return spread;
}

Part Symbol::bound(Index begin, Index end) const {
  std::vector<double> all;
  Part part;
  part.spread = blocks(begin, end, all);
  double limit = 0;
  for (Index f = begin; f < end; ++f) {
    const double* block = all.data() + (f - begin) * 2 * aliases_ * outs_ * ins_;
    part.bounds.push_back(bound_block(block, frequencies_[f], limit, part));
    part.bound = max_nan(part.bound, part.bounds.back());
  }
  return part;
}

Part Symbol::bound_all() const {
  // Shards by size, not by thread: the same answer on any machine.
  const Index size = shard(), shards = (frequencies() + size - 1) / size;
  std::vector<Part> parts(static_cast<std::size_t>(shards));
  {
    parallel_for(shards, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        parts[i] = bound(i * size, std::min((i + 1) * size, frequencies()));
      }
    });
  }
  Part all;
  for (Part& part : parts) {
    all.bounds.insert(all.bounds.end(), part.bounds.begin(), part.bounds.end());
    all.bound = max_nan(all.bound, part.bound);
    all.spread = max_nan(all.spread, part.spread);
    if (part.best > all.best) {
      all.best = part.best;
      all.frequency = part.frequency;
      all.vector = std::move(part.vector);
    }
  }
  return all;
}

// Below square (1 + 2 slack) or so, if that is true.
double Symbol::sharp_bound(Index at, double square, double slack) const {
  std::vector<double> block;
  static_cast<void>(blocks(at, at + 1, block));
  const std::vector<double> real = real_block(block.data());
  Gram gram = gram_of(real);
  const double plain = gram.top_up(square * (1 - gram.least_slack()), 0, 1);
  if (plain <= square) return plain;
  return sharp_top(real, square * (1 + slack));
}

double Symbol::sharp_top(const std::vector<double>& real, double shift) const {
  const Index rows = 2 * outs_, cols = 2 * ins_ * aliases_;
  if (by_rows_) return sharp_top_up(rows, cols, real, shift);
  std::vector<double> turned(real.size());
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) turned[j * rows + i] = real[i * cols + j];
  }
  return sharp_top_up(cols, rows, turned, shift);
}

// Of the block at frequency number `at`; leaves the vector and the frequency in `part`.
double Symbol::sharp_quotient(Index at, Part& part) const {
  std::vector<double> block;
  static_cast<void>(blocks(at, at + 1, block));
  const std::vector<double> real = real_block(block.data());
  const Index rows = 2 * outs_, cols = 2 * ins_ * aliases_;
  const auto map = dense_map(rows, cols, real.data(), nullptr);
  std::vector<double> other(static_cast<std::size_t>(by_rows_ ? cols : rows));
  const auto multiply = [&](const double* x, double* y) {
    map->apply(by_rows_, x, other.data());
    map->apply(!by_rows_, other.data(), y);
  };
  part.vector = lanczos(order(), multiply, {}, 1e-15, 400).vector;
  if (part.vector.empty()) return 0;
  if (by_rows_) {
    map->apply(true, part.vector.data(), other.data());
    part.vector = std::move(other);
  }
  part.frequency = frequencies_[at];
  return sharp_quotient_down(rows, cols, real, part.vector);
}

double Symbol::sharpen(Part& part) const {
  if (part.frequency < 0) return 0;
  const auto start = std::find(frequencies_.begin(), frequencies_.end(), part.frequency);
  double lower = sharp_quotient(start - frequencies_.begin(), part);
  double slack = std::max(1e-13, 4 * kUnitRoundoff * static_cast<double>(order()));
  for (int round = 0; round < 5; ++round, slack *= 4) {
    const double square = lower * lower;
    std::vector<Index> open;
    for (Index f = 0; f < frequencies(); ++f) {
      if (part.bounds[f] > square * (1 + 2 * slack)) open.push_back(f);
    }
    if (open.empty()) break;
    std::vector<Part> tops(open.size());
    parallel_for(static_cast<Index>(open.size()), 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const double bound = sharp_bound(open[i], square, slack);
        part.bounds[open[i]] = std::min(part.bounds[open[i]], bound);
        // No factor: the block may be the larger one.
        if (!(bound < kInf)) tops[i].best = sharp_quotient(open[i], tops[i]);
      }
    });
    for (Part& top : tops) {
      if (!(top.best > lower)) continue;
      lower = top.best;
      part.frequency = top.frequency;
      part.vector = std::move(top.vector);
    }
  }
  part.bound = largest(part.bounds);
  return lower;
}

bool Symbol::block_at_most(const double* block, double claim, bool sharp) const {
  const double frobenius = norm2_up({block, static_cast<std::size_t>(2 * outs_ * ins_ * aliases_)});
  if (mul_up(frobenius, frobenius) <= claim) return true;
  const std::vector<double> real = real_block(block);
  if (gram_of(real).proves(claim)) return true;
  const double lower = claim * (1 - 64 * kUnitRoundoff * static_cast<double>(order()));
  return sharp && sharp_top(real, lower) <= claim;
}

double Symbol::spread_if_at_most(double claim, bool sharp) const {
  const Index size = shard(), shards = (frequencies() + size - 1) / size;
  std::vector<double> spreads(static_cast<std::size_t>(shards), kInf);
  parallel_for(shards, 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      std::vector<double> all;
      const Index from = i * size, to = std::min((i + 1) * size, frequencies());
      const double spread = blocks(from, to, all);
      bool holds = true;
      for (Index f = from; f < to && holds; ++f)
        holds = block_at_most(all.data() + (f - from) * 2 * aliases_ * outs_ * ins_, claim, sharp);
      if (holds) spreads[static_cast<std::size_t>(i)] = spread;
    }
  });
  return largest(spreads);
}

double Symbol::portable(double bound, bool sharp) const {
  const double n = static_cast<double>(order());
  if (sharp) return mul_up(bound, 1 + 0x1p-40 + 256 * n * kUnitRoundoff);
  const double deep = static_cast<double>(std::max(outs_, ins_ * aliases_));
  return mul_up(bound, 1 + 8 * n * (2 * n + 2 * deep + 32) * kUnitRoundoff);
}

double Symbol::error_up(double spread) const {
  std::vector<double> sums(static_cast<std::size_t>(outs_ * ins_));
  for (Index i = 0; i < outs_ * ins_; ++i)
    sums[i] = abs_sum_up({weights_ + i * taps_, static_cast<std::size_t>(taps_)});
  const auto map = dense_map(outs_, ins_, sums.data(), nullptr);
  const double norm = gain_mul_up(sqrt_up(map->largest_norm(Lines::kRows, Toward::kUp, 1)),
                                  sqrt_up(map->largest_norm(Lines::kColumns, Toward::kUp, 1)));
  const double gamma = gamma_up(static_cast<std::size_t>(taps_ + 2));
  const double tiny = static_cast<double>(outs_ * ins_ * taps_) * 0x1p-1070;
  return add_up(mul_up(mul_up(2, add_up(spread, gamma)), norm), tiny);
}

std::vector<double> Symbol::wave(const Part& part, const Spatial& image, bool fade) const {
  if (part.vector.empty()) return {};
  const Index positions = count(image);
  std::vector<double> x(static_cast<std::size_t>(ins_ * positions));
  for (Index at = 0; at < positions; ++at) {
    const Spatial place = unflatten(at, image);
    double window = 1;
    for (std::size_t a = 0; fade && a < 3; ++a) {
      window *=
          std::sin(kPiDown * static_cast<double>(place[a] + 1) / static_cast<double>(image[a] + 1));
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
  static constexpr std::string_view kHow = "Fourier symbol on a larger grid [norms-10]",
                                    kStep = "squared norms of blocks [norms-10]";
  const Symbol symbol(larger_grid(shape), weights);
  if (symbol.empty()) return {0, kHow, {}};
  if (symbol.order() > effort.max_dense || symbol.work() > effort.max_work) return {};
  const auto norm_up = [&](double square, double spread) {
    return add_up(sqrt_up(div_up(square, symbol.aliases())), symbol.error_up(spread));
  };
  if (effort.steps != nullptr && effort.steps->given()) {
    if (effort.steps->theorem() != kStep) return {};
    const double claim = effort.steps->take();
    const double spread = symbol.spread_if_at_most(claim, false);
    return {spread < kInf ? norm_up(claim, spread) : kInf, kHow, {}};
  }
  Part all = symbol.bound_all();
  if (effort.steps != nullptr && all.bound < kInf) {
    all.bound = symbol.portable(all.bound, false);
    effort.steps->add(kStep, all.bound);
  }
  return {norm_up(all.bound, all.spread), kHow, symbol.wave(all, shape.input, true)};
}

TorusBound torus_spectral(const Torus& torus, const double* weights, const NormEffort& effort) {
  static constexpr std::string_view kStep = "squared norms of blocks [norms-12]";
  const Symbol symbol(torus, weights);
  if (symbol.empty()) return {0, 0, {}};
  if (symbol.order() > effort.max_dense || symbol.work() > effort.max_work) return {};
  const auto norm_up = [&](double square, double error) {
    const double upper = add_up(sqrt_up(div_up(square, symbol.aliases())), error);
    return upper == upper ? upper : kInf;
  };
  if (effort.steps != nullptr && effort.steps->given()) {
    if (effort.steps->theorem() != kStep) return {};
    const double claim = effort.steps->take();
    const double spread = symbol.spread_if_at_most(claim, true);
    return {0, spread < kInf ? norm_up(claim, symbol.error_up(spread)) : kInf, {}};
  }
  Part all = symbol.bound_all();
  const double quotient = symbol.sharpen(all);
  const double error = symbol.error_up(all.spread);
  if (effort.steps != nullptr && all.bound < kInf) {
    all.bound = symbol.portable(all.bound, true);
    effort.steps->add(kStep, all.bound);
  }
  const double lower = sub_down(div_down(quotient, sqrt_up(symbol.aliases())), error);
  return {lower > 0 ? lower : 0, norm_up(all.bound, error), symbol.wave(all, torus.grid, false)};
}

}  // namespace lipscope
