// SPDX-License-Identifier: Apache-2.0
#include "linalg/norm/block_order.h"

#include <algorithm>
#include <numeric>

namespace lipscope {
namespace {

using Coupled = std::vector<std::vector<bool>>;

Coupled couplings(const BlockSource& matrix) {
  const std::size_t n = matrix.sizes().size();
  Coupled coupled(n, std::vector<bool>(n, false));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) coupled[i][j] = coupled[j][i] = matrix.couples(i, j);
  }
  return coupled;
}

// Blocks that may be thin together: greedily in the order of `candidates`.
std::vector<bool> independent(const BlockSource& matrix, const Coupled& coupled,
                              const std::vector<std::size_t>& candidates) {
  std::vector<bool> chosen(matrix.sizes().size(), false);
  for (const std::size_t k : candidates) {
    bool free = matrix.is_diagonal(k);
    for (std::size_t i = 0; free && i < chosen.size(); ++i) free = !(chosen[i] && coupled[i][k]);
    chosen[k] = free;
  }
  return chosen;
}

}  // namespace

BlockOrder::BlockOrder(const BlockSource& matrix) {
  const std::vector<Index>& sizes = matrix.sizes();
  const Coupled coupled = couplings(matrix);
  std::vector<std::size_t> all(sizes.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  *this =
      BlockOrder(matrix, coupled,
                 independent(matrix, coupled, {all.begin(), all.begin() + (all.empty() ? 0 : 1)}));
  std::ranges::stable_sort(all, [&](std::size_t i, std::size_t j) { return sizes[i] > sizes[j]; });
  // The widest few, more and more of them.
  for (std::size_t most = 1; most <= all.size(); most *= 2) {
    const std::vector<std::size_t> widest(all.begin(), all.begin() + static_cast<Index>(most));
    BlockOrder other(matrix, coupled, independent(matrix, coupled, widest));
    if (other.cost_.operations < cost_.operations) *this = std::move(other);
  }
}

BlockOrder::BlockOrder(const BlockSource& matrix, const Coupled& coupled,
                       const std::vector<bool>& thin) {
  const std::size_t n = thin.size();
  std::vector<bool> placed(n, false);
  const auto place = [&](std::size_t k) {
    nodes_.push_back(k);
    thin_.push_back(thin[k]);
    placed[k] = true;
  };
  for (std::size_t k = 0; k < n; ++k) {
    if (thin[k]) continue;
    for (std::size_t i = 0; i < n; ++i) {
      if (thin[i] && !placed[i] && coupled[i][k]) place(i);
    }
    place(k);
  }
  for (std::size_t k = 0; k < n; ++k) {
    if (!placed[k]) place(k);  // thin, without neighbours
  }
  find_pattern(coupled);
  find_cost(matrix);
}

void BlockOrder::find_pattern(const Coupled& coupled) {
  const std::size_t n = count();
  below_.resize(n);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = j + 1; i < n; ++i) {
      if (coupled[nodes_[i]][nodes_[j]]) below_[j].insert(i);
    }
    // Eliminating j joins the blocks it is coupled to; pairs are remembered in their first member.
    for (const std::size_t i : below_[j]) {
      for (const std::size_t other : below_[j]) {
        if (other > i) below_[i].insert(other);
      }
    }
  }
}

void BlockOrder::find_cost(const BlockSource& matrix) {
  const auto size = [&](std::size_t place) {
    return static_cast<double>(matrix.sizes()[nodes_[place]]);
  };
  // Multiplications one by one, not in blocks that stay in the cache.
  constexpr double kSparse = 10;
  const auto entries = [&](std::size_t i, std::size_t j) {
    return matrix.entries(std::max(nodes_[i], nodes_[j]), std::min(nodes_[i], nodes_[j]));
  };
  std::set<std::pair<std::size_t, std::size_t>> live;
  for (std::size_t k = 0; k < count(); ++k) {
    if (!thin_[k]) {
      live.insert({k, k});
      cost_.operations += size(k) * size(k) * size(k) / 6;
    }
    for (const std::size_t i : below_[k]) {
      if (!thin_[k]) {
        live.insert({i, k});
        cost_.operations += size(i) * size(k) * size(k) / 2;
      }
      for (const std::size_t j : below_[k]) {
        if (j > i) continue;
        live.insert({i, j});
        double products = size(i) * size(j) * size(k);
        if (thin_[k]) {
          const double some = kSparse * entries(i, k) * entries(j, k) / std::max(size(k), 1.0);
          products = std::min(products, some);
        }
        cost_.operations += products * (i == j ? 0.5 : 1);
      }
    }
    double held = 0;
    for (const auto& [i, j] : live) held += size(i) * size(j);
    cost_.doubles = std::max(cost_.doubles, held);
    std::erase_if(live, [&](const auto& block) { return block.second == k; });
  }
}

}  // namespace lipscope
