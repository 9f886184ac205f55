// SPDX-License-Identifier: Apache-2.0
#include "pieces/interval_jacobian.h"

#include <algorithm>
#include <cmath>

#include "linalg/norm/operator_norm.h"
#include "linalg/tensor/blas.h"
#include "net/small.h"

namespace lipscope {
namespace {

Interval entry_of(const JacobianBox& box, std::size_t e) {
  return {sub_down(box.middle[e], box.radius[e]), add_up(box.middle[e], box.radius[e])};
}

void set_entry(JacobianBox& box, std::size_t e, const Interval& x) {
  box.middle[e] = is_nan(x) || !is_bounded(x) ? 0 : midpoint(x);
  box.radius[e] = is_nan(x) || !is_bounded(x) ? kInf : radius_up(x);
}

// The product with the weights of a layer, from the right.
JacobianBox times_weights(const JacobianBox& left, const DenseLayer& layer) {
  const Index rows = left.rows, from = layer.out, to = layer.in;
  JacobianBox result{rows, to, std::vector<double>(to_size(rows * to)),
                     std::vector<double>(to_size(rows * to))};
  std::vector<double> size(layer.weights.size()), largest(left.middle.size());
  for (std::size_t e = 0; e < size.size(); ++e) size[e] = std::fabs(layer.weights[e]);
  for (std::size_t e = 0; e < largest.size(); ++e)
    largest[e] = add_up(std::fabs(left.middle[e]), left.radius[e]);
  std::vector<double> reach(result.middle.size()), uncertainty(result.middle.size());
  gemm(rows, to, from, 1.0, {left.middle.data(), from}, {layer.weights.data(), to}, 0.0,
       result.middle.data(), to);
  gemm(rows, to, from, 1.0, {left.radius.data(), from}, {size.data(), to}, 0.0,
       result.radius.data(), to);
  gemm(rows, to, from, 1.0, {largest.data(), from}, {size.data(), to}, 0.0, reach.data(), to);
  if (!layer.radius.empty())
    gemm(rows, to, from, 1.0, {largest.data(), from}, {layer.radius.data(), to}, 0.0,
         uncertainty.data(), to);
  // Sums of terms of one sign lose at most this share, the others as much of their sizes.
  const double g = gamma_up(to_size(from + 4));
  for (std::size_t e = 0; e < reach.size(); ++e) {
    const double spread = add_up(result.radius[e], uncertainty[e]);
    const double most = add_up(reach[e], spread);
    const double error = add_up(mul_up(mul_up(2, g), most), underflow_up(most));
    result.radius[e] = add_up(spread, error);
    if (!std::isfinite(result.middle[e]) || std::isnan(result.radius[e])) {
      result.middle[e] = 0;
      result.radius[e] = kInf;
    }
  }
  return result;
}

}  // namespace

JacobianBox interval_jacobian(const LayeredNet& net, const Slopes& slopes) {
  const DenseLayer& last = net.layers.back();
  JacobianBox box{last.out, last.in, last.weights, last.radius};
  if (box.radius.empty()) box.radius.assign(box.middle.size(), 0);
  for (std::size_t k = net.hidden(); k-- > 0;) {
    for (std::size_t e = 0; e < box.middle.size(); ++e) {
      const Interval d = slopes[k][e % to_size(box.cols)];
      if (d.lo == d.hi && (d.lo == 0 || d.lo == 1)) {  // exact
        box.middle[e] *= d.lo;
        box.radius[e] = d.lo == 0 ? 0 : box.radius[e];
        continue;
      }
      set_entry(box, e, d * entry_of(box, e));
    }
    box = times_weights(box, net.layers[k]);
  }
  return box;
}

void intersect_with(JacobianBox& box, const std::vector<Interval>& entries) {
  for (std::size_t e = 0; e < entries.size(); ++e) {
    const Interval both = intersect(entry_of(box, e), entries[e]);
    if (!is_nan(both)) set_entry(box, e, both);
  }
}

double norm_up(const JacobianBox& box, const NormPair& norms) {
  const NormEffort effort{.want_lower = false};
  std::vector<double> largest(box.middle.size());
  bool exact = true;
  for (std::size_t e = 0; e < largest.size(); ++e) {
    largest[e] = add_up(std::fabs(box.middle[e]), box.radius[e]);
    exact = exact && box.radius[e] == 0;
  }
  const double together =
      matrix_norm({box.rows, box.cols, box.middle.data(), exact ? nullptr : box.radius.data()},
                  norms, effort)
          .upper;
  return exact ? together
               : std::min(together,
                          matrix_norm({box.rows, box.cols, largest.data()}, norms, effort).upper);
}

}  // namespace lipscope
