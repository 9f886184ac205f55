// SPDX-License-Identifier: Apache-2.0
#include "estimate/lipsdp_dual.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/checkpoint.h"
#include "base/parallel.h"
#include "linalg/tensor/blas.h"

namespace lipscope {
namespace {

// Several sums side by side: one alone waits for each of its additions.
double norm_of(const double* row, Index n) {
  constexpr Index kLanes = 4;
  std::array<double, kLanes> part{};
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (Index lane = 0; lane < kLanes; ++lane)
      part[static_cast<std::size_t>(lane)] += row[i + lane] * row[i + lane];
  }
  double sum = (part[0] + part[1]) + (part[2] + part[3]);
  for (; i < n; ++i) sum += row[i] * row[i];
  return std::sqrt(sum);
}

void normalise_row(double* row, Index n) {
  const double norm = norm_of(row, n);
  if (!(norm > 0)) return;
  for (Index i = 0; i < n; ++i) row[i] /= norm;
}

// A power of two that no entry is beyond, or 0 where none is above 0.
double reach_of(const std::vector<double>& block) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> part{};
  const auto take = [&](std::size_t i, std::size_t lane) {
    const double e = std::fabs(block[i]);
    part[lane] = part[lane] < e ? e : part[lane];
  };
  std::size_t i = 0;
  for (; i + kLanes <= block.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(i + lane, lane);
  }
  for (; i < block.size(); ++i) take(i, 0);
  const double largest = *std::ranges::max_element(part);
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, std::clamp(exponent, -1000, 1000));
}

// Calls body(begin, end) for pieces of rows, each of so many entries that a thread is worth it.
template <class Body>
void for_row_pieces(Index rows, Index rank, Body&& body) {
  constexpr Index kEntries = Index{1} << 15;
  charge(3 * static_cast<double>(rows) * static_cast<double>(rank));
  parallel_for(rows, std::max<Index>(1, kEntries / rank), body);
}

}  // namespace

LipsdpDual::LipsdpDual(const UnitNetwork& network, Index rank, DualAim aim)
    : net_(network), aim_(aim), rank_(rank) {
  std::normal_distribution<double> normal;
  const std::size_t count = net_.nodes.size();
  for (const UnitNode& node : net_.nodes) {
    std::vector<double> middle, radius;
    for (const Interval& s : node.slopes) {
      middle.push_back(0.5 * (s.lo + s.hi));
      radius.push_back(0.5 * (s.hi - s.lo));
    }
    middle_.push_back(std::move(middle));
    radius_.push_back(std::move(radius));
    back_.emplace_back();
    for (const UnitNode::Edge& edge : node.edges)
      back_.back().push_back(edge.map.dense() ? RowMatrix{} : transposed(edge.map));
  }
  constexpr Index kLarge = 4000;  // entries
  if (net_.size() > kLarge) make_rough();
  for (std::size_t k = 0; k + 1 < count; ++k) {
    turn_.emplace_back();
    clear(turn_.back(), k);
    for (double& e : turn_.back()) e = normal(rng_);
    normalise(turn_.back(), k == 0);
  }
  last_turn_ = turn_;
  before_.resize(count);
  after_.resize(count);
  pull_.resize(count);
}

void LipsdpDual::make_rough() {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const UnitNode& node : net_.nodes) {
    for (std::size_t e = 0; e < node.edges.size(); ++e) places.emplace_back(rough_.size(), e);
    rough_.emplace_back(node.edges.size());
  }
  parallel_for(std::ssize(places), 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto [k, e] = places[static_cast<std::size_t>(i)];
      const RowMatrix& map = net_.nodes[k].edges[e].map;
      if (map.dense()) rough_[k][e].assign(map.weights.begin(), map.weights.end());
    }
  });
}

void LipsdpDual::clear(Block& block, std::size_t node) const {
  block.assign(static_cast<std::size_t>(net_.nodes[node].size * rank_), 0);
}

