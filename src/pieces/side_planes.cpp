// SPDX-License-Identifier: Apache-2.0
#include "pieces/side_planes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/checkpoint.h"
#include "base/rounding.h"
#include "linalg/tensor/blas.h"
#include "net/small.h"

namespace lipscope {
namespace {

struct Turn {
  double at, by;  // where the slope rises, and how much
};

// The step m >= 0 with the least value of max <row + m a, x> + m offset over the box. `slope`: that
// of this value at 0, with x_j at its lower end where the row has a 0.
double best_step(const DomainSupport& domain, std::span<const double> row,
                 std::span<const double> a, double slope, std::vector<Turn>& turns) {
  turns.clear();
  double last = 0;
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (row[j] > 0 ? !(a[j] < 0) : !(a[j] > 0)) continue;
    turns.push_back({-row[j] / a[j], std::fabs(a[j]) * (domain.high()[j] - domain.low()[j])});
    last = std::max(last, turns.back().at);
  }
  // The first turn after which the slope is not negative: halves, as in the search for a median.
  auto begin = turns.begin(), end = turns.end();
  double best = 2 * last + 1;  // the part is empty, and any large step shows it
  while (begin != end) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, [](const Turn& x, const Turn& y) { return x.at < y.at; });
    double there = slope;
    for (auto turn = begin; turn <= middle; ++turn) there += turn->by;
    if (there >= 0) {
      best = middle->at;
      end = middle;
    } else {
      slope = there;
      begin = middle + 1;
    }
  }
  return best;
}

}  // namespace

double max_up(const DomainSupport& domain, std::span<const double> row, double offset,
              const Planes& planes, std::span<const double> multipliers) {
  const std::size_t n = domain.inputs();
  std::vector<double> sum(row.begin(), row.end()), size(n);
  for (std::size_t j = 0; j < n; ++j) size[j] = std::fabs(sum[j]);
  charge(10 * static_cast<double>(n));
  for (std::size_t s = 0; s < multipliers.size(); ++s) {
    const double m = multipliers[s];
    if (!(m >= 0) || !(m < kMaxDouble)) return kInf;
    if (m == 0) continue;
    for (std::size_t j = 0; j < n; ++j) {
      const double term = m * planes.weights[s * n + j];
      sum[j] += term;
      size[j] += std::fabs(term);
    }
    offset = add_up(offset, mul_up(m, planes.offsets[s]));
  }
  double error = 0;
  for (std::size_t j = 0; j < n; ++j) error += size[j] * domain.size()[j];
  error = add_up(mul_up(mul_up(error, 1 + gamma_up(n + 4)), gamma_up(multipliers.size() + 4)),
                 underflow_up(0, sum_up(domain.size())));
  return add_up(add_up(domain.max_up(sum.data()), offset), error);
}

std::vector<double> best_multipliers(const DomainSupport& domain, std::span<const double> row,
                                     const Planes& planes) {
  constexpr int kSteps = 4;
  const std::size_t n = domain.inputs();
  std::vector<double> sum(row.begin(), row.end()), multipliers, point(n), values;
  std::vector<Turn> turns;
  std::optional<std::size_t> idle;
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t j = 0; j < n; ++j) point[j] = sum[j] > 0 ? domain.high()[j] : domain.low()[j];
    values = planes.offsets;
    gemv(std::ssize(values), std::ssize(point), 1.0, {planes.weights.data(), std::ssize(point)},
         point.data(), 1, 1.0, values.data(), 1);
    if (idle) values[*idle] = 0;
    const auto worst = static_cast<std::size_t>(std::ranges::min_element(values) - values.begin());
    if (!(values[worst] < 0)) break;
    const std::span a(&planes.weights[worst * n], n);
    charge(25 * static_cast<double>(n));
    const double way = best_step(domain, sum, a, values[worst], turns);
    idle = worst;  // nothing more to gain from it until another one moved
    multipliers.resize(values.size());
    multipliers[worst] += way;
    for (std::size_t j = 0; j < n; ++j) sum[j] += way * a[j];
  }
  return multipliers;
}

}  // namespace lipscope
