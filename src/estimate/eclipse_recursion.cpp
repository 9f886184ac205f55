// SPDX-License-Identifier: Apache-2.0
#include "estimate/eclipse_recursion.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "linalg/norm/definite.h"
#include "linalg/tensor/blas.h"
#include "linalg/tensor/cholesky.h"
#include "sdp/lmi.h"

namespace lipscope {
namespace {

using Dense = std::vector<double>;  // row-major

Dense zeros(Index rows, Index cols) { return Dense(static_cast<std::size_t>(rows * cols)); }

Dense transposed(const Dense& a, Index rows, Index cols) {
  Dense t(a.size());
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j)
      t[static_cast<std::size_t>(j * rows + i)] = a[static_cast<std::size_t>(i * cols + j)];
  }
  return t;
}

Dense identity(Index n) {
  Dense one = zeros(n, n);
  for (Index i = 0; i < n; ++i) one[static_cast<std::size_t>(i * (n + 1))] = 1;
  return one;
}

double top_eigenvalue(Index n, const Dense& symmetric) {
  const auto multiply = [&](const double* x, double* y) {
    gemv(n, n, 1.0, {symmetric.data(), n}, x, 1, 0.0, y, 1);
  };
  return lanczos(n, multiply, {}, n <= 1000 ? 1e-10 : 1e-7, 300).value;
}

// The recursion of [global-5]: Y holds what is known of the nodes that are still needed, block by
// block; without a block (i, i) it is the identity there.
class Recursion {
 public:
  explicit Recursion(const UnitNetwork& network) : nodes_(network.nodes), last_use_(nodes_.size()) {
    for (std::size_t k = 0; k < nodes_.size(); ++k) {
      for (const UnitNode::Edge& edge : nodes_[k].edges) last_use_[edge.from] = k;
    }
  }

