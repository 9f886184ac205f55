// SPDX-License-Identifier: Apache-2.0
#include "pieces/preactivation_bounds.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "linalg/tensor/blas.h"
#include "net/small.h"

namespace lipscope {

PreactivationBounds::PreactivationBounds(const LayeredNet& net, const DomainSupport& domain)
    : net_(net), domain_(domain) {
  const std::size_t hidden = net.hidden();
  for (std::size_t k = 0; k < hidden; ++k) {
    const std::size_t n = to_size(net.layers[k].out);
    root_.emplace_back(n, Interval{-kInf, kInf});
    units_.emplace_back(n);
    abs_sum_bound_.emplace_back(n);
    weight_uncertainty_.emplace_back(n);
  }
  factors_.resize(hidden);
  ranges_ = root_;
  for (std::size_t k = 0; k < hidden; ++k) set_root(k);
}

// The least and largest values of the lines on the domain where the sides hold.
void PreactivationBounds::shrink_by_planes(std::size_t k, const std::vector<Row>& rows,
                                           const Planes& sides,
                                           std::vector<Interval>& ranges) const {
  const Planes found = planes(k, rows);
  const std::size_t n = domain_.inputs();
  const auto take = [&](const Row& row, double top) {
    Interval& range = ranges[row.place];
    if (row.sign > 0) {
      range.hi = std::min(range.hi, top);
    } else {
      range.lo = std::max(range.lo, -top);
    }
  };
  for (std::size_t r = 0; r < rows.size(); ++r)
    take(rows[r], add_up(found.offsets[r], domain_.max_up(&found.weights[r * n])));
  for (std::size_t r = 0; r < rows.size() && !sides.offsets.empty(); ++r) {
    if (!net_.layers[k].form(rows[r].place).is_unstable(ranges[rows[r].place])) continue;
    const std::span line(&found.weights[r * n], n);
    if (const auto multipliers = best_multipliers(domain_, line, sides); !multipliers.empty())
      take(rows[r], max_up(domain_, line, found.offsets[r], sides, multipliers));
  }
}

void PreactivationBounds::set_root(std::size_t k) {
  set_reach(k);
  std::vector<Row> rows;
  for (std::size_t i = 0; i < root_[k].size(); ++i) {
    // What passes through needs no more than bounds for rounding.
    if (net_.layers[k].below[i] == net_.layers[k].above[i]) continue;
    rows.push_back({i, 1});
    rows.push_back({i, -1});
  }
  if (!rows.empty()) shrink_by_planes(k, rows, {}, root_[k]);
  // Where the linear bounds are worse than the largest products.
  for (std::size_t i = 0; i < root_[k].size(); ++i) {
    const double most = add_up(abs_sum_bound_[k][i], weight_uncertainty_[k][i]);
    root_[k][i] = {std::max(root_[k][i].lo, -most), std::min(root_[k][i].hi, most)};
  }
  ranges_[k] = root_[k];
  set_units(k);
}

void PreactivationBounds::narrow(const std::vector<std::vector<Interval>>& known) {
  for (std::size_t k = 0; k < net_.hidden(); ++k) {
    for (std::size_t i = 0; i < root_[k].size(); ++i) {
      const Interval both = intersect(root_[k][i], known[k][i]);
      if (!is_nan(both)) root_[k][i] = both;
    }
    set_root(k);
  }
}

void PreactivationBounds::tighten(std::size_t layer, const std::vector<Interval>& ranges) {
  for (std::size_t i = 0; i < root_[layer].size(); ++i) {
    const Interval both = intersect(root_[layer][i], ranges[i]);
    if (!is_nan(both)) root_[layer][i] = both;
  }
  ranges_[layer] = root_[layer];
  set_units(layer);
  for (std::size_t k = layer + 1; k < net_.hidden(); ++k) set_root(k);
}

PreactivationBounds::PreactivationBounds(const PreactivationBounds& other,
                                         const DomainSupport& domain)
    : net_(other.net_),
      domain_(domain),
      root_(other.root_),
      ranges_(other.ranges_),
      units_(other.units_),
      abs_sum_bound_(other.abs_sum_bound_),
      weight_uncertainty_(other.weight_uncertainty_),
      factors_(other.factors_) {}

bool PreactivationBounds::bounded() const {
  return std::ranges::all_of(ranges_, [](const auto& layer) {
    return std::ranges::all_of(layer,
                               [](const Interval& r) { return is_bounded(r) && r.lo <= r.hi; });
  });
}

std::vector<double> PreactivationBounds::sizes_behind(std::size_t layer) const {
  std::vector<double> sizes;
  for (const UnitLines& unit : units_[layer]) sizes.push_back(unit.size);
  return sizes;
}

void PreactivationBounds::set_reach(std::size_t k) {
  const DenseLayer& layer = net_.layers[k];
  const std::vector<double> size = k == 0 ? domain_.size() : sizes_behind(k - 1);
  const double sums = 1 + gamma_up(size.size() + 4);
  for (Index i = 0; i < layer.out; ++i) {
    const double* row = layer.row(i);
    const double* radius = layer.radius_row(i);
    double sum = magnitude(layer.bias[to_size(i)]), rough = 0;
    for (std::size_t j = 0; j < size.size(); ++j) {
      sum += std::fabs(row[j]) * size[j];
      if (radius != nullptr) rough += radius[j] * size[j];
    }
    abs_sum_bound_[k][to_size(i)] = add_up(mul_up(sum, sums), underflow_up(sum));
    weight_uncertainty_[k][to_size(i)] =
        radius != nullptr ? add_up(mul_up(rough, sums), underflow_up(rough)) : 0;
  }
  factors_[k] = add_up(sum_up(size), sum_up(abs_sum_bound_[k]));
}

void PreactivationBounds::set_units(std::size_t k) {
  for (std::size_t i = 0; i < units_[k].size(); ++i)
    units_[k][i] = lines_of(net_.layers[k].form(i), ranges_[k][i]);
}

Planes PreactivationBounds::planes(std::size_t layer, const std::vector<Row>& rows) const {
  const Index count = std::ssize(rows);
  Planes result;
  result.offsets.assign(rows.size(), 0);
  const DenseLayer& own = net_.layers[layer];
  std::vector<double> eta(to_size(count * own.in)), next;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto [place, sign] = rows[r];
    const double* w = own.row(static_cast<Index>(place));
    for (std::size_t j = 0; j < to_size(own.in); ++j) eta[r * to_size(own.in) + j] = sign * w[j];
    const Interval bias = own.bias[place];
    result.offsets[r] = add_up(sign > 0 ? bias.hi : -bias.lo, weight_uncertainty_[layer][place]);
  }
  for (std::size_t k = layer; k-- > 0;) {
    const DenseLayer& through = net_.layers[k];
    const Index n = through.out;
    const double g = gamma_up(to_size(std::max(n, through.in) + 12));
    for (Index r = 0; r < count; ++r) {
      double* row = &eta[to_size(r * n)];
      double offset = 0, size = 0, moved = 0, rough = 0;
      for (std::size_t i = 0; i < to_size(n); ++i) {
        if (row[i] == 0) continue;
        const UnitLine& line = row[i] > 0 ? units_[k][i].up : units_[k][i].down;
        const double extra = row[i] * line.offset;
        const double slope = row[i] * line.slope;
        const Interval bias = through.bias[i];
        const double shift = slope > 0 ? slope * bias.hi : slope * bias.lo;
        offset += extra + shift;
        size += std::fabs(extra) + std::fabs(shift);
        moved += std::fabs(slope) * abs_sum_bound_[k][i];
        rough += std::fabs(slope) * weight_uncertainty_[k][i];
        row[i] = slope;
      }
      const double total = add_up(size, moved);
      const double error = add_up(mul_up(2 * g, total), underflow_up(total, factors_[k]));
      result.offsets[to_size(r)] = add_up(
          result.offsets[to_size(r)], add_up(offset, mul_up(add_up(error, rough), 1.0 + 0x1p-20)));
    }
    next.resize(to_size(count * through.in));
    gemm(count, through.in, n, 1.0, {eta.data(), n}, {through.weights.data(), through.in}, 0.0,
         next.data(), through.in);
    std::swap(eta, next);
  }
  result.weights = std::move(eta);
  result.weights.resize(to_size(count * net_.inputs()));
  return result;
}

