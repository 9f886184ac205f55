// SPDX-License-Identifier: Apache-2.0
#include "sdp/lmi.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.h"
#include "base/rounding.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/cholesky.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;

// The matrix of [global-2] by nodes, scaled by powers of two to a diagonal of about 1 and with a
// number taken off it. For each node with slopes [a, b] and v = sum of A x before it
//   2 T (x - a v)(x - b v) = 2 T x^2 - 2 T (a + b) x v + 2 T a b v^2;
// rho I for the input, I or G G' for the output and its maps beside it.
class Form final : public BlockSource {
 public:
  // Multipliers that are not given are not looked at: for the cost alone. Without a `factor` the
  // output has I.
  Form(const UnitNetwork& net, const Multipliers* t, double rho, const Vector* factor = nullptr)
      : net_(net), t_(t), rho_(rho), factor_(factor) {
    const std::vector<UnitNode>& nodes = net.nodes;
    for (const UnitNode& node : nodes) sizes_.push_back(node.size);
    for (std::size_t k = 0; k < nodes.size(); ++k) squares_.push_back(square_weights(k));
    parents_.resize(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      for (const UnitNode::Edge& edge : nodes[k].edges) parents_[k].push_back(edge.from);
    }
  }

  [[nodiscard]] bool is_positive(const std::function<bool()>& stop, bool portable_margin) {
    double error = 0;
    const double shift = set_up(error);
    if (!std::isfinite(shift)) return false;
    subtract(portable_margin ? 4 * shift : shift);
    return add_up(block_definite_deficit_up(*this, stop), error) <= shift;
  }

  // C Q^-1 C' for the output's maps C and the matrix Q before them, a little larger so that
  // is_positive succeeds with it in place of G G'. `factor` is all zeros here.
  [[nodiscard]] Vector smallest_shape(const std::function<bool()>& stop) {
    double error = 0;
    const double shift = set_up(error);
    const auto n = static_cast<std::size_t>(sizes_.back());
    if (!std::isfinite(shift)) return {};
    const double taken = 6 * shift;  // more than with that margin, for a larger trace
    subtract(taken);
    Vector shape = block_remainder(*this, stop);
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = -shape[i];
    for (std::size_t i = 0; i < n && !shape.empty(); ++i) {
      double& d = shape[i * (n + 1)];
      d = (d - taken) * (1 + 32 * shift);
    }
    return shape;
  }

  const std::vector<Index>& sizes() const override { return sizes_; }
  bool couples(std::size_t i, std::size_t j) const override {
    return has_edge(i, j) || meets(i, j) != nullptr;
  }
  double entries(std::size_t i, std::size_t j) const override {
    if (meets(i, j) != nullptr)
      return static_cast<double>(sizes_[i]) * static_cast<double>(sizes_[j]);
    return static_cast<double>(edge(i, j).map.weights.size());
  }
  bool is_diagonal(std::size_t k) const override { return meets(k, k) == nullptr && !(shaped(k)); }
  std::vector<double> diagonal(std::size_t k) const override { return diagonal_[k]; }

  RowMatrix below(std::size_t i, std::size_t j) const override {
    RowMatrix block;
    if (has_edge(i, j)) {
      const RowMatrix& map = edge(i, j).map;
      block = {map.rows, map.cols, Vector(map.weights.size()), {}, map.begin, map.columns};
      parallel_for(map.rows, 1 + (Index{1} << 18) / (map.cols + 1), [&](Index from, Index to) {
        for (Index r = from; r < to; ++r) {
          const double factor = coupling(i, static_cast<std::size_t>(r));
          const double unit = unit_[i][static_cast<std::size_t>(r)];
          map.for_row(r, [&](Index c, std::size_t at) {
            block.weights[at] =
                map.weights[at] * factor * (unit * unit_[j][static_cast<std::size_t>(c)]);
          });
        }
      });
    }
    if (meets(i, j) == nullptr) return block;
    RowMatrix full{sizes_[i], sizes_[j], Vector(static_cast<std::size_t>(sizes_[i] * sizes_[j])),
                   {},        {},        {}};
    for (Index r = 0; r < block.rows; ++r) {
      block.for_row(r, [&](Index c, std::size_t at) {
        full.weights[static_cast<std::size_t>(r * full.cols + c)] = block.weights[at];
      });
    }
    add_squares(i, j, full.weights.data());
    return full;
  }
  void add_to_diagonal_block(std::size_t k, double* block) const override {
    add_squares(k, k, block);
    if (shaped(k)) add_shape(block);
  }

