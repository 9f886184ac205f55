// SPDX-License-Identifier: Apache-2.0
#include "net/reduced_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/rounding.h"
#include "net/small.h"

namespace lipscope {
namespace {

// A weight and how far the true one may be away; both times entries of a node.
struct Row {
  std::vector<double> weights, radius;
};
// An affine function of values behind nodes; a node without a row takes no part.
struct Functional {
  std::vector<Row> rows;  // by node
  Interval constant = point(0);
};

// Sums of products into one row, with all that their rounding can change.
class RowSum {
 public:
  RowSum(Row& row, std::size_t entries) : row_(row), rough_(entries), touched_(entries) {
    row.weights.resize(entries);
    row.radius.resize(entries);
    for (const double w : row.weights) size_.push_back(std::fabs(w));
  }
  // weight, within `away` of the true one, times the row of a map.
  void add(const RowMatrix& map, Index i, double weight, double away) {
    ++terms_;
    map.for_row(i, [&](Index j, std::size_t place) {
      const double w = map.weights[place], term = weight * w;
      row_.weights[to_size(j)] += term;
      size_[to_size(j)] += std::fabs(term);
      touched_[to_size(j)] = 1;
      rough_[to_size(j)] += away * std::fabs(w) + (std::fabs(weight) + away) * map.radius_at(place);
    });
  }
  void finish() {
    const double g = gamma_up(terms_ + 8), sums = 1 + gamma_up(2 * terms_ + 16);
    for (std::size_t j = 0; j < size_.size(); ++j) {
      if (touched_[j] == 0) continue;
      const double error = add_up(mul_up(mul_up(size_[j], sums), g), mul_up(rough_[j], sums));
      row_.radius[j] = add_up(row_.radius[j], add_up(error, 0x1p-1000));
    }
  }

 private:
  Row& row_;
  std::vector<double> size_, rough_;
  std::vector<char> touched_;
  std::size_t terms_ = 0;
};

class Reduction {
 public:
  Reduction(const UnitNetwork& net, const std::vector<std::vector<Interval>>& ranges)
      : net_(net), ranges_(ranges), unstable_(net.nodes.size()), forms_(net.nodes.size()) {
    for (std::size_t k = 1; k + 1 < net.nodes.size(); ++k) {
      unstable_[k].resize(to_size(net.nodes[k].size));
      forms_[k] = NodeForms(net.nodes[k]);
    }
  }

  // False for a list that is none of this network or leaves out an unstable unit.
  bool mark(const UnitNumbers& unstable) {
    std::size_t number = 0, next = 0;
    for (std::size_t k = 1; k + 1 < net_.nodes.size(); ++k) {
      for (std::size_t i = 0; i < unstable_[k].size(); ++i, ++number) {
        unstable_[k][i] = next < unstable.size() && unstable[next] == number;
        if (unstable_[k][i]) ++next;
        if (!unstable_[k][i] && (forms_[k][i].is_unstable(ranges_[k][i]) || is_nan(ranges_[k][i])))
          return false;
      }
    }
    return next == unstable.size();
  }

  Expected<LayeredNet> reduce(Index most) {
    for (std::size_t k = 1; k < net_.nodes.size(); ++k) {
      if (!std::ranges::all_of(net_.nodes[k].bias, is_bounded))
        return Reason{"biases that are not finite"};
    }
    std::vector<Functional> wanted;
    const UnitNode& output = net_.nodes.back();
    for (Index i = 0; i < output.size; ++i) wanted.push_back(value_of(output, i));
    std::vector<DenseLayer> layers;  // from the last one
    Index weights = 0;
    const auto fits = [&](const DenseLayer& layer) {
      weights += layer.in * layer.out;
      return weights <= most;
    };
    const auto too_many = [&] {
      return Reason{fmt::format("more than {} weights behind unstable units", most)};
    };
    std::vector<UnitForm> units;  // behind the next layer
    for (int depth = output.depth - 1; depth >= 1; --depth) {
      parallel_for(std::ssize(wanted), 1, [&](std::int64_t from, std::int64_t to) {
        for (; from < to; ++from) take_linear(wanted[to_size(from)], depth);
      });
      const std::vector<UnitId> here = units_at(depth, wanted);
      if (here.empty()) continue;
      const double numbers =
          static_cast<double>(here.size() + wanted.size()) * static_cast<double>(net_.size());
      if (numbers > kMostReducedNumbers) return Reason{"too many unstable units"};
      std::vector<Functional> before;
      for (const UnitId& id : here)
        before.push_back(value_of(net_.nodes[id.layer], static_cast<Index>(id.place)));
      layers.push_back(to_units(here, wanted, before));
      set_units(units, layers.back());
      if (!fits(layers.back())) return too_many();
      units.clear();
      for (const UnitId& id : here) units.push_back(forms_[id.layer][id.place]);
      units.resize(before.size());  // those that pass through
      wanted = std::move(before);
    }
    layers.push_back(to_inputs(wanted));
    set_units(units, layers.back());
    if (!fits(layers.back())) return too_many();
    std::ranges::reverse(layers);
    return LayeredNet{std::move(layers)};
  }

