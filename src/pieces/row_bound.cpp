// SPDX-License-Identifier: Apache-2.0
#include "pieces/row_bound.h"

#include <algorithm>
#include <cmath>

#include "base/checkpoint.h"
#include "base/rounding.h"
#include "linalg/tensor/blas.h"
#include "net/small.h"

namespace lipscope {
namespace {

constexpr double kOneSided = 0.5;

std::vector<double> transposed_weights(const DenseLayer& layer) {
  std::vector<double> turned(layer.weights.size());
  for (Index i = 0; i < layer.out; ++i) {
    for (Index j = 0; j < layer.in; ++j)
      turned[to_size(j * layer.out + i)] = layer.weights[to_size(i * layer.in + j)];
  }
  return turned;
}

Interval weight_range(const DenseLayer& layer, Index i, Index j) {
  const double w = layer.row(i)[j], r = layer.radius.empty() ? 0 : layer.radius_row(i)[j];
  return {sub_down(w, r), add_up(w, r)};
}

}  // namespace

RowBound::RowBound(const LayeredNet& net, GradientNorm norm, MixedProduct mixed)
    : net_(net), norm_(norm), mixed_(mixed) {
  const std::size_t hidden = net.hidden();
  for (const DenseLayer& layer : net.layers) turned_.push_back(transposed_weights(layer));
  lines_.resize(hidden);
  for (std::size_t k = 0; k < hidden; ++k) {
    const std::size_t n = to_size(net.layers[k].out);
    pull_.emplace_back(n);
    reach_.emplace_back(n);
    outer_.emplace_back(n);
    freedom_.emplace_back(n);
    weight_.emplace_back(n);
    lines_[k] = {std::vector<double>(n), std::vector<double>(n), std::vector<double>(n),
                 std::vector<double>(n)};
  }
}

void RowBound::set_lines(std::size_t k, const std::vector<Interval>& slopes) {
  Lines& lines = lines_[k];
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const Interval d = slopes[i], v = pull_[k][i];
    outer_[k][i] = magnitude(d * v);
    freedom_[k][i] = (d.hi - d.lo) * magnitude(v);
    double up = d.hi, down = d.lo, above = 0, below = 0;
    if (d.lo != d.hi && v.hi <= 0) std::swap(up, down);
    const bool is_mixed = d.lo != d.hi && v.lo < 0 && v.hi > 0;
    if (is_mixed && mixed_ == MixedProduct::kConstant) {
      const Interval product = d * v;  // holds 0
      up = down = 0;
      above = product.hi;
      below = product.lo;
    } else if (is_mixed) {
      const double width = v.hi - v.lo;
      up = (d.hi * v.hi - d.lo * v.lo) / width;
      down = (d.lo * v.hi - d.hi * v.lo) / width;
      // (d - slope) v at both ends.
      above = std::max({0.0, mul_up(sub_down(d.lo, up), v.lo), mul_up(sub_up(d.hi, up), v.hi)});
      below =
          std::min({0.0, mul_down(sub_up(d.hi, down), v.lo), mul_down(sub_down(d.lo, down), v.hi)});
    }
    lines.up_slope[i] = up;
    lines.down_slope[i] = down;
    lines.up_offset[i] = above;
    lines.down_offset[i] = below;
  }
}

namespace {

// Adds to each result what the radii of a layer's weights can change in the product of a row of
// `eta` with them. outer: bounds of what the weights are multiplied with; g: of the roundings.
void add_weight_radii(const DenseLayer& layer, const std::vector<double>& outer,
                      const std::vector<double>& eta, double g, std::vector<double>& result) {
  const std::size_t n = to_size(layer.in);
  std::vector<double> change(n);  // of a unit's weights
  for (Index j = 0; j < layer.out; ++j) {
    const double* radius = layer.radius_row(j);
    for (std::size_t i = 0; i < n; ++i) change[i] += radius[i] * outer[to_size(j)];
  }
  for (double& c : change) c = add_up(c, underflow_up(0, 1));
  for (std::size_t r = 0; r < result.size(); ++r) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::fabs(eta[r * n + i]) * change[i];
    result[r] = add_up(result[r], add_up(mul_up(sum, 1 + 4 * g), underflow_up(sum)));
  }
}

