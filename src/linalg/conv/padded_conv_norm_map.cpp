// SPDX-License-Identifier: Apache-2.0
#include "linalg/conv/padded_conv_norm_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/interval.h"
#include "base/rounding.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/norm_ways.h"
#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

using Spatial = ConvShape::Spatial;

Index modulo(Index i, Index n) { return (i % n + n) % n; }

// [rows x cols] to [cols x rows].
std::vector<double> turned(Index rows, Index cols, const double* x) {
  std::vector<double> out = vector_of(rows * cols);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) out[j * rows + i] = x[i * cols + j];
  }
  return out;
}

// The torus of a circular convolution [norms-12], without taps that are zero. An axis with a single
// tap only selects cells: one cell stands for it.
struct CircularView {
  Torus torus;
  std::vector<double> weights;
  Index copies = 1;  // most outputs that start at one place
  Spatial first{};   // cell of the image where the torus begins
};

// Windows start at the multiples of gcd(stride, size).
Index starting_places(const ConvShape& shape, std::size_t a) {
  return shape.input[a] / std::gcd(shape.stride[a], shape.input[a]);
}

// Per axis the sets of taps with a weight other than 0; at least one.
std::array<std::vector<Index>, 3> used_sets(const MergedTaps& taps,
                                            const std::vector<double>& merged) {
  std::array<std::vector<char>, 3> used;
  for (std::size_t a = 0; a < 3; ++a) used[a].resize(taps.axis(a).size());
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (merged[i] == 0) continue;
    std::size_t tap = i;
    for (std::size_t a = 3; a-- > 0; tap /= used[a].size()) used[a][tap % used[a].size()] = 1;
  }
  std::array<std::vector<Index>, 3> out;
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t i = 0; i < used[a].size(); ++i) {
      if (used[a][i] != 0) out[a].push_back(static_cast<Index>(i));
    }
    if (out[a].empty()) out[a].push_back(0);
  }
  return out;
}

CircularView circular_view(const ConvShape& shape, const MergedTaps& taps,
                           const std::vector<double>& merged) {
  CircularView view{.torus = {.ins = shape.in_channels, .outs = shape.out_channels}};
  const std::array<std::vector<Index>, 3> used = used_sets(taps, merged);
  for (std::size_t a = 0; a < 3; ++a) {
    const Index n = shape.input[a], places = starting_places(shape, a);
    view.copies *= (shape.output[a] + places - 1) / places;
    std::vector<Index>& offsets = view.torus.offsets[a];
    for (const Index set : used[a]) {
      offsets.push_back(modulo(taps.axis(a)[set][0] * shape.dilation[a] - shape.pad[a], n));
    }
    if (offsets.size() == 1) {
      view.first[a] = std::exchange(offsets[0], 0);
    } else {
      view.torus.grid[a] = n;
      view.torus.stride[a] = n / places;
    }
  }
  const auto sets1 = static_cast<Index>(taps.axis(1).size());
  const auto sets2 = static_cast<Index>(taps.axis(2).size());
  for (Index at = 0; at < shape.in_channels * shape.out_channels; ++at) {
    const double* from = merged.data() + at * taps.count();
    for (const Index i : used[0]) {
      for (const Index j : used[1]) {
        for (const Index k : used[2]) view.weights.push_back(from[(i * sets1 + j) * sets2 + k]);
      }
    }
  }
  return view;
}

std::vector<double> image_of(const CircularView& view, const std::vector<double>& wave,
                             const Spatial& input) {
  if (wave.empty()) return {};
  const Spatial& grid = view.torus.grid;
  std::vector<double> out = vector_of(view.torus.ins * input[0] * input[1] * input[2]);
  std::size_t from = 0;
  for (Index c = 0; c < view.torus.ins; ++c) {
    for (Index i = view.first[0]; i < view.first[0] + grid[0]; ++i) {
      for (Index j = view.first[1]; j < view.first[1] + grid[1]; ++j) {
        for (Index k = view.first[2]; k < view.first[2] + grid[2]; ++k) {
          out[((c * input[0] + i) * input[1] + j) * input[2] + k] = wave[from++];
        }
      }
    }
  }
  return out;
}

}  // namespace

