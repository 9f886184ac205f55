// SPDX-License-Identifier: Apache-2.0
#include "search/multiplier_search.h"

#include <algorithm>
#include <cmath>

#include "base/checkpoint.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/cholesky.h"
#include "net/small.h"

namespace lipscope {
namespace {

double norm_of(const double* row, std::size_t n = MultiplierSearch::kRank) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += row[i] * row[i];
  return std::sqrt(sum);
}

// C with C C' near W W', square: what matters of a first layer with many inputs.
std::vector<double> square_root_of_gram(const DenseLayer& layer) {
  const Index n = layer.out;
  std::vector<double> gram(to_size(n * n));
  gemm(n, n, layer.in, 1.0, {layer.weights.data(), layer.in},
       {layer.weights.data(), layer.in, true}, 0.0, gram.data(), n);
  double trace = 0;
  for (Index i = 0; i < n; ++i) trace += gram[to_size(i * (n + 1))];
  for (Index i = 0; i < n; ++i) gram[to_size(i * (n + 1))] += 1e-14 * trace;
  const bool good = cholesky(n, gram.data(), n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = i + 1; j < n; ++j) gram[to_size(i * n + j)] = 0;
  }
  return good ? gram : std::vector<double>{};
}

}  // namespace

MultiplierSearch::MultiplierSearch(const LayeredNet& net, std::optional<Index> row) {
  for (std::size_t k = 0; k < net.layers.size(); ++k) {
    const DenseLayer& layer = net.layers[k];
    Map map{layer.out, layer.in, layer.weights};
    if (k + 1 == net.layers.size() && row) {
      map.rows = 1;
      map.weights.assign(layer.row(*row), layer.row(*row) + layer.in);
    }
    if (k == 0 && layer.in > layer.out && map.rows == layer.out) {
      std::vector<double> root = square_root_of_gram(layer);
      if (!root.empty()) map = {layer.out, layer.out, std::move(root)};
    }
    maps_.push_back(std::move(map));
  }
  std::mt19937_64 rng{7};
  std::normal_distribution<double> normal;
  for (const Map& map : maps_) {
    turn_.emplace_back(to_size(map.cols) * kRank);
    for (double& e : turn_.back()) e = normal(rng);
    normalise(turn_.back(), turn_.size() == 1);
    before_.emplace_back(to_size(map.rows) * kRank);
  }
  last_turn_ = turn_;
  after_ = turn_;
  pull_ = turn_;
  middle_.resize(net.hidden());
  reach_.resize(net.hidden());
}

void MultiplierSearch::restrict_to(const Slopes& slopes) {
  for (std::size_t k = 0; k < slopes.size(); ++k) {
    middle_[k].resize(slopes[k].size());
    reach_[k].resize(slopes[k].size());
    for (std::size_t i = 0; i < slopes[k].size(); ++i) {
      middle_[k][i] = 0.5 * (slopes[k][i].lo + slopes[k][i].hi);
      reach_[k][i] = 0.5 * (slopes[k][i].hi - slopes[k][i].lo);
    }
  }
  value_ = 0;
  since_restart_ = 0;
  last_turn_ = turn_;
}

void MultiplierSearch::apply(const Map& map, const Block& from, Block& to) {
  for (std::size_t i = 0; i < to_size(map.rows); ++i) {
    const double* row = &map.weights[i * to_size(map.cols)];
    double sum[kRank] = {};
    for (std::size_t j = 0; j < to_size(map.cols); ++j) {
      for (std::size_t c = 0; c < kRank; ++c) sum[c] += row[j] * from[j * kRank + c];
    }
    std::copy_n(sum, kRank, &to[i * kRank]);
  }
}

void MultiplierSearch::apply_back(const Map& map, const Block& from, Block& to) {
  std::ranges::fill(to, 0);
  for (std::size_t i = 0; i < to_size(map.rows); ++i) {
    const double* row = &map.weights[i * to_size(map.cols)];
    const double* x = &from[i * kRank];
    for (std::size_t j = 0; j < to_size(map.cols); ++j) {
      for (std::size_t c = 0; c < kRank; ++c) to[j * kRank + c] += row[j] * x[c];
    }
  }
}

void MultiplierSearch::normalise(Block& block, bool as_whole) {
  const std::size_t length = as_whole ? block.size() : kRank;
  for (std::size_t i = 0; i < block.size(); i += length) {
    const double norm = norm_of(&block[i], length);
    if (!(norm > 0)) continue;
    for (std::size_t j = i; j < i + length; ++j) block[j] /= norm;
  }
}

