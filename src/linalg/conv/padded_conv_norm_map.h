// SPDX-License-Identifier: Apache-2.0
// Which cells of the image the windows of a padded convolution see, and the NormMap made of it.
// Internal to linalg.
#pragma once

#include <array>
#include <vector>

#include "linalg/conv/padded_conv_norm.h"
#include "linalg/conv/padded_conv_norm_torus.h"
#include "linalg/norm/norm_map.h"

namespace lipscope {

// Per axis, the taps through which one window sees one cell are a set; a merged tap is such a set,
// on all axes the product of three. Its weight is the sum of the weights in it.
class MergedTaps {
 public:
  explicit MergedTaps(const PaddedConv& map);
  [[nodiscard]] Index count() const { return sets(0) * sets(1) * sets(2); }
  // Most merged taps that meet one output (or input) position.
  [[nodiscard]] Index most(bool from_output) const;
  // Most cells of the padded image, seen by some window, that hold one cell of the image; and most
  // pairs of window and tap that see one cell.
  [[nodiscard]] double copies() const;
  [[nodiscard]] double sightings() const;
  // The sets of one axis.
  [[nodiscard]] const std::vector<std::vector<Index>>& axis(std::size_t a) const {
    return axes_[a].sets;
  }

  // body(other position, merged tap), all flattened.
  template <class Body>
  void for_each(bool from_output, Index at, Body&& body) const {
    const Spatial& own = from_output ? output_ : input_;
    const Spatial& other = from_output ? input_ : output_;
    const Index a2 = at % own[2], a1 = at / own[2] % own[1], a0 = at / own[2] / own[1];
    for (const Pair& p0 : axes_[0].met[from_output][a0]) {
      for (const Pair& p1 : axes_[1].met[from_output][a1]) {
        for (const Pair& p2 : axes_[2].met[from_output][a2]) {
          body((p0.other * other[1] + p1.other) * other[2] + p2.other,
               (p0.set * sets(1) + p1.set) * sets(2) + p2.set);
        }
      }
    }
  }
  // body(output position, input position) of everything a merged tap connects.
  template <class Body>
  void for_each_place(Index tap, Body&& body) const {
    for (const Place& p0 : axes_[0].places[tap / sets(2) / sets(1)]) {
      for (const Place& p1 : axes_[1].places[tap / sets(2) % sets(1)]) {
        for (const Place& p2 : axes_[2].places[tap % sets(2)]) {
          body((p0.output * output_[1] + p1.output) * output_[2] + p2.output,
               (p0.input * input_[1] + p1.input) * input_[2] + p2.input);
        }
      }
    }
  }
  // body(tap of the kernel) of a merged tap.
  template <class Body>
  void for_each_member(Index tap, Body&& body) const {
    for (const Index k0 : axes_[0].sets[tap / sets(2) / sets(1)]) {
      for (const Index k1 : axes_[1].sets[tap / sets(2) % sets(1)]) {
        for (const Index k2 : axes_[2].sets[tap % sets(2)]) {
          body((k0 * kernel_[1] + k1) * kernel_[2] + k2);
        }
      }
    }
  }

 private:
  using Spatial = ConvShape::Spatial;
  struct Pair {
    Index other, set;
  };
  struct Place {
    Index output, input;
  };
  struct Axis {
    std::vector<std::vector<Index>> sets;
    std::array<std::vector<std::vector<Pair>>, 2> met;  // by input, by output position
    std::vector<std::vector<Place>> places;             // by set
    Index copies = 0, sightings = 0;
  };
  static Axis make_axis(const PaddedConv& map, std::size_t a);
  [[nodiscard]] Index sets(std::size_t a) const { return static_cast<Index>(axes_[a].sets.size()); }

  Spatial input_, output_, kernel_;
  std::array<Axis, 3> axes_;
};

// One group.
class PaddedMap final : public NormMap {
 public:
  // Weights and radii (or null) stay the caller's.
  PaddedMap(const PaddedConv& map, const double* weights, const double* radius);

  std::vector<double> norms(Lines lines, Toward toward, double p) const override;
  void apply(bool adjoint, const double* x, double* y) const override {
    product(adjoint, merged_, x, y);
  }
  void magnitude_up(bool adjoint, const double* x, double* y) const override;
  void image_down(const double* x, double* y) const override;
  SpectralUpper spectral(const NormEffort& effort) const override;

  [[nodiscard]] bool zero() const;
  // Circular, and every cell of the torus carries an output equally often.
  [[nodiscard]] bool covers_torus() const;
  // Spectral norm if covers_torus(); otherwise only the upper bound means something.
  [[nodiscard]] TorusBound torus_bound(const NormEffort& effort) const;

 private:
  PaddedMap(const PaddedMap& other, const std::vector<double>& merged);
  [[nodiscard]] const double* radius() const { return spread_.empty() ? nullptr : spread_.data(); }
  [[nodiscard]] Index plane() const { return shape().out_channels * shape().in_channels; }
  [[nodiscard]] const ConvShape& shape() const { return map_.conv; }
  void product(bool adjoint, const std::vector<double>& w, const double* x, double* y) const;
  [[nodiscard]] Index terms(bool adjoint) const;
  [[nodiscard]] double radius_spectral_up() const;
  [[nodiscard]] SpectralUpper gram_spectral(const NormEffort& effort) const;
  [[nodiscard]] SpectralUpper dense_spectral(const NormEffort& effort) const;
  [[nodiscard]] double padded_spectral_up(const NormEffort& effort) const;
  [[nodiscard]] double patches_spectral_up(const NormEffort& effort) const;

  PaddedConv map_;
  const double *weights_, *radius_;  // of the kernel
  MergedTaps taps_;
  std::vector<double> merged_, spread_;  // of the merged taps: centers, radii (empty: none)
};

// The convolution that remains when the padded image is given, no padding.
[[nodiscard]] ConvShape valid_shape(const ConvShape& shape);

}  // namespace lipscope