// Adds to each result the largest value that a row of `eta` has on the ranges.
void add_largest_values(const std::vector<Interval>& ranges, const std::vector<double>& eta,
                        double g, std::vector<double>& result) {
  const std::size_t n = ranges.size();
  for (std::size_t r = 0; r < result.size(); ++r) {
    const double* row = &eta[r * n];
    double sum = 0, most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double term = row[i] > 0 ? row[i] * ranges[i].hi : row[i] * ranges[i].lo;
      sum += term;
      most += std::fabs(term);
    }
    result[r] = add_up(result[r], add_up(sum, add_up(mul_up(2 * g, most), underflow_up(most))));
  }
}

}  // namespace

void RowBound::bound_above(std::size_t layer, std::vector<double>& eta, Index count,
                           std::vector<double>& result, bool remember) {
  result.assign(to_size(count), 0);
  const std::size_t hidden = net_.hidden();
  for (std::size_t k = layer; k < hidden; ++k) {
    const Index n = net_.layers[k].out;
    const DenseLayer& through = net_.layers[k + 1];
    const Lines& lines = lines_[k];
    const bool last = k + 1 == hidden;
    const std::size_t size = to_size(count * n);
    positive_.resize(size);
    negative_.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      positive_[i] = eta[i] > 0 ? eta[i] : 0;
      negative_[i] = eta[i] < 0 ? eta[i] : 0;
    }
    // Sums over the units: of offsets, and of what roundings of the slopes and of the product with
    // the next weights can change.
    constexpr Index kColumns = 4;
    table_.resize(to_size(n * kColumns));
    for (std::size_t i = 0; i < to_size(n); ++i) {
      table_[i * kColumns] = lines.up_offset[i];
      table_[i * kColumns + 1] = mul_up(std::fabs(lines.up_slope[i]), reach_[k][i]);
      table_[i * kColumns + 2] = lines.down_offset[i];
      table_[i * kColumns + 3] = mul_up(std::fabs(lines.down_slope[i]), reach_[k][i]);
    }
    sums_.resize(to_size(2 * count * kColumns));
    double* from_negative = sums_.data() + count * kColumns;
    gemm(count, kColumns, n, 1.0, {positive_.data(), n}, {table_.data(), kColumns}, 0.0,
         sums_.data(), kColumns);
    gemm(count, kColumns, n, 1.0, {negative_.data(), n}, {table_.data(), kColumns}, 0.0,
         from_negative, kColumns);
    const double g = gamma_up(to_size(std::max(n, through.out) + 12));
    const double factors = add_up(sum_up(reach_[k]), last ? 0 : sum_up(outer_[k + 1]));
    for (Index r = 0; r < count; ++r) {
      const double* p = &sums_[to_size(r * kColumns)];
      const double* m = from_negative + r * kColumns;
      const double offset = p[0] + m[2], moved = p[1] - m[3];  // sums of terms >= 0
      const double total = add_up(offset, moved);
      const double error = add_up(mul_up(2 * g, total), underflow_up(total, factors));
      result[to_size(r)] = add_up(result[to_size(r)], add_up(offset, mul_up(error, 1.0 + 0x1p-20)));
    }
    // What both sides of a split would win, and a little for what one of them would.
    for (std::size_t i = 0; remember && i < to_size(n); ++i)
      weight_[k][i] = positive_[i] * lines.up_offset[i] + negative_[i] * lines.down_offset[i] +
                      kOneSided * std::fabs(eta[i]) * freedom_[k][i];
    for (Index r = 0; r < count; ++r) {
      double* row = &eta[to_size(r * n)];
      const double* p = &positive_[to_size(r * n)];
      const double* m = &negative_[to_size(r * n)];
      for (std::size_t i = 0; i < to_size(n); ++i)
        row[i] = p[i] * lines.up_slope[i] + m[i] * lines.down_slope[i];
    }
    if (last) return add_largest_values(pull_[k], eta, g, result);
    if (!through.radius.empty()) add_weight_radii(through, outer_[k + 1], eta, g, result);
    next_.resize(to_size(count * through.out));
    gemm(count, through.out, n, 1.0, {eta.data(), n}, {turned_[k + 1].data(), through.out}, 0.0,
         next_.data(), through.out);
    std::swap(eta, next_);
  }
}