void LipsdpDual::apply(std::size_t node, std::size_t edge, const Block& from, Block& to,
                       bool adjoint) {
  const RowMatrix& map = net_.nodes[node].edges[edge].map;
  if (!map.dense()) {
    add_product(adjoint ? back_[node][edge] : map, from.data(), rank_, to.data());
  } else if (precise()) {
    (adjoint ? add_transposed_product : add_product)(map, from.data(), rank_, to.data());
  } else {
    const Index rows = adjoint ? map.cols : map.rows, inner = adjoint ? map.rows : map.cols;
    // Blocks of deep networks have sizes beyond those of floats.
    const double size = reach_of(from);
    if (size == 0) return;
    const double factor = 1 / size;
    rough_from_.resize(from.size());
    rough_to_.resize(to.size());
    for_row_pieces(inner, rank_, [&](Index begin, Index end) {
      for (Index i = begin * rank_; i < end * rank_; ++i)
        rough_from_[static_cast<std::size_t>(i)] =
            static_cast<float>(from[static_cast<std::size_t>(i)] * factor);
    });
    const float* weights = rough_[node][edge].data();
    gemm(rows, rank_, inner, 1.0F, {weights, map.cols, adjoint}, {rough_from_.data(), rank_}, 0.0F,
         rough_to_.data(), rank_);
    for_row_pieces(rows, rank_, [&](Index begin, Index end) {
      for (Index i = begin * rank_; i < end * rank_; ++i)
        to[static_cast<std::size_t>(i)] +=
            size * static_cast<double>(rough_to_[static_cast<std::size_t>(i)]);
    });
  }
}

void LipsdpDual::normalise(Block& block, bool as_whole) const {
  const Index length = as_whole ? static_cast<Index>(block.size()) : rank_;
  const Index rows = length > 0 ? static_cast<Index>(block.size()) / length : 0;
  for_row_pieces(rows, std::max<Index>(1, length), [&](Index from, Index to) {
    for (Index i = from; i < to; ++i) normalise_row(block.data() + i * length, length);
  });
}

void LipsdpDual::forward() {
  for (std::size_t k = 1; k < net_.nodes.size(); ++k) {
    Block& v = before_[k];
    clear(v, k);
    for (std::size_t e = 0; e < net_.nodes[k].edges.size(); ++e) {
      const std::size_t from = net_.nodes[k].edges[e].from;
      apply(k, e, from == 0 ? turn_[0] : after_[from], v, false);
    }
    if (k + 1 == net_.nodes.size()) break;
    Block& out = after_[k];
    out.resize(v.size());
    for_row_pieces(net_.nodes[k].size, rank_, [&](Index from, Index to) {
      for (Index i = from; i < to; ++i) {
        const auto row = static_cast<std::size_t>(i);
        const auto at = static_cast<std::size_t>(i * rank_);
        const double reach = radius_[k][row] * norm_of(&v[at], rank_);
        for (std::size_t j = at; j < at + static_cast<std::size_t>(rank_); ++j)
          out[j] = middle_[k][row] * v[j] + reach * turn_[k][j];
      }
    });
  }
  const Block& y = before_.back();
  const double size =
      aim_ == DualAim::kTrace ? trace() : norm_of(y.data(), static_cast<Index>(y.size()));
  value_ = size * size;
}

double LipsdpDual::trace() const {
  double sum = 0;
  for (Index i = 0; i < net_.nodes.back().size; ++i)
    sum += before_.back()[static_cast<std::size_t>(i * (rank_ + 1))];
  return sum;
}

void LipsdpDual::backward() {
  const std::size_t last = net_.nodes.size() - 1;
  for (std::size_t k = 0; k < last; ++k) clear(pull_[k], k);
  if (aim_ == DualAim::kTrace) {
    clear(pull_[last], last);
    const double size = trace();
    for (Index i = 0; i < net_.nodes[last].size; ++i)
      pull_[last][static_cast<std::size_t>(i * (rank_ + 1))] = size;
  } else {
    pull_[last] = before_[last];
  }
  for (std::size_t k = last; k > 0; --k) {
    Block& g = pulled_;
    g = pull_[k];
    if (k < last) {
      for_row_pieces(net_.nodes[k].size, rank_, [&](Index from, Index to) {
        for (Index row = from; row < to; ++row) {
          const auto i = static_cast<std::size_t>(row);
          const std::size_t at = i * static_cast<std::size_t>(rank_);
          const double size = norm_of(&g[at], rank_), v = norm_of(&before_[k][at], rank_);
          const double turned = v > 0 ? radius_[k][i] * size / v : 0;
          for (std::size_t j = at; j < at + static_cast<std::size_t>(rank_); ++j) {
            if (size > 0) turn_[k][j] = g[j] / size;
            g[j] = middle_[k][i] * g[j] + turned * before_[k][j];
          }
        }
      });
    }
    for (std::size_t e = 0; e < net_.nodes[k].edges.size(); ++e)
      apply(k, e, g, pull_[net_.nodes[k].edges[e].from], true);
  }
  Block& x = pull_[0];
  normalise(x, true);
  if (norm_of(x.data(), static_cast<Index>(x.size())) > 0) turn_[0] = x;
}