Index padding_source(PaddingMode mode, Index i, Index n) {
  if (mode == PaddingMode::kCircular) return modulo(i, n);
  if (mode == PaddingMode::kReplicate) return std::clamp<Index>(i, 0, n - 1);
  if (n == 1) return 0;
  const Index folded = modulo(i, 2 * n - 2);
  return std::min(folded, 2 * n - 2 - folded);
}

ConvShape valid_shape(const ConvShape& shape) {
  ConvShape valid = shape;
  for (std::size_t a = 0; a < 3; ++a) {
    valid.pad[a] = 0;
    valid.input[a] =
        (shape.output[a] - 1) * shape.stride[a] + (shape.kernel[a] - 1) * shape.dilation[a] + 1;
  }
  return valid;
}

MergedTaps::Axis MergedTaps::make_axis(const PaddedConv& map, std::size_t a) {
  const ConvShape& shape = map.conv;
  const Index input = shape.input[a], output = shape.output[a];
  Axis axis;
  axis.met[0].resize(static_cast<std::size_t>(input));
  axis.met[1].resize(static_cast<std::size_t>(output));
  std::map<std::vector<Index>, Index> numbers;
  std::vector<Index> sightings(static_cast<std::size_t>(input)), copies = sightings;
  std::vector<char> seen(static_cast<std::size_t>(valid_shape(shape).input[a]));
  for (Index o = 0; o < output; ++o) {
    std::map<Index, std::vector<Index>> cells;
    for (Index k = 0; k < shape.kernel[a]; ++k) {
      const Index padded = o * shape.stride[a] + k * shape.dilation[a];
      const Index i = padding_source(map.mode, padded - shape.pad[a], input);
      cells[i].push_back(k);
      ++sightings[i];
      if (std::exchange(seen[padded], 1) == 0) ++copies[i];
    }
    for (auto& [i, set] : cells) {
      const Index number = numbers.try_emplace(set, axis.sets.size()).first->second;
      if (number == static_cast<Index>(axis.sets.size())) {
        axis.sets.push_back(set);
        axis.places.emplace_back();
      }
      axis.met[0][i].push_back({o, number});
      axis.met[1][o].push_back({i, number});
      axis.places[number].push_back({o, i});
    }
  }
  axis.copies = *std::max_element(copies.begin(), copies.end());
  axis.sightings = *std::max_element(sightings.begin(), sightings.end());
  return axis;
}

MergedTaps::MergedTaps(const PaddedConv& map)
    : input_(map.conv.input), output_(map.conv.output), kernel_(map.conv.kernel) {
  for (std::size_t a = 0; a < 3; ++a) axes_[a] = make_axis(map, a);
}

Index MergedTaps::most(bool from_output) const {
  Index product = 1;
  for (const Axis& axis : axes_) {
    std::size_t longest = 0;
    for (const auto& list : axis.met[from_output]) longest = std::max(longest, list.size());
    product *= static_cast<Index>(longest);
  }
  return product;
}

double MergedTaps::copies() const {
  return static_cast<double>(axes_[0].copies * axes_[1].copies * axes_[2].copies);
}
double MergedTaps::sightings() const {
  return static_cast<double>(axes_[0].sightings * axes_[1].sightings * axes_[2].sightings);
}

PaddedMap::PaddedMap(const PaddedConv& map, const double* weights, const double* radius)
    : NormMap(map.conv.y_size(), map.conv.x_size()),
      map_(map),
      weights_(weights),
      radius_(radius),
      taps_(map),
      merged_(static_cast<std::size_t>(plane() * taps_.count())),
      spread_(merged_.size()) {
  std::vector<double> same;
  bool exact = true;
  for (Index at = 0; at < plane(); ++at) {
    for (Index tap = 0; tap < taps_.count(); ++tap) {
      same.clear();
      double spread = 0;
      taps_.for_each_member(tap, [&](Index k) {
        const Index from = at * shape().kernel_size() + k;
        same.push_back(weights[from]);
        if (radius != nullptr) spread = add_up(spread, radius[from]);
      });
      const Interval sum =
          same.size() == 1 ? point(same[0]) : Interval{sum_down(same), sum_up(same)};
      merged_[at * taps_.count() + tap] = midpoint(sum);
      spread = add_up(spread, radius_up(sum));
      spread_[at * taps_.count() + tap] = spread;
      exact = exact && spread == 0;
    }
  }
  if (exact) spread_.clear();
}