  // Of the products A'DA, whose factors are made full.
  [[nodiscard]] BlockCost squares_cost() const {
    BlockCost cost;
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      if (squares_[k].empty()) continue;
      double columns = 0;
      for (const std::size_t parent : parents_[k]) columns += static_cast<double>(sizes_[parent]);
      const double entries = static_cast<double>(sizes_[k]) * columns;
      cost.operations += entries * columns;
      cost.doubles = std::max(cost.doubles, 2 * entries);
    }
    return cost;
  }

 private:
  // The number to take off the diagonal, more than the factorisation may need [norms-16]; `error`:
  // of a row's entries together, the largest.
  double set_up(double& error) {
    set_diagonal();
    bound_errors();
    double trace = 0;
    for (const Vector& block : diagonal_) {
      for (const double d : block) trace = add_up(trace, d);
    }
    for (const Vector& block : error_) {
      for (const double e : block) error = !(e <= error) ? e : error;  // NaN stays
    }
    return add_up(error,
                  mul_up(2.2 * widest_row(*this) + 20, mul_up(2 * 0x1p-53, add_up(trace, 1))));
  }
  void subtract(double shift) {
    for (Vector& block : diagonal_) {
      for (double& d : block) d = sub_down(d, shift);
    }
  }

  bool shaped(std::size_t k) const { return factor_ != nullptr && k + 1 == sizes_.size(); }

  // Entries of G G' below the diagonal, in units.
  void add_shape(double* block) const {
    const std::size_t n = shape_.size() / std::max<std::size_t>(1, unit_.back().size());
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j)
        block[i * n + j] += shape_[i * n + j] * (unit_.back()[i] * unit_.back()[j]);
    }
  }

  // |G G' - computed| <= gamma |G||G|' entrywise, but for underflow.
  void charge_shape() {
    const Vector& g = *factor_;
    const Vector& unit = unit_.back();
    const std::size_t n = unit.size();
    const double gamma = gamma_up(n + 4);
    Vector down(n, 0.0);
    double units = 0;
    for (std::size_t j = 0; j < n; ++j) {
      units = add_up(units, unit[j]);
      for (std::size_t k = 0; k <= j; ++k)
        down[k] = add_up(down[k], mul_up(std::fabs(g[j * n + k]), unit[j]));
    }
    const double lost = mul_up(static_cast<double>(2 * n), mul_up(kMinSubnormal, units));
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k <= i; ++k)
        sum = add_up(sum, mul_up(std::fabs(g[i * n + k]), down[k]));
      error_.back()[i] =
          add_up(error_.back()[i], mul_up(unit[i], add_up(mul_up(gamma, sum), lost)));
    }
  }

  bool has_edge(std::size_t i, std::size_t j) const {
    return std::ranges::find(parents_[i], j) != parents_[i].end();
  }
  const UnitNode::Edge& edge(std::size_t i, std::size_t j) const {
    return *std::ranges::find(net_.nodes[i].edges, j, &UnitNode::Edge::from);
  }
  // A node whose square couples i and j.
  const UnitNode* meets(std::size_t i, std::size_t j) const {
    for (std::size_t k = 0; k < net_.nodes.size(); ++k) {
      if (!squares_[k].empty() && has_edge(k, i) && has_edge(k, j)) return &net_.nodes[k];
    }
    return nullptr;
  }

  double multiplier(std::size_t k, std::size_t i) const {
    return t_ == nullptr ? 1 : (*t_)[k - 1][i];
  }
  bool inner(std::size_t k) const { return !net_.nodes[k].slopes.empty(); }

  // What the weights of row i of node k are multiplied with.
  double coupling(std::size_t k, std::size_t i) const {
    if (!inner(k)) return 1;  // the output
    const Interval slope = net_.nodes[k].slopes[i];
    return -multiplier(k, i) * (slope.lo + slope.hi);
  }

  // 2 T a b; empty when all are zero.
  Vector square_weights(std::size_t k) const {
    Vector d;
    const std::vector<Interval>& slopes = net_.nodes[k].slopes;
    for (std::size_t i = 0; i < slopes.size(); ++i)
      d.push_back(2 * multiplier(k, i) * slopes[i].lo * slopes[i].hi);
    if (std::ranges::all_of(d, [](double e) { return e == 0; })) d.clear();
    return d;
  }

  // A node's map from j with its columns in units, as a full matrix.
  Vector scaled_map(std::size_t k, std::size_t j) const {
    const RowMatrix& map = edge(k, j).map;
    Vector full(static_cast<std::size_t>(map.rows * map.cols));
    for (Index r = 0; r < map.rows; ++r) {
      map.for_row(r, [&](Index c, std::size_t at) {
        full[static_cast<std::size_t>(r * map.cols + c)] =
            map.weights[at] * unit_[j][static_cast<std::size_t>(c)];
      });
    }
    return full;
  }

  // block += A_i' D A_j of every node that has both for parents.
  void add_squares(std::size_t i, std::size_t j, double* block) const {
    for (std::size_t k = 0; k < net_.nodes.size(); ++k) {
      if (squares_[k].empty() || !has_edge(k, i) || !has_edge(k, j)) continue;
      const Vector left = scaled_map(k, i);
      Vector right = i == j ? left : scaled_map(k, j);
      const Index rows = sizes_[k], n = sizes_[j];
      for (Index r = 0; r < rows; ++r) {
        for (Index c = 0; c < n; ++c)
          right[static_cast<std::size_t>(r * n + c)] *= squares_[k][static_cast<std::size_t>(r)];
      }
      gemm(sizes_[i], n, rows, 1.0, {left.data(), sizes_[i], true}, {right.data(), n}, 1.0, block,
           n);
    }
  }

  double plain_diagonal(std::size_t k, std::size_t i) const {
    if (shaped(k)) return shape_[i * (static_cast<std::size_t>(sizes_[k]) + 1)];
    return k == 0 ? rho_ : !inner(k) ? 1 : 2 * multiplier(k, i);
  }

  // Also the units: powers of two that bring the diagonal to about 1.
  void set_diagonal() {
    if (factor_ != nullptr) {
      const Index n = sizes_.back();
      shape_.assign(factor_->size(), 0);
      syrk(Triangle::kLower, n, n, 1, {factor_->data(), n}, 0, shape_.data(), n);
    }
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      Vector plain(static_cast<std::size_t>(sizes_[k]));
      for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = plain_diagonal(k, i);
      diagonal_.push_back(std::move(plain));
    }
    // Squares are added in units of 1; their sum is then scaled like the rest.
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      if (squares_[k].empty()) continue;
      for (const UnitNode::Edge& e : net_.nodes[k].edges) {
        for (Index r = 0; r < e.map.rows; ++r) {
          e.map.for_row(r, [&](Index c, std::size_t at) {
            const double w = e.map.weights[at];
            diagonal_[e.from][static_cast<std::size_t>(c)] +=
                w * (w * squares_[k][static_cast<std::size_t>(r)]);
          });
        }
      }
    }
    for (Vector& block : diagonal_) {
      Vector unit;
      for (double& d : block) {
        int exponent = 0;
        if (d > 0 && std::isfinite(d)) std::frexp(d, &exponent);
        exponent = std::clamp(exponent, -1000, 1000);
        unit.push_back(std::ldexp(1.0, -(exponent >= 0 ? exponent / 2 : (exponent - 1) / 2)));
        d *= unit.back() * unit.back();
      }
      unit_.push_back(std::move(unit));
    }
  }

  // Every entry is a sum of products of at most eight factors, each of them rounded, over the rows
  // of the nodes with squares; scaling may lose 2^-1074 in each product.
  void bound_errors() {
    Index terms = 0;
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      if (!squares_[k].empty()) terms += sizes_[k] + 2;
      error_.emplace_back(static_cast<std::size_t>(sizes_[k]), 0);
    }
    const double gamma = gamma_up(static_cast<std::size_t>(terms + 12));
    double all = 0;
    for (const Index n : sizes_) all += static_cast<double>(n);
    const double lost =
        mul_up(16 * (all + 1), mul_up(static_cast<double>(terms + 4), kMinSubnormal));
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      for (std::size_t i = 0; i < error_[k].size(); ++i) {
        const double scaled = mul_up(mul_up(plain_diagonal(k, i), unit_[k][i]), unit_[k][i]);
        error_[k][i] = add_up(mul_up(gamma, scaled), lost);
      }
    }
    for (std::size_t k = 0; k < sizes_.size(); ++k) {
      for (const UnitNode::Edge& e : net_.nodes[k].edges) charge_coupling(k, e, gamma);
      if (!squares_[k].empty()) charge_squares(k, gamma);
    }
    if (factor_ != nullptr) charge_shape();
  }

  // Sums of numbers that are not negative, added in bands of rows as they come and raised at the
  // end.
  void charge_coupling(std::size_t k, const UnitNode::Edge& e, double gamma) {
    const bool output = !inner(k);
    const auto cols = static_cast<std::size_t>(e.map.cols);
    const Vector& unit = unit_[e.from];
    const Index band = 1 + (Index{1} << 18) / (e.map.cols + 1), rows = e.map.rows;
    // Of each column, without its unit.
    std::vector<Vector> down(static_cast<std::size_t>((rows + band - 1) / band), Vector(cols, 0.0));
    parallel_for(std::ssize(down), 1, [&](Index from, Index to) {
      for (Index b = from; b < to; ++b) {
        for (Index r = b * band; r < std::min((b + 1) * band, rows); ++r) {
          const auto row = static_cast<std::size_t>(r);
          double factor = unit_[k][row];
          if (!output) {
            const Interval slope = net_.nodes[k].slopes[row];
            factor = mul_up(
                factor, mul_up(multiplier(k, row), magnitude(point(slope.lo) + point(slope.hi))));
          }
          const double across =
              add_row_errors(e.map, r, gamma, factor, unit, down[static_cast<std::size_t>(b)]);
          error_[k][row] = add_up(error_[k][row], mul_up(factor, raised(across, cols)));
        }
      }
    });
    for (std::size_t c = 0; c < cols; ++c) {
      double sum = 0;
      for (const Vector& part : down) sum += part[c];
      sum = raised(sum, static_cast<std::size_t>(rows));
      error_[e.from][c] = add_up(error_[e.from][c], mul_up(unit[c], sum));
    }
  }

  // At least the exact sum of n products of two numbers, added in any order, each of which came out
  // of at most three roundings.
  static double raised(double sum, std::size_t n) {
    return add_up(mul_up(sum, add_up(1, gamma_up(n + 4))),
                  mul_up(static_cast<double>(n), kMinSubnormal));
  }

  // For the errors gamma |w| + radius of a row's weights: adds factor times each to `down`, returns
  // their sum with units.
  static double add_row_errors(const RowMatrix& map, Index r, double gamma, double factor,
                               const Vector& unit, Vector& down) {
    constexpr double kLost = 0x1p-1000;  // more than gamma |w| loses when it is below all normals
    if (!map.dense()) {
      double across = 0;
      map.for_row(r, [&](Index c, std::size_t at) {
        const double error = gamma * std::fabs(map.weights[at]) + map.radius_at(at) + kLost;
        across += error * unit[static_cast<std::size_t>(c)];
        down[static_cast<std::size_t>(c)] += error * factor;
      });
      return across;
    }
    constexpr std::size_t kLanes = 8;
    const std::size_t n = unit.size();
    const double* weights = map.weights.data() + map.row_begin(r);
    const double* radius = map.radius.empty() ? nullptr : map.radius.data() + map.row_begin(r);
    std::array<double, kLanes> across{};
    const auto add = [&](std::size_t c, std::size_t lane) {
      const double error = gamma * std::fabs(weights[c]) + (radius ? radius[c] : 0.0) + kLost;
      across[lane] += error * unit[c];
      down[c] += error * factor;
    };
    std::size_t c = 0;
    for (; c + kLanes <= n; c += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) add(c + lane, lane);
    }
    for (; c < n; ++c) add(c, 0);
    double sum = 0;
    for (const double part : across) sum += part;
    return sum;
  }

  // |A_i'DA_j - computed| <= gamma (|A_i| + R_i)'|D|(|A_j| + R_j) + R_i'|D|(|A_j| + R_j)
  // + (|A_i| + R_i)'|D|R_j entrywise. Rows are summed over all parents j at once.
  void charge_squares(std::size_t k, double gamma) {
    for (Index r = 0; r < sizes_[k]; ++r) {
      const double d = mul_up(std::fabs(squares_[k][static_cast<std::size_t>(r)]), 1 + 0x1p-40);
      double size = 0, spread = 0;
      const auto for_entries = [&](auto&& body) {
        for (const UnitNode::Edge& e : net_.nodes[k].edges) {
          e.map.for_row(r, [&](Index c, std::size_t at) {
            const auto col = static_cast<std::size_t>(c);
            const double radius = mul_up(e.map.radius_at(at), unit_[e.from][col]);
            body(error_[e.from][col], unit_[e.from][col],
                 add_up(mul_up(std::fabs(e.map.weights[at]), unit_[e.from][col]), radius), radius);
          });
        }
      };
      for_entries([&](double&, double, double w, double radius) {
        size = add_up(size, w);
        spread = add_up(spread, radius);
      });
      for_entries([&](double& error, double, double w, double radius) {
        const double part =
            add_up(mul_up(add_up(mul_up(gamma, w), radius), size), mul_up(w, spread));
        error = add_up(error, mul_up(d, part));
      });
    }
  }

  const UnitNetwork& net_;
  const Multipliers* t_;
  double rho_;
  const Vector* factor_;  // G
  Vector shape_;          // G G', its lower triangle
  std::vector<Index> sizes_;
  std::vector<std::vector<std::size_t>> parents_;
  std::vector<Vector> diagonal_, unit_, error_, squares_;  // by node
};

