// SPDX-License-Identifier: Apache-2.0
#include "pieces/scaled_net.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "net/small.h"

namespace lipscope {
namespace {

bool usable_factors(const std::vector<double>& factors, Index count) {
  return std::ssize(factors) == count &&
         std::ranges::all_of(factors, [](double f) { return f > 0x1p-400 && f < 0x1p400; });
}

void multiply_entries(DenseLayer& layer, const std::vector<double>& factors, bool rows) {
  std::vector<double> radius(layer.weights.size(), 0);
  for (Index i = 0; i < layer.out; ++i) {
    for (Index j = 0; j < layer.in; ++j) {
      const std::size_t e = to_size(i * layer.in + j);
      const double w = layer.weights[e], f = factors[to_size(rows ? i : j)];
      layer.weights[e] = w * f;
      radius[e] =
          max_nan(sub_up(mul_up(w, f), layer.weights[e]), sub_up(layer.weights[e], mul_down(w, f)));
      if (!layer.radius.empty()) radius[e] = add_up(radius[e], mul_up(layer.radius[e], f));
    }
  }
  const bool exact = std::ranges::all_of(radius, [](double r) { return r == 0; });
  layer.radius = exact ? std::vector<double>{} : std::move(radius);
}

double inverse_size(const std::vector<double>& factors) {
  std::vector<double> inverse;
  for (const double f : factors) inverse.push_back(div_up(1, f));
  return norm2_up(inverse);
}

}  // namespace

std::optional<ScaledNet> scaled_row(const LayeredNet& net, Index row,
                                    const std::vector<double>& factors) {
  if (!usable_factors(factors, net.inputs())) return std::nullopt;
  ScaledNet made{net, inverse_size(factors)};
  const DenseLayer& all = net.layers.back();
  DenseLayer& last = made.net.layers.back();
  last.weights.assign(all.row(row), all.row(row) + all.in);
  if (!last.radius.empty()) last.radius.assign(all.radius_row(row), all.radius_row(row) + all.in);
  last.bias.assign(1, point(0));
  last.out = 1;
  multiply_entries(made.net.layers.front(), factors, false);
  return made;
}

std::optional<ScaledNet> scaled_whole(const LayeredNet& net, bool inputs, bool outputs,
                                      const std::vector<double>& factors) {
  if (!usable_factors(factors, (inputs ? net.inputs() : 0) + (outputs ? net.outputs() : 0)))
    return std::nullopt;
  ScaledNet made{net};
  const auto middle = factors.begin() + (inputs ? net.inputs() : 0);
  if (inputs) {
    const std::vector<double> own(factors.begin(), middle);
    multiply_entries(made.net.layers.front(), own, false);
    made.size = inverse_size(own);
  }
  if (outputs) {
    const std::vector<double> own(middle, factors.end());
    multiply_entries(made.net.layers.back(), own, true);
    made.size = mul_up(made.size, inverse_size(own));
  }
  return made;
}

}  // namespace lipscope