void MultiplierSearch::forward() {
  for (std::size_t k = 0; k < maps_.size(); ++k) {
    apply(maps_[k], k == 0 ? turn_[0] : after_[k], before_[k]);
    if (k + 1 == maps_.size()) break;
    const Block& v = before_[k];
    Block& out = after_[k + 1];
    for (std::size_t i = 0; i < middle_[k].size(); ++i) {
      const std::size_t from = i * kRank;
      const double reach = reach_[k][i] > 0 ? reach_[k][i] * norm_of(&v[from]) : 0;
      for (std::size_t j = from; j < from + kRank; ++j)
        out[j] = middle_[k][i] * v[j] + reach * turn_[k + 1][j];
    }
  }
  const Block& y = before_.back();
  value_ = norm_of(y.data(), y.size());
}

// pull_[k]: by the entries behind the units of layer k - 1.
void MultiplierSearch::backward() {
  Block g = before_.back();
  for (std::size_t k = maps_.size(); k-- > 0;) {
    if (k == 0) first_gradient_ = g;
    apply_back(maps_[k], g, pull_[k]);
    if (k == 0) break;
    g = pull_[k];
    const Block& v = before_[k - 1];
    for (std::size_t i = 0; i < middle_[k - 1].size(); ++i) {
      const std::size_t from = i * kRank;
      const double size = norm_of(&g[from]), length = norm_of(&v[from]);
      const double turned = length > 0 ? reach_[k - 1][i] * size / length : 0;
      for (std::size_t j = from; j < from + kRank; ++j) {
        if (size > 0) turn_[k][j] = g[j] / size;
        g[j] = middle_[k - 1][i] * g[j] + turned * v[j];
      }
    }
  }
  const double size = norm_of(pull_[0].data(), pull_[0].size());
  if (!(size > 0)) return;
  turn_[0] = pull_[0];
  normalise(turn_[0], true);
}

double MultiplierSearch::step() {
  double entries = 0;
  for (const Map& map : maps_) entries += static_cast<double>(map.rows * map.cols);
  charge(static_cast<double>(kRank) * entries);
  const double before = value_;
  ++since_restart_;
  const double momentum = since_restart_ < 3 ? 0 : (since_restart_ - 2.0) / (since_restart_ + 1.0);
  for (std::size_t k = 0; k < turn_.size(); ++k) {
    Block &now = turn_[k], &last = last_turn_[k];
    for (std::size_t i = 0; i < now.size(); ++i) {
      const double here = now[i];
      now[i] += momentum * (here - last[i]);
      last[i] = here;
    }
    normalise(now, k == 0);
  }
  forward();
  if (value_ < before && since_restart_ > 2) {
    turn_ = last_turn_;
    since_restart_ = 0;
    forward();
  }
  backward();
  return value_;
}

Multipliers MultiplierSearch::multipliers(double margin) const {
  Multipliers result(middle_.size());
  const double rho = value_ * value_;
  double raise = 1;
  for (std::size_t k = 0; k < middle_.size(); ++k) {
    raise *= (1 + margin) * (1 + margin);
    result[k].resize(middle_[k].size());
    double most = 0;
    for (std::size_t i = 0; i < middle_[k].size(); ++i) {
      const double v = norm_of(&before_[k][i * kRank]), g = norm_of(&pull_[k + 1][i * kRank]);
      const double s = raise * rho * v / (reach_[k][i] * g);
      result[k][i] = reach_[k][i] > 0 && std::isfinite(s) ? s : 0;
      most = std::max(most, result[k][i]);
    }
    // Not determined by the dual.
    for (double& s : result[k]) s = s > 1e-12 * most ? s : 0;
  }
  return result;
}

double MultiplierSearch::weight(UnitId unit) const {
  const auto [k, i] = unit;
  return reach_[k][i] * norm_of(&before_[k][i * kRank]) * norm_of(&pull_[k + 1][i * kRank]);
}

std::vector<float> MultiplierSearch::save() const {
  std::vector<float> state;
  for (const Block& block : turn_) state.insert(state.end(), block.begin(), block.end());
  return state;
}

void MultiplierSearch::load(const std::vector<float>& state) {
  auto from = state.begin();
  for (std::size_t k = 0; k < turn_.size(); ++k) {
    std::copy_n(from, turn_[k].size(), turn_[k].begin());
    from += std::ssize(turn_[k]);
    normalise(turn_[k], k == 0);
  }
  last_turn_ = turn_;
  value_ = 0;
  since_restart_ = 0;
}

}  // namespace lipscope
