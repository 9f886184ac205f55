// SPDX-License-Identifier: Apache-2.0
// One group of a zero-padded convolution as a NormMap. Rows and columns fall into few classes: the
// taps of a position are the product of the taps each axis sees [norms-9].
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/checkpoint.h"
#include "base/rounding.h"
#include "linalg/conv/conv_taps.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/norm_ways.h"

namespace lipscope {
namespace {

class ConvMap final : public NormMap {
 public:
  ConvMap(const ConvShape& shape, const double* weights, const double* radius)
      : NormMap(shape.y_size(), shape.x_size()),
        shape_(shape),
        weights_(weights),
        radius_(radius),
        sizes_(static_cast<std::size_t>(shape.w_size())) {
    line_magnitudes(Toward::kUp, shape.w_size(), weights, radius, sizes_.data());
  }

  std::vector<double> norms(Lines lines, Toward toward, double p) const override;
  double largest_norm(Lines lines, Toward toward, double p) const override {
    const TapLists lists(shape_, lines == Lines::kRows);
    return largest(norms_of(lists, lists.classes(), lines, toward, p));
  }
  void apply(bool adjoint, const double* x, double* y) const override {
    product(adjoint, weights_, x, y);
  }
  void magnitude_up(bool adjoint, const double* x, double* y) const override {
    product(adjoint, sizes_.data(), x, y);
    inflate_sums(y, adjoint ? cols() : rows(), terms(adjoint));
  }
  void image_down(const double* x, double* y) const override;
  SpectralUpper spectral(const NormEffort& effort) const override;

 private:
  [[nodiscard]] std::vector<double> norms_of(const TapLists& lists,
                                             const TapLists::Classes& classes, Lines lines,
                                             Toward toward, double p) const;
  void product(bool adjoint, const double* w, const double* x, double* y) const {
    adjoint ? conv_adjoint_input(shape_, x, w, y) : conv_forward(shape_, x, w, nullptr, y);
  }
  // Roundings one term of an output entry can meet, besides its product.
  Index terms(bool adjoint) const {
    return (adjoint ? shape_.out_channels : shape_.in_channels) * shape_.kernel_size() +
           shape_.kernel_size() + 2;
  }

  ConvShape shape_;
  const double *weights_, *radius_;
  std::vector<double> sizes_;  // |w| + radius, up
};

// By channel, then by class of positions.
std::vector<double> ConvMap::norms_of(const TapLists& lists, const TapLists::Classes& classes,
                                      Lines lines, Toward toward, double p) const {
  const bool by_row = lines == Lines::kRows;
  const Index channels = by_row ? shape_.out_channels : shape_.in_channels;
  const Index others = by_row ? shape_.in_channels : shape_.out_channels;
  const Index taps = shape_.kernel_size(), kinds = classes.count();
  std::vector<double> size(sizes_.size());
  line_magnitudes(toward, shape_.w_size(), weights_, radius_, size.data());
  std::vector<double> found(static_cast<std::size_t>(channels * kinds)), line;
  for (Index kind = 0; kind < kinds; ++kind) {
    std::vector<Index> seen;
    lists.for_each(lists.example(classes, kind), [&](Index, Index tap) { seen.push_back(tap); });
    for (Index c = 0; c < channels; ++c) {
      charge(static_cast<double>(others * std::ssize(seen)));
      line.clear();
      for (Index o = 0; o < others; ++o) {
        const Index from = ((by_row ? c : o) * shape_.in_channels + (by_row ? o : c)) * taps;
        for (const Index tap : seen) line.push_back(size[from + tap]);
      }
      found[c * kinds + kind] = line_norm(toward, line, p);
    }
  }
  return found;
}

std::vector<double> ConvMap::norms(Lines lines, Toward toward, double p) const {
  const TapLists lists(shape_, lines == Lines::kRows);
  const TapLists::Classes classes = lists.classes();
  const std::vector<double> found = norms_of(lists, classes, lines, toward, p);
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(lines == Lines::kRows ? rows() : cols()));
  for (auto channel = found.begin(); channel != found.end(); channel += classes.count()) {
    charge(static_cast<double>(lists.positions()));
    lists.for_each_class(classes, [&](Index kind) { out.push_back(channel[kind]); });
  }
  return out;
}

void ConvMap::image_down(const double* x, double* y) const {
  std::vector<double> size(static_cast<std::size_t>(cols()));
  for (Index i = 0; i < cols(); ++i) size[i] = std::fabs(x[i]);
  std::vector<double> weight(sizes_.size()), bound(static_cast<std::size_t>(rows()));
  std::vector<double> spread(static_cast<std::size_t>(rows()));
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = std::fabs(weights_[i]);
  product(false, weights_, x, y);
  product(false, weight.data(), size.data(), bound.data());
  inflate_sums(bound.data(), rows(), terms(false));
  if (radius_ != nullptr) {
    product(false, radius_, size.data(), spread.data());
    inflate_sums(spread.data(), rows(), terms(false));
  }
  deflate_sums(y, rows(), terms(false), bound.data(), spread.data());
}

SpectralUpper ConvMap::spectral(const NormEffort& effort) const {
  const auto with_radius = [&](SpectralUpper bound) {
    if (radius_ != nullptr && bound.upper < kInf)
      bound.upper = add_up(bound.upper, cheap_spectral(ConvMap(shape_, radius_, nullptr)).upper);
    return bound;
  };
  NormWays ways(effort);
  ways.consider("Gram matrix of a convolution [norms-9]", [&](const NormEffort& e) {
    return with_radius(conv_gram_spectral(shape_, weights_, e));
  });
  const bool exact = ways.found();
  std::vector<double> wave;
  if (!exact) {
    ways.consider("Fourier symbol on a larger grid [norms-10]", [&](const NormEffort& e) {
      SpectralUpper fourier = fourier_spectral(shape_, weights_, e);
      wave = std::move(fourier.vector);
      return with_radius(std::move(fourier));
    });
    ways.consider("patches and reshaped kernel [norms-11]", [&](const NormEffort& e) {
      return with_radius(kernel_spectral(shape_, weights_, e));
    });
  }
  SpectralUpper result = ways.take();
  if (result.vector.empty()) result.vector = std::move(wave);
  if (exact || !effort.want_lower) return result;
  // The Fourier bound is some 1e-3 wide: no need for more digits below.
  std::vector<double> image(static_cast<std::size_t>(rows()));
  const auto multiply = [&](const double* x, double* y) {
    apply(false, x, image.data());
    apply(true, image.data(), y);
  };
  const Index memory = Index{1} << 24;
  const int steps = static_cast<int>(std::clamp<Index>(memory / std::max<Index>(cols(), 1), 4, 30));
  result.vector = lanczos(cols(), multiply, std::move(result.vector), 5e-4, steps).vector;
  return result;
}

}  // namespace

std::unique_ptr<NormMap> conv_map(const ConvShape& shape, const double* weights,
                                  const double* radius) {
  return std::make_unique<ConvMap>(shape, weights, radius);
}

}  // namespace lipscope
