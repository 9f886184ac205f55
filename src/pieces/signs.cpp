// SPDX-License-Identifier: Apache-2.0
#include "pieces/signs.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {

Signs open_signs(const LayeredNet& net) {
  Signs signs;
  for (std::size_t k = 0; k < net.hidden(); ++k)
    signs.emplace_back(static_cast<std::size_t>(net.layers[k].out), std::int8_t{0});
  return signs;
}

std::optional<Signs> signs_of(const LayeredNet& net, const Path& path) {
  Signs signs = open_signs(net);
  for (const Side& side : path) {
    std::int8_t& sign = signs[side.unit.layer][side.unit.place];
    const std::int8_t wanted = side.above ? 1 : -1;
    if (side.at != 0) continue;
    if (sign != 0 && sign != wanted) return std::nullopt;
    sign = wanted;
  }
  return signs;
}

Signs signs_at(const LayeredNet& net, const std::vector<double>& point) {
  Signs signs;
  std::vector<double> x = point;
  for (std::size_t k = 0; k < net.hidden(); ++k) {
    const DenseLayer& layer = net.layers[k];
    std::vector<double> y(static_cast<std::size_t>(layer.out));
    signs.emplace_back(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double* w = layer.row(static_cast<Index>(i));
      double sum = 0.5 * (layer.bias[i].lo + layer.bias[i].hi);
      for (std::size_t j = 0; j < x.size(); ++j) sum += w[j] * x[j];
      signs[k][i] = sum > 0 ? 1 : -1;
      y[i] = sum * (sum > 0 ? layer.above[i] : layer.below[i]);
    }
    x = std::move(y);
  }
  return signs;
}

bool agrees(const Signs& signs, const Signs& with) {
  for (std::size_t k = 0; k < signs.size(); ++k) {
    for (std::size_t i = 0; i < signs[k].size(); ++i) {
      if (signs[k][i] != 0 && signs[k][i] != with[k][i]) return false;
    }
  }
  return true;
}

Slopes slopes_of(const LayeredNet& net, const Signs& signs) {
  Slopes slopes(signs.size());
  for (std::size_t k = 0; k < signs.size(); ++k) {
    const DenseLayer& layer = net.layers[k];
    for (std::size_t i = 0; i < signs[k].size(); ++i) {
      const int sign = signs[k][i];
      slopes[k].push_back(sign == 0  ? layer.slopes[i]
                          : sign > 0 ? point(layer.above[i])
                                     : point(layer.below[i]));
    }
  }
  return slopes;
}

double way_to_kink(const LayeredNet& net, const std::vector<double>& x,
                   const std::vector<double>& d) {
  double way = kInf;
  std::vector<double> value = x, change = d;
  for (std::size_t k = 0; k < net.hidden(); ++k) {
    const DenseLayer& layer = net.layers[k];
    std::vector<double> z(static_cast<std::size_t>(layer.out)), dz = z;
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double* w = layer.row(static_cast<Index>(i));
      z[i] = 0.5 * (layer.bias[i].lo + layer.bias[i].hi);
      for (std::size_t j = 0; j < value.size(); ++j) {
        z[i] += w[j] * value[j];
        dz[i] += w[j] * change[j];
      }
      if (dz[i] != 0 && layer.below[i] != layer.above[i])
        way = std::min(way, std::fabs(z[i] / dz[i]));
      const double slope = z[i] > 0 ? layer.above[i] : layer.below[i];
      z[i] *= slope;
      dz[i] *= slope;
    }
    value = std::move(z);
    change = std::move(dz);
  }
  return way;
}

}  // namespace lipscope
