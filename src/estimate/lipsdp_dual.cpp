// SPDX-License-Identifier: Apache-2.0
#include "estimate/lipsdp_dual.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "linalg/blas.h"

namespace lipscope {
namespace {

double norm_of(const double* row, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += row[i] * row[i];
  return std::sqrt(sum);
}

constexpr Index kGrain = 8192;  // rows

}  // namespace

LipsdpDual::LipsdpDual(const SdpNetwork& network, Index rank) : net_(network), rank_(rank) {
  std::normal_distribution<double> normal;
  const std::size_t count = net_.nodes.size();
  for (const SdpNode& node : net_.nodes) {
    std::vector<double> middle, radius;
    for (const Interval& s : node.slopes) {
      middle.push_back(0.5 * (s.lo + s.hi));
      radius.push_back(0.5 * (s.hi - s.lo));
    }
    middle_.push_back(std::move(middle));
    radius_.push_back(std::move(radius));
    back_.emplace_back();
    for (const SdpNode::Edge& edge : node.edges)
      back_.back().push_back(edge.map.dense() ? RowMatrix{} : transposed(edge.map));
  }
  constexpr Index kLarge = 4000;  // entries
  for (std::size_t k = 0; net_.size() > kLarge && k < count; ++k) {
    rough_.emplace_back();
    for (const SdpNode::Edge& edge : net_.nodes[k].edges)
      rough_.back().emplace_back(
          edge.map.dense() ? edge.map.weights.begin() : edge.map.weights.end(),
          edge.map.weights.end());
  }
  for (std::size_t k = 0; k + 1 < count; ++k) {
    turn_.push_back(zeros(k));
    for (double& e : turn_.back()) e = normal(rng_);
    normalise(turn_.back(), k == 0);
  }
  last_turn_ = turn_;
  before_.resize(count);
  after_.resize(count);
  pull_.resize(count);
}

LipsdpDual::Block LipsdpDual::zeros(std::size_t node) const {
  return Block(static_cast<std::size_t>(net_.nodes[node].size * rank_), 0);
}

void LipsdpDual::apply(std::size_t node, std::size_t edge, const Block& from, Block& to,
                       bool adjoint) const {
  const RowMatrix& map = net_.nodes[node].edges[edge].map;
  if (!map.dense()) {
    add_product(adjoint ? back_[node][edge] : map, from.data(), rank_, to.data());
  } else if (precise()) {
    (adjoint ? add_transposed_product : add_product)(map, from.data(), rank_, to.data());
  } else {
    const Index rows = adjoint ? map.cols : map.rows, inner = adjoint ? map.rows : map.cols;
    // Blocks of deep networks have sizes beyond those of floats.
    double size = 0;
    for (const double e : from) size = std::max(size, std::fabs(e));
    if (!(size > 0)) return;
    std::vector<float> x(from.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(from[i] / size);
    std::vector<float> y(to.size());
    const float* weights = rough_[node][edge].data();
    gemm(rows, rank_, inner, 1.0F, {weights, map.cols, adjoint}, {x.data(), rank_}, 0.0F, y.data(),
         rank_);
    for (std::size_t i = 0; i < y.size(); ++i) to[i] += size * static_cast<double>(y[i]);
  }
}

void LipsdpDual::normalise(Block& block, bool as_whole) const {
  const Index length = as_whole ? static_cast<Index>(block.size()) : rank_;
  const Index rows = length > 0 ? static_cast<Index>(block.size()) / length : 0;
  parallel_for(rows, kGrain, [&](Index from, Index to) {
    for (Index i = from; i < to; ++i) {
      double* row = block.data() + i * length;
      const double norm = norm_of(row, length);
      if (!(norm > 0)) continue;
      for (Index j = 0; j < length; ++j) row[j] /= norm;
    }
  });
}

void LipsdpDual::forward() {
  for (std::size_t k = 1; k < net_.nodes.size(); ++k) {
    Block& v = before_[k];
    v = zeros(k);
    for (std::size_t e = 0; e < net_.nodes[k].edges.size(); ++e) {
      const std::size_t from = net_.nodes[k].edges[e].from;
      apply(k, e, from == 0 ? turn_[0] : after_[from], v, false);
    }
    if (k + 1 == net_.nodes.size()) break;
    Block& out = after_[k];
    out.resize(v.size());
    parallel_for(net_.nodes[k].size, kGrain, [&](Index from, Index to) {
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
  const double norm = norm_of(y.data(), static_cast<Index>(y.size()));
  value_ = norm * norm;
}

void LipsdpDual::backward() {
  const std::size_t last = net_.nodes.size() - 1;
  for (std::size_t k = 0; k < last; ++k) pull_[k] = zeros(k);
  pull_[last] = before_[last];
  for (std::size_t k = last; k > 0; --k) {
    Block g = pull_[k];
    if (k < last) {
      parallel_for(net_.nodes[k].size, kGrain, [&](Index from, Index to) {
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
    for (std::size_t i = 0; i < now.size(); ++i) {
      const double here = now[i];
      now[i] += momentum * (here - last[i]);
      last[i] = here;
    }
    normalise(now, k == 0);
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
    double most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = i * static_cast<std::size_t>(rank_);
      v[i] = norm_of(&before_[k][at], rank_);
      g[i] = norm_of(&pull_[k][at], rank_);
      most = std::max(most, v[i] * g[i]);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double t = g[i] / (2 * radius_[k][i] * v[i]);
      const bool seen = v[i] > 0 && g[i] > 0 && std::isfinite(t);
      if (seen && (layer[i] == 0 || v[i] * g[i] > kForgotten * most)) layer[i] = t;
    }
  }
}

}  // namespace lipscope