 private:
  Functional value_of(const UnitNode& node, Index i) const {
    Functional made;
    made.rows.resize(net_.nodes.size());
    for (const UnitNode::Edge& edge : node.edges) {
      Row& row = made.rows[edge.from];
      row.weights.resize(to_size(edge.map.cols));
      row.radius.resize(to_size(edge.map.cols));
      edge.map.for_row(i, [&](Index j, std::size_t place) {
        row.weights[to_size(j)] = edge.map.weights[place];
        row.radius[to_size(j)] = edge.map.radius_at(place);
      });
    }
    made.constant = node.bias[to_size(i)];
    return made;
  }

  // The unstable units that some function is made of.
  [[nodiscard]] std::vector<UnitId> units_at(int depth,
                                             const std::vector<Functional>& wanted) const {
    const auto uses = [](const Row& row, std::size_t i) {
      return !row.weights.empty() && (row.weights[i] != 0 || row.radius[i] != 0);
    };
    std::vector<UnitId> found;
    for (std::size_t k = 1; k + 1 < net_.nodes.size(); ++k) {
      for (std::size_t i = 0; net_.nodes[k].depth == depth && i < unstable_[k].size(); ++i) {
        if (unstable_[k][i] &&
            std::ranges::any_of(wanted, [&](const Functional& f) { return uses(f.rows[k], i); }))
          found.push_back({k, i});
      }
    }
    return found;
  }

  static void set_units(const std::vector<UnitForm>& units, DenseLayer& layer) {
    for (const UnitForm& form : units) layer.add_unit(form);
  }

  // Replaces units with one slope by what they are made of.
  void take_linear(Functional& f, int depth) const {
    std::vector<std::optional<RowSum>> sums(net_.nodes.size());
    for (std::size_t k = 1; k + 1 < net_.nodes.size(); ++k) {
      const UnitNode& node = net_.nodes[k];
      if (node.depth != depth || f.rows[k].weights.empty()) continue;
      for (Index i = 0; i < node.size; ++i) {
        const double w = f.rows[k].weights[to_size(i)], r = f.rows[k].radius[to_size(i)];
        if (unstable_[k][to_size(i)] || (w == 0 && r == 0)) continue;
        const UnitForm form = forms_[k][to_size(i)];
        const auto [slope, offset] = form.piece(form.on(ranges_[k][to_size(i)]).first);
        const Interval here{sub_down(w, r), add_up(w, r)};
        f.constant = f.constant + here * offset;
        if (slope == 0) continue;
        const Interval through = here * slope;
        const double weight = w * slope,
                     away = max_nan(sub_up(through.hi, weight), sub_up(weight, through.lo));
        f.constant = f.constant + through * node.bias[to_size(i)];
        for (const UnitNode::Edge& edge : node.edges) {
          auto& sum = sums[edge.from];
          if (!sum) sum.emplace(f.rows[edge.from], to_size(edge.map.cols));
          sum->add(edge.map, i, weight, away);
        }
      }
    }
    for (auto& sum : sums) {
      if (sum) sum->finish();
    }
  }