PaddedMap::PaddedMap(const PaddedMap& other, const std::vector<double>& merged)
    : NormMap(other.rows(), other.cols()),
      map_(other.map_),
      weights_(other.weights_),
      radius_(other.radius_),
      taps_(other.taps_),
      merged_(merged) {}

bool PaddedMap::zero() const { return max_abs(merged_) == 0 && spread_.empty(); }

// Per merged tap one product with the rows (cells) it connects.
void PaddedMap::product(bool adjoint, const std::vector<double>& w, const double* x,
                        double* y) const {
  const Index ins = shape().in_channels, outs = shape().out_channels;
  const Index from = adjoint ? outs : ins, to = adjoint ? ins : outs;
  const Index from_size = adjoint ? shape().output_size() : shape().input_size();
  const Index to_size = adjoint ? shape().input_size() : shape().output_size();
  const std::vector<double> cells = turned(from, from_size, x);
  std::vector<double> result = vector_of(to * to_size), kernel = vector_of(plane()), rows, image;
  std::vector<Index> targets;
  const auto flush = [&] {
    const auto n = static_cast<Index>(targets.size());
    image.resize(static_cast<std::size_t>(n * to));
    gemm(n, to, from, 1.0, {rows.data(), from}, {kernel.data(), ins, !adjoint}, 0.0, image.data(),
         to);
    for (Index i = 0; i < n; ++i) {
      double* target = result.data() + targets[i] * to;
      for (Index c = 0; c < to; ++c) target[c] += image[i * to + c];
    }
    rows.clear();
    targets.clear();
  };
  for (Index tap = 0; tap < taps_.count(); ++tap) {
    for (Index at = 0; at < plane(); ++at) kernel[at] = w[at * taps_.count() + tap];
    taps_.for_each_place(tap, [&](Index output, Index input) {
      const double* row = cells.data() + (adjoint ? output : input) * from;
      rows.insert(rows.end(), row, row + from);
      targets.push_back(adjoint ? input : output);
      if (targets.size() == 4096) flush();
    });
    if (!targets.empty()) flush();
  }
  const std::vector<double> back = turned(to_size, to, result.data());
  std::copy(back.begin(), back.end(), y);
}

// Products in one entry, and roundings one of them can meet.
Index PaddedMap::terms(bool adjoint) const {
  const Index channels = adjoint ? shape().out_channels : shape().in_channels;
  return (channels + 1) * taps_.most(!adjoint) + 2;
}

void PaddedMap::magnitude_up(bool adjoint, const double* x, double* y) const {
  std::vector<double> sizes(merged_.size());
  line_magnitudes(Toward::kUp, static_cast<Index>(sizes.size()), merged_.data(), radius(),
                  sizes.data());
  product(adjoint, sizes, x, y);
  inflate_sums(y, adjoint ? cols() : rows(), terms(adjoint));
}

void PaddedMap::image_down(const double* x, double* y) const {
  std::vector<double> size = vector_of(cols()), bound = vector_of(rows()), spread = bound;
  std::vector<double> weight(merged_.size());
  for (Index i = 0; i < cols(); ++i) size[i] = std::fabs(x[i]);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = std::fabs(merged_[i]);
  product(false, merged_, x, y);
  product(false, weight, size.data(), bound.data());
  inflate_sums(bound.data(), rows(), terms(false));
  if (!spread_.empty()) {
    product(false, spread_, size.data(), spread.data());
    inflate_sums(spread.data(), rows(), terms(false));
  }
  deflate_sums(y, rows(), terms(false), bound.data(), spread.data());
}

