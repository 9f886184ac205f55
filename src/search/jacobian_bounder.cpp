// SPDX-License-Identifier: Apache-2.0
#include "search/jacobian_bounder.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "linalg/norm/definite.h"
#include "linalg/tensor/blas.h"
#include "net/small.h"
#include "search/weighted_rows.h"
#include "search/weighted_whole.h"

namespace lipscope {
namespace {

class Euclidean : public JacobianBounder {
 public:
  Euclidean(const LayeredNet& net, const NormDecomposition& parts) {
    for (Index r = 0; r < parts.count; ++r) {
      const auto row = parts.whole ? std::nullopt : std::optional(r);
      bounds_.emplace_back(net, row);
      searches_.emplace_back(net, row);
    }
    if (parts.whole || parts.count == 1) steps_ = 16;
  }

  double upper_bound(const Slopes& slopes, Index row, double good_enough,
                     std::vector<float>& state) override {
    search_ = &searches_[static_cast<std::size_t>(row)];
    EuclideanBound& bound = bounds_[static_cast<std::size_t>(row)];
    if (!state.empty()) search_->load(state);
    search_->restrict_to(slopes);
    const bool open = std::ranges::any_of(slopes, [](const auto& layer) {
      return std::ranges::any_of(layer, [](const Interval& s) { return s.lo != s.hi; });
    });
    used_.clear();
    for (const auto& layer : slopes) used_.emplace_back(layer.size(), 0.0);
    double best = bound.upper_bound(slopes, used_);
    if (!open) return best;
    double margin = 1e-4;
    // Rounds of steps, each followed by a proof, as long as a better proof could matter.
    for (int round = 0; round < 6; ++round) {
      for (int step = 0; step < (state.empty() ? 4 : 1) * steps_; ++step) search_->step();
      for (; margin < 2; margin *= 4) {
        Multipliers trial = search_->multipliers(margin);
        shorten(trial);
        const double found = bound.upper_bound(slopes, trial);
        if (found < best) {
          best = found;
          used_ = std::move(trial);
        }
        if (std::isfinite(found)) break;
      }
      if (best <= good_enough || search_->value() > good_enough ||
          best < search_->value() * (1 + 1e-3))
        break;
      margin = std::max(1e-7, margin / 16);
    }
    state = search_->save();
    return best;
  }

  double weight(UnitId unit) const override { return search_->weight(unit); }
  const Multipliers& multipliers() const override { return used_; }

 private:
  std::vector<EuclideanBound> bounds_;
  std::vector<MultiplierSearch> searches_;
  MultiplierSearch* search_ = nullptr;
  Multipliers used_;
  int steps_ = 12;
};

class ByRows : public JacobianBounder {
 public:
  ByRows(const LayeredNet& net, GradientNorm norm) : bound_(net, norm) {}

  double upper_bound(const Slopes& slopes, Index row, double, std::vector<float>& state) override {
    return bound_.upper_bound(slopes, row, state);
  }
  double weight(UnitId unit) const override { return bound_.weight(unit); }
  const Multipliers& multipliers() const override { return none_; }

 private:
  RowBound bound_;
  Multipliers none_;
};

}  // namespace

void shorten(Multipliers& multipliers) {
  for (auto& layer : multipliers) {
    for (double& e : layer) {
      if (!(e > 1e-200) || !(e < 1e200)) continue;
      const double unit = std::pow(10.0, std::floor(std::log10(e)) - 4);
      const double digits = std::round(e / unit);
      // Powers of ten below 1 are not exact, divisions by those above it are.
      e = unit < 1 ? digits / std::round(1 / unit) : digits * unit;
    }
  }
}

std::vector<double> plain_jacobian(const LayeredNet& net, const Slopes& slopes) {
  const DenseLayer& last = net.layers.back();
  std::vector<double> rows = last.weights;  // by the entries behind each layer
  const Index count = last.out;
  for (std::size_t k = slopes.size(); k-- > 0;) {
    const DenseLayer& layer = net.layers[k];
    for (Index r = 0; r < count; ++r) {
      for (Index i = 0; i < layer.out; ++i) {
        const Interval s = slopes[k][to_size(i)];
        rows[to_size(r * layer.out + i)] *= 0.5 * (s.lo + s.hi);
      }
    }
    std::vector<double> next(to_size(count * layer.in));
    gemm(count, layer.in, layer.out, 1.0, {rows.data(), layer.out},
         {layer.weights.data(), layer.in}, 0.0, next.data(), layer.in);
    rows = std::move(next);
  }
  return rows;
}

double plain_norm(const LayeredNet& net, const NormDecomposition& parts, const Slopes& slopes) {
  const std::vector<double> rows = plain_jacobian(net, slopes);
  const Index count = net.outputs(), n = net.inputs();
  if (parts.weighted) return ascended_norm(rows, count, parts.from, parts.to);
  if (parts.whole) {
    std::vector<double> gram(to_size(count * count));
    gemm(count, count, n, 1.0, {rows.data(), n}, {rows.data(), n, true}, 0.0, gram.data(), count);
    const auto multiply = [&](const double* x, double* y) {
      gemv(count, count, 1.0, {gram.data(), count}, x, 1, 0.0, y, 1);
    };
    return std::sqrt(std::max(0.0, lanczos(count, multiply, {}, 1e-12, 40).value));
  }
  double largest = 0;
  for (Index r = 0; r < count; ++r)
    largest = std::max(largest, pnorm_up(std::span(&rows[to_size(r * n)], to_size(n)), parts.norm));
  return largest;
}

std::unique_ptr<JacobianBounder> make_bounder(const LayeredNet& net,
                                              const NormDecomposition& parts) {
  if (parts.weighted)
    return std::make_unique<WeightedWhole>(net, parts.from == kInf, parts.to == 1);
  if (parts.norm == 2) return std::make_unique<Euclidean>(net, parts);
  if (parts.sums_by_weights()) return std::make_unique<WeightedRows>(net);
  return std::make_unique<ByRows>(net, parts.norm == 1 ? GradientNorm::kOne : GradientNorm::kMax);
}

}  // namespace lipscope
