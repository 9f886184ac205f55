// SPDX-License-Identifier: Apache-2.0
#include "sdp/loop_transform.h"

#include <algorithm>
#include <cmath>

#include "base/interval.h"
#include "base/rounding.h"
#include "linalg/norm/operator_norm.h"
#include "net/transpose.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;

const NormPair kSpectral{Norm(2), Norm(2)};

// A matrix known up to `error` in the spectral norm. Error bounds of single entries would grow
// with the product of |A|, far faster than the product of A.
struct PathMatrix {
  Index rows = 0, cols = 0;
  Vector entries;         // row-major, or
  bool diagonal = false;  // the diagonal
  double error = 0;

  [[nodiscard]] double frobenius_up() const { return norm2_up(entries); }
};

struct MapSize {
  double gain, spectral, frobenius, spread;  // upper bounds; of the radii: spread
};

// Above 2^-1074 in every one of rows x cols entries, `terms` times.
double lost_in_terms(Index rows, Index cols, Index terms) {
  const auto all = static_cast<double>(rows) * static_cast<double>(cols);
  return mul_up(mul_up(all, static_cast<double>(terms)), kMinSubnormal);
}

// |Ex| in the output norm is at most this times the spectral norm of E times |x| in the input norm.
double factor_up(Index rows, Index cols, const NormPair& norms) {
  return mul_up(norm_equivalence_up(cols, norms.in, Norm(2)),
                norm_equivalence_up(rows, Norm(2), norms.out));
}

MapSize size_of(const RowMatrix& map, const NormPair& norms) {
  std::vector<Index> row, col;
  for (Index i = 0; i < map.rows; ++i) {
    map.for_row(i, [&](Index j, std::size_t) {
      row.push_back(i);
      col.push_back(j);
    });
  }
  const double spread = norm2_up(map.radius);
  const auto norm = [&](const NormPair& pair) {
    const NormEffort effort{.want_lower = false};
    const NormBracket plain =
        map.dense() ? matrix_norm({map.rows, map.cols, map.weights.data()}, pair, effort)
                    : sparse_norm({map.rows, map.cols, row, col, map.weights}, pair, effort);
    return add_up(plain.upper, gain_mul_up(factor_up(map.rows, map.cols, pair), spread));
  };
  const double spectral = norm(kSpectral);
  return {norms == kSpectral ? spectral : norm(norms), spectral, norm2_up(map.weights), spread};
}

