// SPDX-License-Identifier: Apache-2.0
#include "net/unit_ranges.h"

#include <algorithm>
#include <cmath>

#include "base/checkpoint.h"
#include "base/parallel.h"
#include "base/rounding.h"
#include "net/small.h"
#include "net/unit_form.h"

namespace lipscope {
namespace {

class SparseBounds {
 public:
  SparseBounds(const UnitNetwork& net, const DomainSupport& domain) : net_(net), domain_(domain) {
    const std::size_t count = net.nodes.size();
    ranges.resize(count);
    forms_.resize(count);
    lines_.resize(count);
    abs_sum_bound_.resize(count);
    weight_uncertainty_.resize(count);
    factors_.resize(count);
    behind_.resize(count);
    for (std::size_t j = 0; j < domain.inputs(); ++j)
      behind_[0].push_back({domain.low()[j], domain.high()[j]});
    count_terms();
  }

  void find(std::size_t k) {
    const UnitNode& node = net_.nodes[k];
    forms_[k] = NodeForms(node);
    checkpoint(20 * static_cast<double>(node.size));
    by_intervals(k);
    std::vector<Index> unstable;
    for (Index i = 0; i < node.size; ++i) {
      if (forms_[k][to_size(i)].is_unstable(ranges[k][to_size(i)])) unstable.push_back(i);
    }
    const double work = 2 * static_cast<double>(unstable.size()) * weights_before(k);
    if (work_ + work > kMostRangeWork) return set_lines(k);
    work_ += work;
    parallel_for(std::ssize(unstable), kRows, [&](std::int64_t from, std::int64_t to) {
      for (; from < to; from += kRows) {
        checkpoint(2 * static_cast<double>(kRows) * weights_before(k));
        const auto begin = unstable.begin() + from;
        by_lines(k, {begin, begin + std::min<std::int64_t>(kRows, to - from)});
      }
    });
    set_lines(k);
  }

  std::vector<std::vector<Interval>> ranges;

 private:
  static constexpr std::int64_t kRows = 32;  // at once, in both directions

  [[nodiscard]] double weights_before(std::size_t k) const {
    double sum = 0;
    for (std::size_t m = 1; m < k; ++m) {
      for (const UnitNode::Edge& edge : net_.nodes[m].edges)
        sum += static_cast<double>(edge.map.weights.size());
    }
    return sum;
  }

  void set_lines(std::size_t k) {
    for (std::size_t i = 0; i < ranges[k].size(); ++i) {
      const UnitForm form = forms_[k][i];
      lines_[k].push_back(lines_of(form, ranges[k][i]));
      behind_[k].push_back(behind(form, ranges[k][i], lines_[k].back().size));
    }
  }

  static Interval behind(const UnitForm& form, const Interval& z, double size) {
    if (form.curved()) return {-size, size};
    return values_of(form, z);
  }

  // Terms of the longest sum that makes a coefficient in a pass back through the network, and of
  // the longest sum over the units of a node.
  void count_terms() {
    std::vector<std::size_t> into(net_.nodes.size());
    for (const UnitNode& node : net_.nodes) {
      terms_ = std::max(terms_, to_size(node.size));
      std::size_t products = 0;
      for (const UnitNode::Edge& edge : node.edges) {
        into[edge.from] += to_size(edge.map.rows);
        products += to_size(edge.map.cols);
      }
      terms_ = std::max(terms_, products);
    }
    terms_ = std::max(terms_, *std::ranges::max_element(into));
  }

  void by_intervals(std::size_t k) {
    const UnitNode& node = net_.nodes[k];
    const double sums = 1 + gamma_up(terms_ + 4), rounding = gamma_up(2 * terms_ + 16);
    std::vector<double> center(to_size(node.size)), spread(center), size(center), rough(center);
    for (const UnitNode::Edge& edge : node.edges) {
      std::vector<double> middle, half, most;
      for (const Interval& x : behind_[edge.from]) {
        const double m = 0.5 * x.lo + 0.5 * x.hi;
        middle.push_back(m);
        half.push_back(std::max({0.0, sub_up(x.hi, m), sub_up(m, x.lo)}));
        most.push_back(magnitude(x));
      }
      for (Index i = 0; i < node.size; ++i) {
        edge.map.for_row(i, [&](Index j, std::size_t place) {
          const double w = edge.map.weights[place], a = std::fabs(w);
          center[to_size(i)] += w * middle[to_size(j)];
          spread[to_size(i)] += a * half[to_size(j)];
          size[to_size(i)] += a * most[to_size(j)];
          rough[to_size(i)] += edge.map.radius_at(place) * most[to_size(j)];
        });
      }
    }
    for (std::size_t i = 0; i < center.size(); ++i) {
      const double uncertainty = add_up(mul_up(rough[i], sums), underflow_up(rough[i]));
      const double all = add_up(mul_up(size[i], sums), underflow_up(size[i]));
      const double way = add_up(add_up(mul_up(spread[i], sums), uncertainty),
                                add_up(mul_up(all, rounding), underflow_up(all)));
      Interval z = Interval{sub_down(center[i], way), add_up(center[i], way)} + node.bias[i];
      if (is_nan(z)) z = {-kInf, kInf};
      ranges[k].push_back(z);
      abs_sum_bound_[k].push_back(add_up(all, magnitude(node.bias[i])));
      weight_uncertainty_[k].push_back(uncertainty);
    }
    factors_[k] = sum_up(abs_sum_bound_[k]);
    for (const UnitNode::Edge& edge : node.edges) {
      for (const Interval& x : behind_[edge.from]) factors_[k] = add_up(factors_[k], magnitude(x));
    }
  }