void RowBound::enclose(std::size_t layer, const std::vector<Index>& which,
                       std::vector<Interval>& result) {
  const DenseLayer& through = net_.layers[layer];
  const Index n = through.out, count = which.empty() ? through.in : std::ssize(which);
  const auto row_of = [&](Index r) { return which.empty() ? r : which[to_size(r)]; };
  std::vector<double> eta(to_size(2 * count * n)), tops;
  for (Index r = 0; r < count; ++r) {
    const double* from = &turned_[layer][to_size(row_of(r) * n)];
    for (Index j = 0; j < n; ++j) {
      eta[to_size(r * n + j)] = from[j];
      eta[to_size((count + r) * n + j)] = -from[j];
    }
  }
  bound_above(layer, eta, 2 * count, tops, false);
  for (Index r = 0; r < count; ++r) {
    double rough = 0;
    for (Index j = 0; j < n && !through.radius.empty(); ++j)
      rough += through.radius_row(j)[row_of(r)] * outer_[layer][to_size(j)];
    rough = mul_up(rough, 1 + gamma_up(to_size(2 * n + 4)));
    result[to_size(row_of(r))] = {-add_up(tops[to_size(count + r)], rough),
                                  add_up(tops[to_size(r)], rough)};
  }
}

void RowBound::set_pull(std::size_t k, const Slopes& slopes, Index row) {
  const DenseLayer& through = net_.layers[k + 1];
  const Index n = through.in;
  if (k + 1 == net_.hidden()) {
    for (Index i = 0; i < n; ++i) {
      pull_[k][to_size(i)] = weight_range(through, row, i);
      reach_[k][to_size(i)] = magnitude(pull_[k][to_size(i)]);
    }
    return;
  }
  enclose(k + 1, {}, pull_[k]);
  // Intervals alone are sometimes the better bound.
  const std::size_t width = to_size(through.out);
  std::vector<double> middle(width), half(width);
  for (std::size_t j = 0; j < width; ++j) {
    const Interval u = slopes[k + 1][j] * pull_[k + 1][j];
    middle[j] = 0.5 * u.lo + 0.5 * u.hi;
    half[j] = std::max(sub_up(u.hi, middle[j]), sub_up(middle[j], u.lo));
  }
  const double sums = 1 + gamma_up(2 * width + 8), rounding = gamma_up(2 * width + 16);
  for (Index i = 0; i < n; ++i) {
    double sum = 0, center = 0, spread = 0;
    const double* column = &turned_[k + 1][to_size(i) * width];
    for (std::size_t j = 0; j < width; ++j) {
      const double r = through.radius.empty() ? 0 : through.radius_row(static_cast<Index>(j))[i];
      const double w = std::fabs(column[j]);
      sum += (w + r) * outer_[k + 1][j];
      center += column[j] * middle[j];
      spread += w * half[j] + r * outer_[k + 1][j];
    }
    const double reach = add_up(mul_up(sum, sums), underflow_up(sum));
    reach_[k][to_size(i)] = reach;
    const double error = add_up(mul_up(reach, rounding), underflow_up(sum));
    Interval& v = pull_[k][to_size(i)];
    v.hi = std::min(v.hi, add_up(add_up(center, spread), error));
    v.lo = std::max(v.lo, sub_down(sub_down(center, spread), error));
    if (std::isnan(v.lo) || std::isnan(v.hi)) v = {-kInf, kInf};
    if (v.lo > v.hi) std::swap(v.lo, v.hi);
  }
}

double RowBound::largest_entry(const std::vector<Interval>& gradient) {
  const DenseLayer& first = net_.layers[0];
  if (std::ranges::any_of(gradient, is_nan)) return kInf;
  std::size_t top = 0;
  for (std::size_t j = 1; j < gradient.size(); ++j) {
    if (magnitude(gradient[j]) > magnitude(gradient[top])) top = j;
  }
  if (net_.hidden() > 0) {
    const bool negative = -gradient[top].lo > gradient[top].hi;
    const auto begin = turned_[0].begin() + static_cast<Index>(top) * first.out;
    std::vector<double> eta(begin, begin + first.out), ignored;
    for (double& e : eta) e = negative ? -e : e;
    bound_above(0, eta, 1, ignored, true);
  }
  return magnitude(gradient[top]);
}