class LoopTransform {
 public:
  LoopTransform(const UnitNetwork& network, const NormPair& norms,
                const std::function<bool()>& stop)
      : nodes_(network.nodes), norms_(norms), stop_(stop), last_use_(nodes_.size()) {
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      sizes_.emplace_back();
      for (const UnitNode::Edge& edge : nodes_[k].edges) {
        last_use_[edge.from] = k;
        sizes_.back().push_back(size_of(edge.map, {norms_.in, norm_of(k)}));
      }
      // Slopes are m + r t with |t| <= 1.
      Vector middle, half;
      for (const Interval slope : nodes_[k].slopes) {
        middle.push_back(slope.lo / 2 + slope.hi / 2);
        half.push_back(std::max(sub_up(slope.hi, middle.back()), sub_up(middle.back(), slope.lo)));
      }
      middles_.push_back(std::move(middle));
      halves_.push_back(std::move(half));
    }
  }

  double run() {
    reach_.assign(nodes_.size(), 0);
    for (const UnitNode& node : nodes_)
      entries_.emplace_back(static_cast<std::size_t>(node.size), 0);
    for (std::size_t j = 0; j < nodes_.size(); ++j) {
      settle(j);
      if (j + 1 < nodes_.size() && !add_source(j)) return kInf;
    }
    return reach_.back();
  }

 private:
  Norm norm_of(std::size_t i) const { return i + 1 == nodes_.size() ? norms_.out : norms_.in; }

  // Once all sources before node j are added: what is known of the whole and of the entries bounds
  // one another.
  void settle(std::size_t j) {
    if (j == 0) {
      reach_[0] = 1;
      std::ranges::fill(entries_[0], 1);
      return;
    }
    // The product of gains is below the sum over paths where slopes differ between entries.
    double product = 0;
    for (std::size_t e = 0; e < nodes_[j].edges.size(); ++e) {
      const std::size_t from = nodes_[j].edges[e].from;
      double slope = from == 0 ? 1 : 0;
      for (const Interval& s : nodes_[from].slopes) slope = std::max(slope, magnitude(s));
      product = add_up(product, gain_mul_up(gain_mul_up(sizes_[j][e].gain, slope), reach_[from]));
    }
    reach_[j] = min_nan(min_nan(reach_[j], product), pnorm_up(entries_[j], norm_of(j).p()));
    for (double& e : entries_[j]) e = min_nan(e, reach_[j]);
  }

  // What the part r t v of node j, or the input, does to all later nodes.
  bool add_source(std::size_t j) {
    std::vector<PathMatrix> x(nodes_.size());
    x[j] = {nodes_[j].size, nodes_[j].size,
            j == 0 ? Vector(static_cast<std::size_t>(nodes_[0].size), 1.0) : halves_[j], true, 0};
    for (std::size_t i = j + 1; i < nodes_.size(); ++i) {
      if (stop_ && stop_()) return false;
      PathMatrix v = into(i, j, x);
      if (v.entries.empty()) continue;
      const double norm = norm_up(v, {norms_.in, norm_of(i)});
      reach_[i] = add_up(reach_[i], gain_mul_up(norm, reach_[j]));
      add_entries(i, j, v);
      if (i + 1 < nodes_.size()) x[i] = through(i, std::move(v));
      for (std::size_t k = j; k < i; ++k) {
        if (last_use_[k] <= i) x[k] = {};
      }
    }
    return true;
  }

  // The sum of A x over the maps into node i; no entries when nothing comes in.
  PathMatrix into(std::size_t i, std::size_t j, const std::vector<PathMatrix>& x) const {
    PathMatrix v{nodes_[i].size, nodes_[j].size, {}, false, 0};
    Index terms = 4;
    for (const UnitNode::Edge& edge : nodes_[i].edges) terms += edge.map.cols + 1;
    const double gamma = gamma_up(static_cast<std::size_t>(terms));
    for (std::size_t e = 0; e < nodes_[i].edges.size(); ++e) {
      const auto& [from, map] = nodes_[i].edges[e];
      const PathMatrix& right = x[from];
      if (right.entries.empty()) continue;
      v.entries.resize(static_cast<std::size_t>(v.rows * v.cols));
      if (right.diagonal) {
        add_scaled(map, right.entries, v.entries);
      } else {
        add_product(map, right.entries.data(), right.cols, v.entries.data());
      }
      const MapSize& size = sizes_[i][e];
      // For a diagonal x, |A||x| is at most |A|_F max |x| <= |A|_F |x|_F, too.
      const double rounding = mul_up(mul_up(gamma, size.frobenius), right.frobenius_up());
      const double spread = mul_up(size.spread, right.frobenius_up());
      v.error = add_up(v.error,
                       add_up(gain_mul_up(size.spectral, right.error), add_up(rounding, spread)));
    }
    v.error = add_up(v.error, lost_in_terms(v.rows, v.cols, terms));
    return v;
  }

  static void add_scaled(const RowMatrix& map, const Vector& diagonal, Vector& sum) {
    for (Index i = 0; i < map.rows; ++i) {
      map.for_row(i, [&](Index j, std::size_t at) {
        sum[static_cast<std::size_t>(i * map.cols + j)] +=
            map.weights[at] * diagonal[static_cast<std::size_t>(j)];
      });
    }
  }

  // m v.
  PathMatrix through(std::size_t i, PathMatrix v) const {
    const double largest = max_abs(middles_[i]);
    v.error = add_up(mul_up(largest, v.error),
                     add_up(mul_up(mul_up(kUnitRoundoff, largest), v.frobenius_up()),
                            lost_in_terms(v.rows, v.cols, 1)));
    for (Index r = 0; r < v.rows; ++r) {
      const double m = middles_[i][static_cast<std::size_t>(r)];
      for (Index c = 0; c < v.cols; ++c) v.entries[static_cast<std::size_t>(r * v.cols + c)] *= m;
    }
    return v;
  }

  static double norm_up(const PathMatrix& v, const NormPair& norms) {
    const double near =
        matrix_norm({v.rows, v.cols, v.entries.data()}, norms, {.want_lower = false}).upper;
    return add_up(near, gain_mul_up(factor_up(v.rows, v.cols, norms), v.error));
  }

  // Rows times the bounds of the entries of node j; the input has a bound as a whole.
  void add_entries(std::size_t i, std::size_t j, PathMatrix& v) {
    const double p = norms_.in.p();
    const double dual = p == 1 ? kInf : p == 2 ? 2 : 1;  // |.|_1 is above every norm
    const double other = mul_up(
        v.error, j == 0 ? norm_equivalence_up(v.cols, norms_.in, Norm(2)) : norm2_up(entries_[j]));
    for (Index a = 0; a < v.rows; ++a) {
      const auto row = std::span(v.entries).subspan(static_cast<std::size_t>(a * v.cols),
                                                    static_cast<std::size_t>(v.cols));
      Vector size(row.begin(), row.end());
      for (double& e : size) e = std::fabs(e);
      const double part = j == 0 ? pnorm_up(size, dual) : dot_up(size, entries_[j]);
      double& entry = entries_[i][static_cast<std::size_t>(a)];
      entry = add_up(entry, add_up(part, other));
    }
  }

  const std::vector<UnitNode>& nodes_;
  NormPair norms_;
  const std::function<bool()>& stop_;
  std::vector<std::size_t> last_use_;
  std::vector<std::vector<MapSize>> sizes_;  // by node, by edge
  std::vector<Vector> middles_, halves_;     // by node
  // Bounds in the unit of |dx|, by node: of |dv|, and of each of its entries.
  Vector reach_;
  std::vector<Vector> entries_;
};

