// SPDX-License-Identifier: Apache-2.0
#include "estimate/lipsdp_dual.h"

#include <cmath>

#include "linalg/blas.h"

namespace lipscope {
namespace {

double row_norm(const double* row, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += row[i] * row[i];
  return std::sqrt(sum);
}

}  // namespace

LipsdpDual::LipsdpDual(const Chain& chain, Index rank) : chain_(chain), rank_(rank) {
  std::normal_distribution<double> normal;
  const auto random = [&](Index rows) {
    Block block(static_cast<std::size_t>(rows * rank_));
    for (double& e : block) e = normal(rng_);
    return block;
  };
  input_ = random(chain.inputs());
  normalise(input_, true);
  for (std::size_t k = 0; k < chain.slopes.size(); ++k) {
    turn_.push_back(random(chain.layers[k].rows));
    normalise(turn_.back(), false);
    std::vector<double> middle, radius;
    for (const Interval& s : chain.slopes[k]) {
      middle.push_back(0.5 * (s.lo + s.hi));
      radius.push_back(0.5 * (s.hi - s.lo));
    }
    middle_.push_back(std::move(middle));
    radius_.push_back(std::move(radius));
  }
  last_input_ = input_;
  last_turn_ = turn_;
  before_.resize(turn_.size());
  after_.resize(turn_.size());
  pull_.resize(turn_.size());
}

void LipsdpDual::normalise(Block& block, bool as_whole) const {
  const Index length = as_whole ? static_cast<Index>(block.size()) : rank_;
  for (std::size_t i = 0; i < block.size(); i += static_cast<std::size_t>(length)) {
    const double norm = row_norm(&block[i], length);
    if (!(norm > 0)) continue;
    for (Index j = 0; j < length; ++j) block[i + static_cast<std::size_t>(j)] /= norm;
  }
}

void LipsdpDual::forward() {
  const Block* x = &input_;
  for (std::size_t k = 0; k < turn_.size(); ++k) {
    const ChainLayer& layer = chain_.layers[k];
    Block& v = before_[k];
    v.resize(static_cast<std::size_t>(layer.rows * rank_));
    gemm(layer.rows, rank_, layer.cols, 1.0, {layer.weights.data(), layer.cols}, {x->data(), rank_},
         0.0, v.data(), rank_);
    Block& out = after_[k];
    out.resize(v.size());
    for (Index i = 0; i < layer.rows; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const auto at = static_cast<std::size_t>(i * rank_);
      const double reach = radius_[k][row] * row_norm(&v[at], rank_);
      for (std::size_t j = at; j < at + static_cast<std::size_t>(rank_); ++j)
        out[j] = middle_[k][row] * v[j] + reach * turn_[k][j];
    }
    x = &out;
  }
  const ChainLayer& last = chain_.layers.back();
  output_.resize(static_cast<std::size_t>(last.rows * rank_));
  gemm(last.rows, rank_, last.cols, 1.0, {last.weights.data(), last.cols}, {x->data(), rank_}, 0.0,
       output_.data(), rank_);
  const double norm = row_norm(output_.data(), static_cast<Index>(output_.size()));
  value_ = norm * norm;
}

void LipsdpDual::backward() {
  const auto pulled = [&](const ChainLayer& layer, const Block& from) {
    Block g(static_cast<std::size_t>(layer.cols * rank_));
    gemm(layer.cols, rank_, layer.rows, 1.0, {layer.weights.data(), layer.cols, true},
         {from.data(), rank_}, 0.0, g.data(), rank_);
    return g;
  };
  Block g = pulled(chain_.layers.back(), output_);
  for (std::size_t k = turn_.size(); k-- > 0;) {
    pull_[k] = g;
    Block turned = g;
    normalise(turned, false);
    for (std::size_t i = 0; i < middle_[k].size(); ++i) {
      const std::size_t at = i * static_cast<std::size_t>(rank_);
      const double size = row_norm(&g[at], rank_), v = row_norm(&before_[k][at], rank_);
      for (std::size_t j = at; j < at + static_cast<std::size_t>(rank_); ++j) {
        if (size > 0) turn_[k][j] = turned[j];
        g[j] = middle_[k][i] * g[j] + (v > 0 ? radius_[k][i] * size * before_[k][j] / v : 0);
      }
    }
    g = pulled(chain_.layers[k], g);
  }
  normalise(g, true);
  if (row_norm(g.data(), static_cast<Index>(g.size())) > 0) input_ = std::move(g);
}

void LipsdpDual::extrapolate(double momentum) {
  const auto ahead = [&](Block& now, Block& last, bool as_whole) {
    Block next(now.size());
    for (std::size_t i = 0; i < now.size(); ++i) next[i] = now[i] + momentum * (now[i] - last[i]);
    last = now;
    now = std::move(next);
    normalise(now, as_whole);
  };
  ahead(input_, last_input_, true);
  for (std::size_t k = 0; k < turn_.size(); ++k) ahead(turn_[k], last_turn_[k], false);
}

double LipsdpDual::step() {
  const double before = value_;
  ++since_restart_;
  const double momentum = since_restart_ < 3 ? 0 : (since_restart_ - 2.0) / (since_restart_ + 1.0);
  extrapolate(momentum);
  forward();
  if (value_ < before && since_restart_ > 2) {
    input_ = last_input_;
    turn_ = last_turn_;
    since_restart_ = 0;
    forward();
  }
  backward();
  return value_;
}

void LipsdpDual::grow(Index rank) {
  std::normal_distribution<double> normal;
  const auto widened = [&](const Block& old) {
    const std::size_t rows = old.size() / static_cast<std::size_t>(rank_);
    Block block(rows * static_cast<std::size_t>(rank));
    for (std::size_t i = 0; i < rows; ++i) {
      const double size = row_norm(&old[i * static_cast<std::size_t>(rank_)], rank_);
      for (Index j = 0; j < rank; ++j) {
        block[i * static_cast<std::size_t>(rank) + static_cast<std::size_t>(j)] =
            j < rank_ ? old[i * static_cast<std::size_t>(rank_) + static_cast<std::size_t>(j)]
                      : 0.05 * size * normal(rng_);
      }
    }
    return block;
  };
  input_ = widened(input_);
  for (Block& block : turn_) block = widened(block);
  rank_ = rank;
  normalise(input_, true);
  for (Block& block : turn_) normalise(block, false);
  last_input_ = input_;
  last_turn_ = turn_;
  since_restart_ = 0;
  value_ = 0;
}

std::vector<std::vector<double>> LipsdpDual::scales() const {
  std::vector<std::vector<double>> all;
  for (std::size_t k = 0; k < turn_.size(); ++k) {
    std::vector<double> scales;
    for (std::size_t i = 0; i < middle_[k].size(); ++i) {
      const std::size_t at = i * static_cast<std::size_t>(rank_);
      const double v = row_norm(&before_[k][at], rank_), g = row_norm(&pull_[k][at], rank_);
      const double s = value_ * v / (radius_[k][i] * g);
      scales.push_back(v > 0 && g > 0 && std::isfinite(s) ? s : 0);
    }
    all.push_back(std::move(scales));
  }
  return all;
}

}  // namespace lipscope