std::vector<double> PaddedMap::norms(Lines lines, Toward toward, double p) const {
  const bool by_row = lines == Lines::kRows;
  const Index ins = shape().in_channels, outs = shape().out_channels;
  const Index channels = by_row ? outs : ins, others = by_row ? ins : outs;
  const Index positions = by_row ? shape().output_size() : shape().input_size();
  std::vector<double> size(merged_.size()), out = vector_of(channels * positions), line;
  line_magnitudes(toward, static_cast<Index>(size.size()), merged_.data(), radius(), size.data());
  std::map<std::vector<Index>, std::vector<double>> known;  // per channel, by the taps met
  for (Index at = 0; at < positions; ++at) {
    std::vector<Index> met;
    taps_.for_each(by_row, at, [&](Index, Index tap) { met.push_back(tap); });
    std::sort(met.begin(), met.end());
    std::vector<double>& per_channel = known[met];
    for (Index c = per_channel.empty() ? 0 : channels; c < channels; ++c) {
      line.clear();
      for (Index o = 0; o < others; ++o) {
        const Index from = (by_row ? c * ins + o : o * ins + c) * taps_.count();
        for (const Index tap : met) line.push_back(size[from + tap]);
      }
      per_channel.push_back(line_norm(toward, line, p));
    }
    for (Index c = 0; c < channels; ++c) out[c * positions + at] = per_channel[c];
  }
  return out;
}

double PaddedMap::radius_spectral_up() const {
  return spread_.empty() ? 0 : cheap_spectral(PaddedMap(*this, spread_)).upper;
}

SpectralUpper PaddedMap::dense_spectral(const NormEffort& effort) const {
  if (rows() > kMaxProducts / cols()) return {};
  std::vector<double> matrix = vector_of(rows() * cols());
  const Index outputs = shape().output_size(), inputs = shape().input_size();
  for (Index at = 0; at < plane(); ++at) {
    const Index row = at / shape().in_channels * outputs, col = at % shape().in_channels * inputs;
    for (Index tap = 0; tap < taps_.count(); ++tap) {
      taps_.for_each_place(tap, [&](Index output, Index input) {
        matrix[(row + output) * cols() + col + input] = merged_[at * taps_.count() + tap];
      });
    }
  }
  return dense_map(rows(), cols(), matrix.data(), nullptr)->spectral(effort);
}

// As [norms-9], with merged taps.
SpectralUpper PaddedMap::gram_spectral(const NormEffort& effort) const {
  const bool input = cols() <= rows();  // the shorter side
  const Index n = std::min(rows(), cols()), lines = std::max(rows(), cols());
  const Index channels = input ? shape().in_channels : shape().out_channels;
  const Index others = input ? shape().out_channels : shape().in_channels;
  const Index taps = taps_.count(), width = taps * channels;
  const double order = static_cast<double>(n), met = static_cast<double>(taps_.most(input));
  const double fill =
      static_cast<double>(lines / others) * met * met * static_cast<double>(channels * channels);
  if (n > effort.max_dense || std::max(order * order * order / 3, fill) > effort.max_work) {
    return {};
  }
  if (width > kMaxProducts / width) return dense_spectral(effort);
  // products = B'B with B[other][tap, channel].
  std::vector<double> b = vector_of(others * width), products = vector_of(width * width);
  for (Index other = 0; other < others; ++other) {
    for (Index c = 0; c < channels; ++c) {
      const Index from = (input ? other * channels + c : c * others + other) * taps;
      for (Index t = 0; t < taps; ++t) b[other * width + t * channels + c] = merged_[from + t];
    }
  }
  gemm(width, width, others, 1.0, {b.data(), width, true}, {b.data(), width}, 0.0, products.data(),
       width);
  Gram gram(n);
  double* g = gram.data();
  std::fill_n(g, n * n, 0.0);
  struct Met {
    Index at, tap;
  };
  std::vector<Met> all;
  for (Index line = 0; line < lines / others; ++line) {
    all.clear();
    taps_.for_each(input, line, [&](Index at, Index tap) { all.push_back({at, tap}); });
    for (const Met& i : all) {
      for (const Met& j : all) {
        if (i.at > j.at) continue;
        for (Index c = 0; c < channels; ++c) {
          double* to = g + (i.at * channels + c) * n + j.at * channels;
          const double* from = products.data() + (i.tap * channels + c) * width + j.tap * channels;
          for (Index k = 0; k < channels; ++k) to[k] += from[k];
        }
      }
    }
  }
  gram.finish(others + taps_.most(!input) + 2);
  SpectralUpper result = top_of_gram(gram, effort.steps);
  if (result.vector.empty()) return result;
  std::vector<double> vector = turned(n / channels, channels, result.vector.data());
  if (!input) {
    result.vector.resize(static_cast<std::size_t>(cols()));
    apply(true, vector.data(), result.vector.data());
  } else {
    result.vector = std::move(vector);
  }
  return result;
}

