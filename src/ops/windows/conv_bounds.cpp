// SPDX-License-Identifier: Apache-2.0
// Ranges and gains of Conv and ConvTranspose.
#include <algorithm>

#include "linalg/conv/conv_places.h"
#include "ops/box.h"
#include "ops/linear/bilinear_range.h"
#include "ops/linear/linear_gain.h"
#include "ops/windows/conv.h"

namespace lipscope {
namespace {

struct BoxMiddle {
  std::vector<double> middle, radius;
  bool exact = true, bounded = true;

  explicit BoxMiddle(const Box& box) {
    for (Index i = 0; i < box.lower.size(); ++i) {
      const Interval x = entry(box, i);
      middle.push_back(midpoint(x));
      radius.push_back(radius_up(x));
      exact = exact && radius.back() == 0;
      bounded = bounded && is_bounded(x);
    }
  }
  [[nodiscard]] const double* radii() const { return exact ? nullptr : radius.data(); }
};

Index out_channels(const ConvForm& form) {
  return form.transposed ? form.shape.in_channels : form.shape.out_channels;
}
Index positions(const ConvForm& form) {
  return form.transposed ? form.shape.input_size() : form.shape.output_size();
}

double image_gain_up(const ConvForm& form, const Box& weights, const GainQuery& query) {
  const NormPair& norms = query.norms;
  const BoxMiddle w(weights);
  if (!w.bounded) return kInf;
  const NormPair pair = form.transposed ? adjoint_norms(norms) : norms;
  const double one =
      conv_norm(form.shape, w.middle.data(), w.radii(), pair, gain_effort(query)).upper;
  return repeated_norm_up(one, form.shape.batch, norms);
}

// Each filter multiplies the patches of its group: the blocks are the patch matrices [linear-6].
std::optional<double> weights_gain_up(const ConvForm& form, const Box& image,
                                      const GainQuery& query) {
  const NormPair& norms = query.norms;
  constexpr Index kMostEntries = Index{1} << 22;
  const ConvShape& s = form.shape;
  if (s.x_size() == 0 || s.y_size() == 0 || s.w_size() == 0) return 0;
  const BoxMiddle x(image);
  if (!x.bounded) return kInf;
  ConvShape unit = s;
  unit.groups = 1;
  unit.in_channels = s.in_channels / s.groups;
  const Index cols = unit.out_channels = unit.in_channels * s.kernel_size();
  const Index rows = s.batch * s.output_size();
  if (form.transposed || rows * cols > kMostEntries || cols > 4096) return std::nullopt;
  std::vector<double> identity(static_cast<std::size_t>(cols * cols), 0);
  for (Index i = 0; i < cols; ++i) identity[static_cast<std::size_t>(i * (cols + 1))] = 1;

  const Index from = unit.in_channels * s.input_size();
  std::vector<double> sizes;
  for (Index g = 0; g < s.groups; ++g) {
    // A convolution with unit kernels lists the patches; sums of one entry and zeros are exact.
    const auto patches = [&](const std::vector<double>& values) {
      std::vector<double> group, listed(static_cast<std::size_t>(rows * cols));
      for (Index b = 0; b < s.batch; ++b) {
        const auto begin = values.begin() + (b * s.groups + g) * from;
        group.insert(group.end(), begin, begin + from);
      }
      conv_forward(unit, group.data(), identity.data(), nullptr, listed.data());
      // [batch, cols, positions] to rows of positions.
      std::vector<double> matrix(listed.size());
      const Index count = s.output_size();
      for (Index b = 0; b < s.batch; ++b) {
        for (Index c = 0; c < cols; ++c) {
          for (Index i = 0; i < count; ++i) {
            matrix[static_cast<std::size_t>((b * count + i) * cols + c)] =
                listed[static_cast<std::size_t>((b * cols + c) * count + i)];
          }
        }
      }
      return matrix;
    };
    const std::vector<double> middle = patches(x.middle);
    const std::vector<double> radius = x.exact ? std::vector<double>() : patches(x.radius);
    sizes.push_back(matrix_norm({rows, cols, middle.data(), x.exact ? nullptr : radius.data()},
                                norms, gain_effort(query))
                        .upper);
  }
  return repeated_norm_up(diagonal_norm_up(sizes, norms), s.out_channels / s.groups, norms);
}

}  // namespace

std::optional<std::vector<Box>> conv_range(const ConvForm& form, const Shape& out,
                                           std::span<const Box> in) {
  if (!std::all_of(in.begin(), in.end(), holds_doubles)) return std::nullopt;
  const ConvShape& s = form.shape;
  const auto apply = [&](const double* x, const double* w, double* y) {
    if (form.transposed) {
      conv_adjoint_input(s, x, w, y);
    } else {
      conv_forward(s, x, w, nullptr, y);
    }
  };
  const Index channels = form.transposed ? s.out_channels : s.in_channels;
  const Index terms = channels / s.groups * s.kernel_size();
  Bounds y = bilinear_range({apply, form.transposed ? s.x_size() : s.y_size(), terms},
                            BoundsView(in[0]), BoundsView(in[1]));
  const Index count = positions(form);
  if (form.has_bias) {
    for (std::size_t i = 0; i < y.lower.size(); ++i) {
      const Interval bias = entry(in[2], static_cast<Index>(i) / count % out_channels(form));
      y.lower[i] = add_down(y.lower[i], bias.lo);
      y.upper[i] = add_up(y.upper[i], bias.hi);
    }
  }
  return {{make_box(out, std::move(y.lower), std::move(y.upper))}};
}

bool conv_matrix(const ConvForm& form, const MatrixQuery& query, const EntryVisitor& visit) {
  const ConvShape& s = form.shape;
  const Box& weights = query.in[1];
  if (query.wrt != 0 || !holds_doubles(weights)) return false;
  const Index outputs = s.out_channels * s.output_size(), inputs = s.in_channels * s.input_size();
  for (Index b = 0; b < s.batch; ++b) {
    for_each_conv_place(s, [&](Index output, Index input, Index weight) {
      const Interval w = entry(weights, weight);
      const Index o = b * outputs + output, i = b * inputs + input;
      visit(form.transposed ? i : o, form.transposed ? o : i, w.lo, w.hi);
    });
  }
  return true;
}

std::optional<Gain> conv_gain(const ConvForm& form, const GainQuery& query) {
  if (!std::all_of(query.in.begin(), query.in.end(), holds_doubles)) return std::nullopt;
  Gain gain{0, "linear-6"};
  if (is_point(query.in[static_cast<std::size_t>(query.wrt)])) return gain;
  if (query.wrt == 2) {
    const double block = copied_norm_up(form.shape.batch * positions(form), query.norms.out);
    gain.value = repeated_norm_up(block, out_channels(form), query.norms);
  } else if (query.wrt == 0) {
    gain.value = image_gain_up(form, query.in[1], query);
  } else {
    const auto value = weights_gain_up(form, query.in[0], query);
    if (!value) return std::nullopt;
    gain.value = *value;
  }
  return gain;
}

}  // namespace lipscope