  // Coefficients of the values behind a node, by entry; `count` per entry.
  using Coefficients = std::vector<std::vector<double>>;

  void push_back(const UnitNode::Edge& edge, const std::vector<double>& from, std::size_t count,
                 Coefficients& all) const {
    std::vector<double>& to = all[edge.from];
    if (to.empty()) to.resize(to_size(edge.map.cols) * count);
    for (Index i = 0; i < edge.map.rows; ++i) {
      const double* x = &from[to_size(i) * count];
      if (std::all_of(x, x + count, [](double e) { return e == 0; })) continue;
      edge.map.for_row(i, [&](Index j, std::size_t place) {
        const double w = edge.map.weights[place];
        double* y = &to[to_size(j) * count];
        for (std::size_t r = 0; r < count; ++r) y[r] += w * x[r];
      });
    }
  }

  // z <= the line above the unit, below it for a negative coefficient; then z's own sum.
  void through_units(std::size_t m, std::size_t count, std::vector<double>& rows,
                     std::vector<double>& tops) const {
    const UnitNode& node = net_.nodes[m];
    std::vector<double> offset(count), size(count), moved(count), rough(count);
    for (std::size_t i = 0; i < to_size(node.size); ++i) {
      const UnitLines& lines = lines_[m][i];
      const Interval bias = node.bias[i];
      double* row = &rows[i * count];
      for (std::size_t r = 0; r < count; ++r) {
        if (row[r] == 0) continue;
        const UnitLine& line = row[r] > 0 ? lines.up : lines.down;
        const double extra = row[r] * line.offset, slope = row[r] * line.slope;
        const double shift = slope > 0 ? slope * bias.hi : slope * bias.lo;
        offset[r] += extra + shift;
        size[r] += std::fabs(extra) + std::fabs(shift);
        moved[r] += std::fabs(slope) * abs_sum_bound_[m][i];
        rough[r] += std::fabs(slope) * weight_uncertainty_[m][i];
        row[r] = slope;
      }
    }
    const double g = gamma_up(terms_ + 12);
    for (std::size_t r = 0; r < count; ++r) {
      const double total = add_up(size[r], moved[r]);
      const double error = add_up(mul_up(2 * g, total), underflow_up(total, factors_[m]));
      tops[r] = add_up(tops[r], add_up(offset[r], mul_up(add_up(error, rough[r]), 1.0 + 0x1p-20)));
    }
  }

  void by_lines(std::size_t k, const std::vector<Index>& places) {
    const UnitNode& node = net_.nodes[k];
    const std::size_t count = 2 * places.size();  // above, then below
    Coefficients all(k);
    std::vector<double> tops;
    for (const Index i : places)
      tops.push_back(add_up(node.bias[to_size(i)].hi, weight_uncertainty_[k][to_size(i)]));
    for (const Index i : places)
      tops.push_back(add_up(-node.bias[to_size(i)].lo, weight_uncertainty_[k][to_size(i)]));
    for (const UnitNode::Edge& edge : node.edges) {
      std::vector<double>& to = all[edge.from];
      to.resize(to_size(edge.map.cols) * count);
      for (std::size_t r = 0; r < places.size(); ++r) {
        edge.map.for_row(places[r], [&](Index j, std::size_t place) {
          to[to_size(j) * count + r] = edge.map.weights[place];
          to[to_size(j) * count + places.size() + r] = -edge.map.weights[place];
        });
      }
    }
    for (std::size_t m = k; m-- > 1;) {
      if (all[m].empty()) continue;
      through_units(m, count, all[m], tops);
      for (const UnitNode::Edge& edge : net_.nodes[m].edges) push_back(edge, all[m], count, all);
      all[m] = {};
    }
    std::vector<double> line(domain_.inputs());
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t j = 0; j < line.size(); ++j)
        line[j] = all[0].empty() ? 0 : all[0][j * count + r];
      const double top = add_up(tops[r], domain_.max_up(line.data()));
      Interval& range = ranges[k][to_size(places[r % places.size()])];
      if (r < places.size()) {
        range.hi = std::min(range.hi, top);
      } else {
        range.lo = std::max(range.lo, -top);
      }
    }
  }

  const UnitNetwork& net_;
  const DomainSupport& domain_;
  std::size_t terms_ = 0;
  double work_ = 0;
  std::vector<NodeForms> forms_;
  std::vector<std::vector<UnitLines>> lines_;
  std::vector<std::vector<double>> abs_sum_bound_;       // bounds of sums |A| |x| + |b|
  std::vector<std::vector<double>> weight_uncertainty_;  // and of sums over the radii of the maps
  std::vector<double> factors_;  // sizes of all values before a node and of what they are made of
  std::vector<std::vector<Interval>> behind_;  // values behind the units
};

}  // namespace

std::vector<std::vector<Interval>> unit_ranges(const UnitNetwork& net, const DomainSupport& domain,
                                               const std::function<bool()>& stop) {
  SparseBounds bounds(net, domain);
  for (std::size_t k = 1; k + 1 < net.nodes.size(); ++k) {
    if (stop && stop()) return {};
    bounds.find(k);
  }
  return std::move(bounds.ranges);
}

}  // namespace lipscope