// Padding times convolution [norms-14].
double PaddedMap::padded_spectral_up(const NormEffort& effort) const {
  NormEffort upper_only = effort;
  upper_only.want_lower = false;
  const ConvShape valid = valid_shape(shape());
  const double inner = conv_map(valid, weights_, radius_)->spectral(upper_only).upper;
  return gain_mul_up(sqrt_up(taps_.copies()), inner);
}

// Patches times kernel [norms-14].
double PaddedMap::patches_spectral_up(const NormEffort& effort) const {
  const auto kernel = dense_map(shape().out_channels, shape().in_channels * shape().kernel_size(),
                                weights_, radius_);
  double norm = kernel->spectral(effort).upper;
  if (!(norm < kInf)) norm = cheap_spectral(*kernel, effort).upper;
  return gain_mul_up(sqrt_up(taps_.sightings()), norm);
}

bool PaddedMap::covers_torus() const {
  bool covers = map_.mode == PaddingMode::kCircular;
  for (std::size_t a = 0; a < 3; ++a) {
    covers = covers && shape().output[a] % starting_places(shape(), a) == 0;
  }
  return covers;
}

TorusBound PaddedMap::torus_bound(const NormEffort& effort) const {
  if (map_.mode != PaddingMode::kCircular) return {};
  const CircularView view = circular_view(shape(), taps_, merged_);
  TorusBound bound = torus_spectral(view.torus, view.weights.data(), effort);
  if (!(bound.upper < kInf)) return {};
  const double copies = static_cast<double>(view.copies), spread = radius_spectral_up();
  bound.upper = add_up(mul_up(bound.upper, sqrt_up(copies)), spread);
  bound.lower = std::max(sub_down(mul_down(bound.lower, sqrt_down(copies)), spread), 0.0);
  bound.vector = image_of(view, bound.vector, shape().input);
  return bound;
}

SpectralUpper PaddedMap::spectral(const NormEffort& effort) const {
  NormWays ways(effort);
  std::vector<double> wave;
  const auto consider_torus = [&] {
    ways.consider("Fourier blocks of the torus [norms-12]", [&](const NormEffort& e) {
      TorusBound torus = torus_bound(e);
      wave = torus.vector;
      return SpectralUpper{torus.upper, {}, std::move(torus.vector)};
    });
  };
  const bool covers = covers_torus();
  if (covers) consider_torus();
  if (!ways.found()) {
    ways.consider("Gram matrix of a convolution [norms-14]", [&](const NormEffort& e) {
      SpectralUpper gram = gram_spectral(e);
      if (gram.upper < kInf) gram.upper = add_up(gram.upper, radius_spectral_up());
      return gram;
    });
  }
  if (ways.found()) return ways.take();
  ways.consider("padding times convolution [norms-14]",
                [&](const NormEffort& e) { return padded_spectral_up(e); });
  ways.consider("patches and reshaped kernel [norms-14]",
                [&](const NormEffort& e) { return patches_spectral_up(e); });
  ways.consider("sizes of the entries [norms-4]",
                [&](const NormEffort& e) { return cheap_spectral(*this, e); });
  if (!covers) consider_torus();
  SpectralUpper best = ways.take();
  best.vector = std::move(wave);
  if (!effort.want_lower) return best;
  std::vector<double> image = vector_of(rows());
  const auto multiply = [&](const double* x, double* y) {
    apply(false, x, image.data());
    apply(true, image.data(), y);
  };
  const int steps = static_cast<int>(std::clamp<Index>((Index{1} << 24) / cols(), 4, 30));
  best.vector = lanczos(cols(), multiply, std::move(best.vector), 5e-4, steps).vector;
  return best;
}

}  // namespace lipscope