  std::optional<ChainProof> run(const std::function<bool()>& stop) {
    live_ = {0};
    Multipliers scales;
    for (std::size_t k = 1; k < nodes_.size(); ++k) {
      if (stop && stop()) return std::nullopt;
      std::map<std::size_t, Dense> reach = reach_of(k);
      Dense p = spread(k, reach);
      const double top = top_eigenvalue(nodes_[k].size, p);
      if (!(top > 0) || !std::isfinite(top)) return std::nullopt;
      if (k + 1 == nodes_.size()) return finished(scales, top);
      scales.push_back(scales_of(nodes_[k], top));
      if (!pass(k, std::move(reach), std::move(p), scales.back())) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static double middle(Interval slope) { return slope.lo / 2 + slope.hi / 2; }
  static double half_width(Interval slope) { return slope.hi / 2 - slope.lo / 2; }

  // S of each entry.
  static Dense scales_of(const UnitNode& node, double top) {
    Dense s;
    for (const Interval slope : node.slopes) {
      const double ratio = std::fabs(middle(slope)) / half_width(slope);
      s.push_back(top * (1 + std::max(ratio, 1e-5)));  // S - P has to be definite
    }
    return s;
  }

  ChainProof finished(const Multipliers& scales, double rho) const {
    ChainProof proof{rho, scales};
    for (std::size_t k = 0; k < scales.size(); ++k) {
      for (std::size_t i = 0; i < scales[k].size(); ++i) {
        const double r = half_width(nodes_[k + 1].slopes[i]);
        proof.multipliers[k][i] = rho / scales[k][i] / (2 * r * r);
      }
    }
    return proof;
  }

  // A Y for the maps A into node k: a block for each live node.
  std::map<std::size_t, Dense> reach_of(std::size_t k) const {
    std::map<std::size_t, Dense> reach;
    const Index rows = nodes_[k].size;
    for (const std::size_t j : live_) {
      Dense block = zeros(rows, nodes_[j].size);
      for (const auto& [from, map] : nodes_[k].edges) {
        const auto known = known_.find({from, j});
        if (known != known_.end()) {
          add_product(map, known->second.data(), nodes_[j].size, block.data());
        } else if (from == j) {
          add_dense(map, block);
        }
      }
      reach.emplace(j, std::move(block));
    }
    return reach;
  }

  static void add_dense(const RowMatrix& map, Dense& block) {
    for (Index i = 0; i < map.rows; ++i) {
      map.for_row(i, [&](Index j, std::size_t at) {
        block[static_cast<std::size_t>(i * map.cols + j)] += map.weights[at];
      });
    }
  }

  // P = A Y A'.
  Dense spread(std::size_t k, const std::map<std::size_t, Dense>& reach) const {
    const Index n = nodes_[k].size;
    Dense p = zeros(n, n);
    for (const auto& [from, map] : nodes_[k].edges) {
      const Dense turned = transposed(reach.at(from), n, map.cols);
      add_product(map, turned.data(), n, p.data());
    }
    return p;
  }

  // With V = (S - P)^-1 and B = [A Y, S m]: Y + B'V B for the old nodes and the new one, and
  // (r^2 - m^2) S more for the new one itself.
  bool pass(std::size_t k, std::map<std::size_t, Dense> reach, Dense p, const Dense& s) {
    const Index n = nodes_[k].size;
    if (!invert(n, s, p)) return false;
    retire(k, reach);
    const Dense& inverse = p;
    for (const auto& [j, right] : reach) {
      const Index width = nodes_[j].size;
      Dense through = zeros(n, width);
      gemm(n, width, n, 1.0, {inverse.data(), n}, {right.data(), width}, 0.0, through.data(),
           width);
      for (const auto& [i, left] : reach) add_square(n, i, left, j, through);
      scale_rows(through, width, s, nodes_[k].slopes);
      known_[{j, k}] = transposed(through, n, width);
      known_[{k, j}] = std::move(through);
    }
    scale_rows(p, n, s, nodes_[k].slopes);
    p = transposed(p, n, n);
    scale_rows(p, n, s, nodes_[k].slopes);
    for (Index i = 0; i < n; ++i) {
      const Interval slope = nodes_[k].slopes[static_cast<std::size_t>(i)];
      const double m = middle(slope), r = half_width(slope);
      p[static_cast<std::size_t>(i * (n + 1))] +=
          (r - m) * (r + m) * s[static_cast<std::size_t>(i)];
    }
    known_[{k, k}] = std::move(p);
    live_.push_back(k);
    return true;
  }

  // p := (S - p)^-1.
  static bool invert(Index n, const Dense& s, Dense& p) {
    for (double& e : p) e = -e;
    for (Index i = 0; i < n; ++i)
      p[static_cast<std::size_t>(i * (n + 1))] += s[static_cast<std::size_t>(i)];
    return invert_definite(n, p.data());
  }

  static void scale_rows(Dense& a, Index width, const Dense& s,
                         const std::vector<Interval>& slopes) {
    for (std::size_t i = 0; i < s.size(); ++i) {
      const double factor = s[i] * middle(slopes[i]);
      const auto row = a.begin() + static_cast<Index>(i) * width;
      for (double& e : std::span(row, row + width)) e *= factor;
    }
  }

  // Nodes that nothing after node k asks for.
  void retire(std::size_t k, std::map<std::size_t, Dense>& reach) {
    const auto gone = [&](std::size_t j) { return last_use_[j] <= k; };
    std::erase_if(live_, gone);
    std::erase_if(reach, [&](const auto& entry) { return gone(entry.first); });
    std::erase_if(known_, [&](const auto& entry) {
      return gone(entry.first.first) || gone(entry.first.second);
    });
  }

  void add_square(Index n, std::size_t i, const Dense& left, std::size_t j, const Dense& right) {
    const Index rows = nodes_[i].size, cols = nodes_[j].size;
    auto [place, fresh] = known_.try_emplace({i, j});
    if (fresh) place->second = identity(rows);  // the input, once
    gemm(rows, cols, n, 1.0, {left.data(), rows, true}, {right.data(), cols}, 1.0,
         place->second.data(), cols);
  }

  const std::vector<UnitNode>& nodes_;
  std::vector<std::size_t> last_use_, live_;
  std::map<std::pair<std::size_t, std::size_t>, Dense> known_;
};

}  // namespace

std::optional<ChainProof> eclipse_multipliers(const UnitNetwork& network,
                                              const std::function<bool()>& stop) {
  if (network.nodes.empty()) return ChainProof{};
  return Recursion(network).run(stop);
}

ChainProof raised(const UnitNetwork& network, ChainProof proof, double e) {
  if (network.nodes.empty()) return proof;
  const int depth = network.nodes.back().depth;
  proof.rho *= std::pow(1 + e, 2.0 * depth);
  for (std::size_t k = 0; k < proof.multipliers.size(); ++k) {
    const double factor = std::pow(1 + e, 2.0 * (depth - network.nodes[k + 1].depth));
    for (double& t : proof.multipliers[k]) t *= factor;
  }
  return proof;
}

}  // namespace lipscope
