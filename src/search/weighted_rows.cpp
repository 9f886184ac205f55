// SPDX-License-Identifier: Apache-2.0
#include "search/weighted_rows.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {
namespace {

constexpr double kMuchBetter = 0.9;

// Few bits, so that products with weights in single precision are exact.
double rounded(double f) {
  int exponent = 0;
  const double mantissa = std::frexp(f, &exponent);
  return std::ldexp(std::round(mantissa * 0x1p12) * 0x1p-12, exponent);
}

std::vector<double> factors_for(std::vector<double> sizes) {
  constexpr double kFloor = 0.1;
  double most = 0;
  for (double& s : sizes) most = std::max(most, s = std::fabs(s));
  for (double& s : sizes)
    s = rounded(most > 0 ? 1 / std::sqrt(std::max(s, kFloor * most) / most) : 1);
  return sizes;
}

bool any_open(const Slopes& slopes) {
  return std::ranges::any_of(slopes, [](const auto& layer) {
    return std::ranges::any_of(layer, [](const Interval& s) { return s.lo != s.hi; });
  });
}

}  // namespace

std::unique_ptr<WeightedRows::Scaled> WeightedRows::scale(Index row,
                                                          std::vector<double> factors) const {
  auto scaled = scaled_row(net_, row, factors);
  if (!scaled) return nullptr;
  auto made = std::make_unique<Scaled>();
  static_cast<ScaledNet&>(*made) = *std::move(scaled);
  made->factors = std::move(factors);
  made->bound = std::make_unique<EuclideanBound>(made->net, Index{0});
  made->search = std::make_unique<MultiplierSearch>(made->net, Index{0});
  return made;
}

void WeightedRows::choose_factors(Index row, const Slopes& slopes) {
  const DenseLayer& first = net_.layers.front();
  const auto n = static_cast<std::size_t>(first.in);
  std::unique_ptr<Scaled> best;
  double least = kInf;
  std::vector<double> sizes(n, 1);
  for (int round = 0; round < 4; ++round) {
    std::unique_ptr<Scaled> trial = scale(row, factors_for(sizes));
    if (!trial) break;  // sizes that are not finite
    trial->search->restrict_to(slopes);
    for (int step = 0; step < 60; ++step) trial->search->step();
    const double value = trial->search->value() * trial->size;
    // The entries that matter to the dual weigh as much as it makes of them.
    std::vector<double> gradient(n * MultiplierSearch::kRank, 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(first.out); ++i) {
      const double* g = &trial->search->first_gradient()[i * MultiplierSearch::kRank];
      const double* w = first.row(static_cast<Index>(i));
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t c = 0; c < MultiplierSearch::kRank; ++c)
          gradient[j * MultiplierSearch::kRank + c] += w[j] * g[c];
      }
    }
    for (std::size_t j = 0; j < n; ++j) {
      double square = 0;
      for (std::size_t c = 0; c < MultiplierSearch::kRank; ++c)
        square +=
            gradient[j * MultiplierSearch::kRank + c] * gradient[j * MultiplierSearch::kRank + c];
      sizes[j] = std::sqrt(square);
    }
    if (value < least) {
      least = value;
      best = std::move(trial);
    }
  }
  if (best) scaled_[row] = std::move(best);
}

double WeightedRows::euclidean_upper_bound(Scaled& scaled, const Slopes& slopes,
                                           double good_enough) {
  double best = kInf;
  double margin = 1e-3;
  for (int round = 0; round < 3; ++round) {
    for (int step = 0; step < 12; ++step) scaled.search->step();
    for (; margin < 2; margin *= 4) {
      Multipliers trial = scaled.search->multipliers(margin);
      shorten(trial);
      const double found = mul_up(scaled.bound->upper_bound(slopes, trial), scaled.size);
      if (found < best) {
        best = found;
        trial_ = std::move(trial);
      }
      if (std::isfinite(found)) break;
    }
    const double dual = scaled.search->value() * scaled.size;
    if (best <= good_enough || dual > good_enough || best < dual * (1 + 1e-2)) break;
    margin = std::max(1e-6, margin / 16);
  }
  return best;
}

double WeightedRows::upper_bound(const Slopes& slopes, Index row, double good_enough,
                                 std::vector<float>& state) {
  used_.clear();
  by_linear_ = true;
  last_ = nullptr;
  const auto n = static_cast<std::size_t>(net_.inputs());
  std::vector<float> signs, turns;
  if (!state.empty()) {
    signs.assign(state.begin(), state.begin() + net_.inputs());
    turns.assign(state.begin() + net_.inputs(), state.end());
  }
  double euclidean = kInf;
  // Where linear bounds are much better they stay so for smaller sets.
  const bool hopeless = turns.size() == 1;
  if (!hopeless && net_.hidden() > 0 && any_open(slopes)) {
    if (!given_ && !scaled_.contains(row)) choose_factors(row, slopes);
    if (const auto found = scaled_.find(row); found != scaled_.end()) {
      last_ = found->second.get();
      if (!turns.empty()) last_->search->load(turns);
      last_->search->restrict_to(slopes);
      euclidean = euclidean_upper_bound(*last_, slopes, good_enough);
      turns = last_->search->save();
    }
  }
  double best = euclidean;
  if (!(euclidean <= good_enough)) {
    const double linear = linear_.upper_bound(slopes, row, signs);
    by_linear_ = linear <= euclidean;
    if (linear < kMuchBetter * euclidean) turns = {0.0F};
    best = std::min(best, linear);
  } else {
    by_linear_ = false;
  }
  if (!by_linear_) used_ = trial_;
  signs.resize(n);
  state = std::move(signs);
  state.insert(state.end(), turns.begin(), turns.end());
  return best;
}

double WeightedRows::weight(UnitId unit) const {
  return by_linear_ || last_ == nullptr ? linear_.weight(unit) : last_->search->weight(unit);
}

std::vector<double> WeightedRows::input_weights(Index row) const {
  const auto found = scaled_.find(row);
  return found == scaled_.end() ? std::vector<double>{} : found->second->factors;
}

bool WeightedRows::use_input_weights(Index row, const std::vector<double>& weights) {
  given_ = true;
  if (weights.empty()) return true;
  auto scaled = scale(row, weights);
  if (!scaled) return false;
  scaled_[row] = std::move(scaled);
  return true;
}

}  // namespace lipscope
