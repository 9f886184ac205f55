// SPDX-License-Identifier: Apache-2.0
#include "pieces/local_bounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "base/rounding.h"
#include "net/small.h"
#include "pieces/gram_bound.h"
#include "pieces/interval_jacobian.h"
#include "pieces/joint_units.h"
#include "pieces/norm_decomposition.h"
#include "pieces/row_bound.h"

namespace lipscope {
namespace {

using Stop = std::function<bool()>;

std::string any_norms(const NormPair&, Index, Index) { return {}; }

double weights_of(const LayeredNet& net) { return static_cast<double>(net.size()); }

double fast_lip_up(const LayeredNet& net, const Slopes& slopes, const NormPair& norms,
                   const Stop&) {
  return norm_up(interval_jacobian(net, slopes), norms);
}

double fast_lip_cost(const LayeredNet& net, const NormPair&) {
  return 4 * static_cast<double>(net.outputs()) * weights_of(net);
}

// The box of all entries, one output after another; nothing when stopped.
std::optional<JacobianBox> box_by_rows(const LayeredNet& net, const Slopes& slopes,
                                       MixedProduct mixed, const Stop& stop) {
  JacobianBox box = interval_jacobian(net, slopes);
  if (net.hidden() == 0) return box;
  RowBound rows(net, GradientNorm::kMax, mixed);
  std::vector<Interval> all;
  for (Index r = 0; r < net.outputs(); ++r) {
    if (stop && stop()) return std::nullopt;
    const std::vector<Interval> entries = rows.entries(slopes, r);
    all.insert(all.end(), entries.begin(), entries.end());
  }
  intersect_with(box, all);
  return box;
}

double recur_jac_up(const LayeredNet& net, const Slopes& slopes, const NormPair& norms,
                    const Stop& stop) {
  const auto box = box_by_rows(net, slopes, MixedProduct::kConstant, stop);
  return box ? std::min(norm_up(*box, norms), fast_lip_up(net, slopes, norms, {})) : kInf;
}

// Of the values between layers, from the input to the output or back.
std::vector<double> widths_of(const LayeredNet& net, bool reversed) {
  std::vector<double> widths{static_cast<double>(net.inputs())};
  for (const DenseLayer& layer : net.layers) widths.push_back(static_cast<double>(layer.out));
  if (reversed) std::ranges::reverse(widths);
  return widths;
}

// Of linear bounds of all values of the backward pass, for `rows` outputs.
double by_rows_cost(const std::vector<double>& widths, double rows) {
  double cost = 0, behind = 0;
  for (std::size_t k = widths.size() - 1; k-- > 0;) {
    cost += 2 * widths[k] * behind;
    behind += widths[k] * widths[k + 1];
  }
  return cost * rows;
}

double recur_jac_cost(const LayeredNet& net, const NormPair& norms) {
  return fast_lip_cost(net, norms) +
         by_rows_cost(widths_of(net, false), static_cast<double>(net.outputs()));
}

// Whether the norm is the largest sum of absolute entries of a row or column.
std::optional<NormDecomposition> sums_of(const LayeredNet& net, const NormPair& norms) {
  const auto parts = decomposition_of(norms, net.inputs(), net.outputs());
  return parts && parts->norm == 1 ? parts : std::nullopt;
}

double linear_jacobian_up(const LayeredNet& net, const Slopes& slopes, const NormPair& norms,
                          const Stop& stop) {
  const double plain = fast_lip_up(net, slopes, norms, {});
  const auto sums = sums_of(net, norms);
  if (!sums) {
    const auto box = box_by_rows(net, slopes, MixedProduct::kChord, stop);
    return box ? std::min(norm_up(*box, norms), plain) : kInf;
  }
  const ComponentNet by_part(net, *sums);
  const Slopes along = by_part.slopes(slopes);
  RowBound rows(by_part.get(), GradientNorm::kOne);
  double largest = 0;
  for (Index r = 0; r < sums->count; ++r) {
    if (stop && stop()) return kInf;
    std::vector<float> signs;
    largest = max_nan(largest, rows.upper_bound(along, r, signs));
  }
  return std::isnan(largest) ? plain : std::min(largest, plain);
}

double linear_jacobian_cost(const LayeredNet& net, const NormPair& norms) {
  const auto sums = sums_of(net, norms);
  if (!sums) return recur_jac_cost(net, norms);
  return fast_lip_cost(net, norms) +
         by_rows_cost(widths_of(net, sums->transposed), static_cast<double>(sums->count));
}

std::string no_lengths(const NormPair& norms, Index inputs, Index outputs) {
  const auto parts = decomposition_of(norms, inputs, outputs);
  return parts && parts->norm == 2 ? "" : "it is about lengths of rows or columns, or l2 to l2";
}

double gram_l2_up(const LayeredNet& net, const Slopes& slopes, const NormPair& norms,
                  const Stop& stop) {
  if (net.hidden() == 0) return fast_lip_up(net, slopes, norms, {});
  const NormDecomposition parts = *decomposition_of(norms, net.inputs(), net.outputs());
  const ComponentNet by_part(net, parts);
  const Slopes along = by_part.slopes(slopes);
  GramBound bound(by_part.get());
  if (parts.whole) return bound.whole_up(along);
  double largest = 0;
  for (Index r = 0; r < parts.count; ++r) {
    if (stop && stop()) return kInf;
    largest = max_nan(largest, bound.row_up(along, r));
  }
  return std::isnan(largest) ? kInf : largest;
}

double gram_l2_cost(const LayeredNet& net, const NormPair& norms) {
  const NormDecomposition parts = *decomposition_of(norms, net.inputs(), net.outputs());
  const std::vector<double> widths = widths_of(net, parts.transposed);
  const double rows = static_cast<double>(parts.whole ? net.outputs() : parts.count);
  const double square = widths[1] * widths[1];
  return by_rows_cost(widths, rows) + rows * (500 + widths[1]) * square + square * widths[0] +
         (parts.whole ? rows * rows * square : 0);
}

constexpr LocalBound kBounds[] = {
    {"fast-lip", any_norms, fast_lip_up, fast_lip_cost},
    {"recur-jac", any_norms, recur_jac_up, recur_jac_cost},
    {"linear-jacobian", any_norms, linear_jacobian_up, linear_jacobian_cost},
    {"gram-l2", no_lengths, gram_l2_up, gram_l2_cost},
};

}  // namespace

const LocalBound* find_local_bound(std::string_view name) {
  const auto* found = std::ranges::find(kBounds, name, &LocalBound::name);
  return found == std::end(kBounds) ? nullptr : found;
}

double local_bound_up(const LocalBound& bound, const LayeredNet& net, BoundedRegion& region,
                      const NormPair& norms, const std::function<bool()>& stop) {
  Slopes slopes = region.confirm({}, {}).slopes;
  const double whole = bound.upper(net, slopes, norms, stop);
  if (net.hidden() == 0) return whole;
  const auto gain = joint_gain_up(net, region.ranges().back(), norms.out);
  const NormPair largest{norms.in, Norm(kInf)};
  if (!gain || !bound.unsupported(largest, net.inputs(), net.layers.back().in).empty())
    return whole;
  slopes.pop_back();
  return min_nan(whole,
                 gain_mul_up(*gain, bound.upper(before_last_units(net), slopes, largest, stop)));
}

double forward_cost(const LayeredNet& net) {
  double cost = 0, before = 0;
  for (std::size_t k = 0; k < net.hidden(); ++k) {
    cost += 2 * static_cast<double>(net.layers[k].out) * before;
    before += static_cast<double>(net.layers[k].out) * static_cast<double>(net.layers[k].in);
  }
  return cost;
}

}  // namespace lipscope