bool PreactivationBounds::restrict_to(const Path& path) {
  std::vector<std::vector<Interval>> limits;
  for (const auto& layer : root_) limits.emplace_back(layer.size(), Interval{-kInf, kInf});
  for (const Side& side : path) {
    Interval& limit = limits[side.unit.layer][side.unit.place];
    if (side.above) {
      limit.lo = std::max(limit.lo, side.at);
    } else {
      limit.hi = std::min(limit.hi, side.at);
    }
  }
  Planes sides;          // of the path in this layer and earlier ones
  bool changed = false;  // ranges of this layer may be smaller than at the root
  for (std::size_t k = 0; k < net_.hidden(); ++k) {
    for (std::size_t i = 0; i < root_[k].size(); ++i)
      ranges_[k][i] = {std::max(root_[k][i].lo, limits[k][i].lo),
                       std::min(root_[k][i].hi, limits[k][i].hi)};
    if (k > 0) set_reach(k);  // an earlier call may have left that of a smaller part
    const Planes here = planes_of(k, path);
    sides.weights.insert(sides.weights.end(), here.weights.begin(), here.weights.end());
    sides.offsets.insert(sides.offsets.end(), here.offsets.begin(), here.offsets.end());
    changed = changed || !sides.offsets.empty();
    if (changed) {
      std::vector<Row> rows;
      for (std::size_t i = 0; i < root_[k].size(); ++i) {
        // In the first layer only other sides can tell more than the root did.
        const Interval known = k == 0 ? ranges_[k][i] : root_[k][i];
        if (!net_.layers[k].form(i).is_unstable(known)) continue;
        rows.push_back({i, 1});
        rows.push_back({i, -1});
      }
      shrink_by_planes(k, rows, sides, ranges_[k]);
    }
    const auto is_empty = [](const Interval& range) { return !(range.lo <= range.hi); };
    if (std::ranges::any_of(ranges_[k], is_empty)) return false;
    set_units(k);
  }
  return true;
}

Planes PreactivationBounds::planes_of(std::size_t layer, const Path& path) const {
  std::vector<Row> rows;
  std::vector<double> ats;
  for (const Side& side : path) {
    if (side.unit.layer != layer) continue;
    rows.push_back({side.unit.place, side.above ? 1.0 : -1.0});
    ats.push_back(side.at);
  }
  if (rows.empty()) return {};
  Planes found = planes(layer, rows);
  for (std::size_t r = 0; r < rows.size(); ++r)
    found.offsets[r] = add_up(found.offsets[r], -rows[r].sign * ats[r]);
  return found;
}

Planes PreactivationBounds::planes_of(const Path& path) const {
  Planes all;
  const std::size_t n = domain_.inputs();
  all.weights.resize(path.size() * n);
  all.offsets.resize(path.size());
  for (std::size_t k = 0; k < net_.hidden(); ++k) {
    const Planes found = planes_of(k, path);
    for (std::size_t s = 0, r = 0; s < path.size(); ++s) {
      if (path[s].unit.layer != k) continue;
      std::copy_n(&found.weights[r * n], n, &all.weights[s * n]);
      all.offsets[s] = found.offsets[r++];
    }
  }
  return all;
}

}  // namespace lipscope