bool has_short_formula(const NormPair& norms) { return norms.in.p() == 1 || norms.out.p() == kInf; }

// From l1 the bounds of single entries belong to the transposed network. Its norms have to be
// exact.
bool backward_too(const NormPair& norms) {
  const double q = norms.out.p();
  return norms.in.p() == 1 && (q == 1 || q == 2 || q == kInf);
}

}  // namespace

double loop_transform_up(const UnitNetwork& network, const NormPair& norms,
                         const std::function<bool()>& stop) {
  if (network.nodes.empty()) return 0;
  double units = LoopTransform(network, norms, stop).run();
  if (backward_too(norms)) {
    const NormPair dual{norms.out.dual(), norms.in.dual()};
    units = min_nan(units, LoopTransform(transposed(network), dual, stop).run());
  }
  if (std::isnan(units)) return kInf;
  const double scaled = std::ldexp(units, network.exponent);
  return scaled < 0x1p-900 ? add_up(scaled, kMinSubnormal) : scaled;
}

double loop_transform_cost(const UnitNetwork& network, const NormPair& norms) {
  const std::vector<UnitNode>& nodes = network.nodes;
  double cost = 0;
  for (std::size_t j = 0; j + 1 < nodes.size(); ++j) {
    std::vector<bool> reached(nodes.size());
    reached[j] = true;
    const auto cols = static_cast<double>(nodes[j].size);
    for (std::size_t i = j + 1; i < nodes.size(); ++i) {
      for (const auto& [from, map] : nodes[i].edges) {
        if (!reached[from]) continue;
        reached[i] = true;
        cost += static_cast<double>(map.weights.size()) * (from == j ? 1 : cols);
      }
      if (!reached[i]) continue;
      const auto rows = static_cast<double>(nodes[i].size);
      const double less = std::min(rows, cols), more = std::max(rows, cols);
      const bool last = i + 1 == nodes.size();
      const bool quick = has_short_formula({norms.in, last ? norms.out : norms.in});
      cost += quick ? rows * cols : less * less * (more + less);
    }
  }
  return cost;
}

}  // namespace lipscope