void LipsdpDual::extrapolate(double momentum) {
  for (std::size_t k = 0; k < turn_.size(); ++k) {
    Block &now = turn_[k], &last = last_turn_[k];
    for_row_pieces(net_.nodes[k].size, rank_, [&](Index from, Index to) {
      for (Index row = from; row < to; ++row) {
        double *const a = now.data() + row * rank_, *const b = last.data() + row * rank_;
        for (Index j = 0; j < rank_; ++j) {
          const double here = a[j];
          a[j] += momentum * (here - b[j]);
          b[j] = here;
        }
        if (k > 0) normalise_row(a, rank_);
      }
    });
    if (k == 0) normalise(now, true);
  }
}

double LipsdpDual::step() {
  const double before = value_;
  ++since_restart_;
  const double momentum = since_restart_ < 3 ? 0 : (since_restart_ - 2.0) / (since_restart_ + 1.0);
  extrapolate(momentum);
  forward();
  if (value_ < before && since_restart_ > 2) {
    turn_ = last_turn_;
    since_restart_ = 0;
    forward();
  }
  backward();
  remember_multipliers();
  return value_;
}

void LipsdpDual::grow(Index rank) {
  std::normal_distribution<double> normal;
  const auto old_rank = static_cast<std::size_t>(rank_), new_rank = static_cast<std::size_t>(rank);
  for (Block& old : turn_) {
    const std::size_t rows = old.size() / old_rank;
    Block block(rows * new_rank);
    for (std::size_t i = 0; i < rows; ++i) {
      const double size = norm_of(&old[i * old_rank], rank_);
      for (std::size_t j = 0; j < new_rank; ++j)
        block[i * new_rank + j] = j < old_rank ? old[i * old_rank + j] : 0.05 * size * normal(rng_);
    }
    old = std::move(block);
  }
  rank_ = rank;
  for (std::size_t k = 0; k < turn_.size(); ++k) normalise(turn_[k], k == 0);
  last_turn_ = turn_;
  since_restart_ = 0;
  value_ = 0;
}

void LipsdpDual::remember_multipliers() {
  constexpr double kForgotten = 1e-10;  // of the largest |v||G| of a node
  multipliers_.resize(turn_.size() - 1);
  for (std::size_t k = 1; k < turn_.size(); ++k) {
    const std::size_t n = middle_[k].size();
    std::vector<double>& layer = multipliers_[k - 1];
    layer.resize(n, 0);
    std::vector<double> v(n), g(n);
    for_row_pieces(static_cast<Index>(n), rank_, [&](Index from, Index to) {
      for (Index row = from; row < to; ++row) {
        const auto i = static_cast<std::size_t>(row);
        v[i] = norm_of(before_[k].data() + row * rank_, rank_);
        g[i] = norm_of(pull_[k].data() + row * rank_, rank_);
      }
    });
    double most = 0;
    for (std::size_t i = 0; i < n; ++i) most = std::max(most, v[i] * g[i]);
    for (std::size_t i = 0; i < n; ++i) {
      const double t = g[i] / (2 * radius_[k][i] * v[i]);
      const bool seen = v[i] > 0 && g[i] > 0 && std::isfinite(t);
      if (seen && (layer[i] == 0 || v[i] * g[i] > kForgotten * most)) layer[i] = t;
    }
  }
}

}  // namespace lipscope