  // Rows of a layer behind unstable units, and behind what each wanted function leaves of earlier
  // nodes: those are added to `before`.
  DenseLayer to_units(const std::vector<UnitId>& here, std::vector<Functional>& wanted,
                      std::vector<Functional>& before) const {
    std::vector<std::ptrdiff_t> passes(wanted.size(), -1);
    DenseLayer layer;
    layer.out = std::ssize(wanted);
    std::vector<Row> rows(wanted.size());
    for (std::size_t f = 0; f < wanted.size(); ++f) {
      for (const UnitId& id : here) {
        const Row& row = wanted[f].rows[id.layer];
        rows[f].weights.push_back(row.weights.empty() ? 0 : row.weights[id.place]);
        rows[f].radius.push_back(row.radius.empty() ? 0 : row.radius[id.place]);
      }
      for (const UnitId& id : here) wanted[f].rows[id.layer] = {};
      drop_decided(wanted[f], net_.nodes[here[0].layer].depth);
      layer.bias.push_back(wanted[f].constant);
      if (std::ranges::all_of(wanted[f].rows, [](const Row& row) { return row.weights.empty(); }))
        continue;
      layer.bias.back() = point(0);
      passes[f] = std::ssize(before);
      before.push_back(std::move(wanted[f]));
    }
    layer.in = std::ssize(before);
    layer.weights.resize(to_size(layer.in * layer.out));
    layer.radius = layer.weights;
    for (std::size_t f = 0; f < rows.size(); ++f) {
      std::ranges::copy(rows[f].weights, layer.weights.begin() + static_cast<Index>(f) * layer.in);
      std::ranges::copy(rows[f].radius, layer.radius.begin() + static_cast<Index>(f) * layer.in);
      if (passes[f] >= 0) layer.weights[f * to_size(layer.in) + to_size(passes[f])] = 1;
    }
    if (std::ranges::all_of(layer.radius, [](double r) { return r == 0; })) layer.radius.clear();
    return layer;
  }

  void drop_decided(Functional& f, int depth) const {
    for (std::size_t k = 1; k + 1 < net_.nodes.size(); ++k) {
      if (net_.nodes[k].depth >= depth) f.rows[k] = {};
    }
  }

  DenseLayer to_inputs(std::vector<Functional>& wanted) const {
    DenseLayer layer;
    layer.in = net_.nodes[0].size;
    layer.out = std::ssize(wanted);
    for (Functional& f : wanted) {
      f.rows[0].weights.resize(to_size(layer.in));
      f.rows[0].radius.resize(to_size(layer.in));
      layer.weights.insert(layer.weights.end(), f.rows[0].weights.begin(), f.rows[0].weights.end());
      layer.radius.insert(layer.radius.end(), f.rows[0].radius.begin(), f.rows[0].radius.end());
      layer.bias.push_back(f.constant);
    }
    if (std::ranges::all_of(layer.radius, [](double r) { return r == 0; })) layer.radius.clear();
    return layer;
  }

  const UnitNetwork& net_;
  const std::vector<std::vector<Interval>>& ranges_;
  std::vector<std::vector<bool>> unstable_;
  std::vector<NodeForms> forms_;
};

}  // namespace

UnitNumbers unstable_units(const UnitNetwork& net,
                           const std::vector<std::vector<Interval>>& ranges) {
  constexpr double kClose = 1e-9;
  UnitNumbers unstable;
  std::size_t number = 0;
  for (std::size_t k = 1; k + 1 < net.nodes.size(); ++k) {
    const NodeForms forms(net.nodes[k]);
    for (std::size_t i = 0; i < ranges[k].size(); ++i) {
      const Interval z = ranges[k][i];
      const double way = kClose * magnitude(z);
      if (is_nan(z) || forms[i].is_unstable({z.lo - way, z.hi + way})) unstable.push_back(number);
      ++number;
    }
  }
  return unstable;
}

Expected<LayeredNet> reduced_net(const UnitNetwork& net,
                                 const std::vector<std::vector<Interval>>& ranges,
                                 const UnitNumbers& unstable, Index most) {
  Reduction reduction(net, ranges);
  if (!reduction.mark(unstable)) return Reason{"a list of unstable units that leaves one out"};
  return reduction.reduce(most);
}

}  // namespace lipscope