// |g_j| <= slope g_j + offset in each entry, all together one row.
double RowBound::sum_of_entries(const std::vector<Index>& open,
                                const std::vector<Interval>& gradient,
                                const std::vector<float>& signs) {
  const DenseLayer& first = net_.layers[0];
  std::vector<double> slope(signs.begin(), signs.end()), offset;
  for (const Index j : open) {
    const Interval g = gradient[to_size(j)];
    double& s = slope[to_size(j)];
    if (s != 0) continue;
    s = (g.hi + g.lo) / (g.hi - g.lo);
    offset.push_back(std::max({mul_up(sub_up(1, s), g.hi), mul_up(sub_down(-1, s), g.lo), 0.0}));
  }
  std::vector<double> eta(to_size(first.out));
  double rough = 0, moved = 0;
  for (Index i = 0; i < first.out; ++i) {
    double sum = 0, size = 0, uncertainty = 0;
    for (Index j = 0; j < first.in; ++j) {
      const double term = first.row(i)[j] * slope[to_size(j)];
      sum += term;
      size += std::fabs(term);
      if (!first.radius.empty())
        uncertainty += first.radius_row(i)[j] * std::fabs(slope[to_size(j)]);
    }
    eta[to_size(i)] = sum;
    moved += size * outer_[0][to_size(i)];
    rough += uncertainty * outer_[0][to_size(i)];
  }
  std::vector<double> result;
  bound_above(0, eta, 1, result, true);
  const double g = gamma_up(to_size(2 * std::max(first.in, first.out) + 16));
  const double error =
      add_up(mul_up(g, moved),
             add_up(mul_up(rough, 1 + g), underflow_up(add_up(moved, rough), sum_up(outer_[0]))));
  return add_up(add_up(result[0], sum_up(offset)), mul_up(error, 1.0 + 0x1p-20));
}

void RowBound::set_all_lines(const Slopes& slopes, Index row) {
  for (std::size_t k = net_.hidden(); k-- > 0;) {
    set_pull(k, slopes, row);
    set_lines(k, slopes[k]);
  }
}

std::vector<Interval> RowBound::entries(const Slopes& slopes, Index row) {
  set_all_lines(slopes, row);
  std::vector<Interval> gradient(to_size(net_.inputs()));
  enclose(0, {}, gradient);
  return gradient;
}

std::vector<Interval> RowBound::behind_first_units(const Slopes& slopes, Index row) {
  set_all_lines(slopes, row);
  std::vector<Interval> products;
  for (std::size_t i = 0; i < slopes[0].size(); ++i) products.push_back(slopes[0][i] * pull_[0][i]);
  return products;
}

double RowBound::upper_bound(const Slopes& slopes, Index row, std::vector<float>& signs) {
  double cost = 0, behind = 0;
  for (std::size_t k = net_.layers.size(); k-- > 0;) {
    cost += 2 * static_cast<double>(net_.layers[k].in) * behind;
    behind += static_cast<double>(net_.layers[k].out) * static_cast<double>(net_.layers[k].in);
  }
  charge(cost);
  set_all_lines(slopes, row);
  const Index n = net_.inputs();
  std::vector<Interval> gradient(to_size(n));
  if (net_.hidden() == 0) {
    for (Index j = 0; j < n; ++j) gradient[to_size(j)] = weight_range(net_.layers[0], row, j);
    if (norm_ == GradientNorm::kMax) return largest_entry(gradient);
    std::vector<double> sizes;
    for (const Interval& g : gradient) sizes.push_back(magnitude(g));
    return sum_up(sizes);
  }
  if (norm_ == GradientNorm::kMax) {
    enclose(0, {}, gradient);
    return largest_entry(gradient);
  }
  if (signs.empty()) signs.resize(to_size(n));
  std::vector<Index> open;
  for (Index j = 0; j < n; ++j) {
    if (signs[to_size(j)] == 0) open.push_back(j);
  }
  if (!open.empty()) enclose(0, open, gradient);
  for (const Index j : open) {
    const Interval g = gradient[to_size(j)];
    signs[to_size(j)] = g.lo >= 0 ? 1.0F : g.hi <= 0 ? -1.0F : 0.0F;
  }
  const double sum = sum_of_entries(open, gradient, signs);
  return std::isnan(sum) ? kInf : sum;
}

}  // namespace lipscope