bool usable(const UnitNetwork& net, const Multipliers& t, double rho) {
  if (!(rho > 0) || !std::isfinite(rho) || t.size() + 2 != net.nodes.size()) return false;
  for (std::size_t k = 0; k < t.size(); ++k) {
    if (static_cast<Index>(t[k].size()) != net.nodes[k + 1].size) return false;
    for (const double e : t[k]) {
      if (!(e >= 0) || !std::isfinite(e)) return false;
    }
  }
  return true;
}

}  // namespace

bool proves(const UnitNetwork& network, const Multipliers& multipliers, double rho,
            const std::function<bool()>& stop, bool portable_margin) {
  if (network.nodes.empty()) return multipliers.empty() && rho >= 0;
  return usable(network, multipliers, rho) &&
         Form(network, &multipliers, rho).is_positive(stop, portable_margin);
}

bool proves_ellipsoid(const UnitNetwork& network, const Multipliers& multipliers,
                      const std::vector<double>& factor, const std::function<bool()>& stop,
                      bool portable_margin) {
  if (network.nodes.empty() || !usable(network, multipliers, 1)) return false;
  const auto n = static_cast<std::size_t>(network.nodes.back().size);
  if (factor.size() != n * n || !all_finite(std::ssize(factor), factor.data())) return false;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::any_of(factor.begin() + static_cast<Index>(i * n + i + 1),
                    factor.begin() + static_cast<Index>(i * n + n),
                    [](double e) { return e != 0; }))
      return false;
  }
  return Form(network, &multipliers, 1, &factor).is_positive(stop, portable_margin);
}

std::vector<double> smallest_ellipsoid(const UnitNetwork& network, const Multipliers& multipliers,
                                       const std::function<bool()>& stop) {
  if (network.nodes.empty() || !usable(network, multipliers, 1)) return {};
  const auto n = static_cast<std::size_t>(network.nodes.back().size);
  const Vector none(n * n, 0);
  Vector factor = Form(network, &multipliers, 1, &none).smallest_shape(stop);
  if (factor.empty() ||
      !cholesky(std::ssize(none) / static_cast<Index>(n), factor.data(), static_cast<Index>(n)))
    return {};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) factor[i * n + j] = 0;
  }
  return factor;
}

BlockCost proof_cost(const UnitNetwork& network) {
  if (network.nodes.empty()) return {};
  const Form form(network, nullptr, 1);
  const BlockCost cost = block_cost(form), squares = form.squares_cost();
  return {cost.doubles + squares.doubles, cost.operations + squares.operations};
}

double constant_up(const UnitNetwork& network, double rho) {
  const double scaled = std::ldexp(sqrt_up(rho), network.exponent);
  if (rho == 0) return 0;
  return scaled < 0x1p-900 ? add_up(scaled, kMinSubnormal) : scaled;
}

}  // namespace lipscope
