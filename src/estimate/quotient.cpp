// SPDX-License-Identifier: Apache-2.0
#include "estimate/quotient.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/interval.h"
#include "base/rounding.h"
#include "bounds/boxes.h"
#include "estimate/jacobian_norm.h"

namespace lipscope {
namespace {

Box output_box(const Graph& graph, std::span<const double> point) {
  std::vector<Box> inputs;
  for (const Tensor& tensor : split_inputs(graph, point)) inputs.push_back({tensor, tensor});
  return ValueBoxes(graph, inputs).at(graph.outputs()[0]);
}

double distance_up(std::span<const double> x, std::span<const double> y, const Norm& norm) {
  std::vector<double> step(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) step[i] = magnitude(point(y[i]) - point(x[i]));
  return pnorm_up(step, norm.p());
}

}  // namespace

double proved_quotient(const Query& query, const Witness& witness) {
  const Box fx = output_box(*query.graph, witness.x), fy = output_box(*query.graph, witness.y);
  std::vector<double> moved;
  for (std::size_t i = 0; i < fx.lower.doubles().size(); ++i) {
    const Interval a{fx.lower.doubles()[i], fx.upper.doubles()[i]};
    const Interval b{fy.lower.doubles()[i], fy.upper.doubles()[i]};
    const double least = mignitude(b - a);
    moved.push_back(std::isfinite(least) ? least : 0);
  }
  const double distance = distance_up(witness.x, witness.y, query.norms.in);
  if (!(distance > 0) || std::isinf(distance)) return 0;
  const double quotient = div_down(pnorm_down(moved, query.norms.out.p()), distance);
  return std::isfinite(quotient) && quotient > 0 ? quotient : 0;
}

bool in_domain(const Domain& domain, std::span<const double> point) {
  if (domain.box) {
    const auto low = domain.box->lower.doubles(), high = domain.box->upper.doubles();
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (!(point[i] >= low[i] && point[i] <= high[i])) return false;
    }
  }
  if (!domain.ball) return true;
  const Ball& ball = *domain.ball;
  return distance_up(ball.center.doubles(), point, ball.norm) <= ball.radius;
}

DomainProjection::DomainProjection(const Graph& graph, const Domain& domain) : domain_(domain) {
  for (const Box& box : input_boxes(graph, domain)) {
    low_.insert(low_.end(), box.lower.doubles().begin(), box.lower.doubles().end());
    high_.insert(high_.end(), box.upper.doubles().begin(), box.upper.doubles().end());
  }
}

void DomainProjection::apply(std::span<double> point) const {
  if (domain_.everywhere()) return;
  for (std::size_t i = 0; i < point.size(); ++i) point[i] = std::clamp(point[i], low_[i], high_[i]);
  if (!domain_.ball) return;
  const auto center = domain_.ball->center.doubles();
  // Towards the centre, a little further each time: at the first try the surface, up to rounding.
  for (int tries = 0; tries < 40; ++tries) {
    const double away = distance_up(center, point, domain_.ball->norm);
    if (away <= domain_.ball->radius && in_domain(domain_, point)) return;
    const double slack = std::ldexp(1.0, std::min(0, tries - 48));
    const double keep = std::min(1.0, domain_.ball->radius / away) * (1 - slack);
    for (std::size_t i = 0; i < point.size(); ++i) {
      const double moved = center[i] + keep * (point[i] - center[i]);
      point[i] = std::clamp(moved, low_[i], high_[i]);
    }
  }
}

namespace {

// Segments along a line, inside the domain.
struct Trials {
  std::vector<double> x, y, length;
};

Trials make_trials(const Query& query, const DomainProjection& projection, const Line& line,
                   int count) {
  const std::size_t size = line.x.size();
  double scale = 1;
  for (const double e : line.x) scale = std::max(scale, std::abs(e));
  Trials trials;
  const auto add = [&](double from, double to) {
    std::vector<double> ends(2 * size);
    for (std::size_t i = 0; i < size; ++i) {
      ends[i] = line.x[i] + from * line.d[i];
      ends[size + i] = line.x[i] + to * line.d[i];
    }
    const auto x = std::span(ends).first(size), y = std::span(ends).last(size);
    projection.apply(x);
    projection.apply(y);
    const double length = distance_up(x, y, query.norms.in);
    if (!(length > 1e-9 * scale) || !in_domain(query.domain, x) || !in_domain(query.domain, y))
      return;
    trials.x.insert(trials.x.end(), x.begin(), x.end());
    trials.y.insert(trials.y.end(), y.begin(), y.end());
    trials.length.push_back(length);
  };
  add(-line.reach, line.reach);
  for (int k = 1; k < count; ++k) {
    const double longer = line.reach * std::pow(8.0, k), shorter = line.reach * std::pow(8.0, -k);
    add(-longer, longer);
    add(0, longer);
    add(-longer, 0);
    if (shorter > 1e-7 * scale) add(-shorter, shorter);
  }
  return trials;
}

}  // namespace

ProvedPair prove_along(const Query& query, const DomainProjection& projection, const Line& line,
                       int trials, double at_least, const std::function<bool()>& should_stop) {
  const std::size_t size = line.x.size();
  const Trials all = make_trials(query, projection, line, trials);
  if (all.length.empty()) return {};
  const std::vector<double> value = quotient_values(*query.graph, query.norms, all.x, all.y);
  const double best = *std::ranges::max_element(value);
  // Where plain evaluation sees no difference, longer segments lose less to rounding.
  std::vector<std::size_t> order(value.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t k) {
    const bool top = value[k] >= best * (1 - 1e-10);
    return top ? best * (1 + 1e-3 * std::log2(1 + all.length[k])) : value[k];
  };
  std::ranges::sort(order, std::ranges::greater{}, rank);
  constexpr std::size_t kProofs = 3;
  ProvedPair proved;
  for (std::size_t tried = 0; tried < std::min(kProofs, order.size()); ++tried) {
    const std::size_t k = order[tried];
    if (value[k] <= std::max(at_least, proved.value) || (tried > 0 && should_stop())) break;
    const auto end = [&](const std::vector<double>& ends) {
      const auto from = ends.begin() + static_cast<Index>(k * size);
      return std::vector<double>(from, from + static_cast<Index>(size));
    };
    Witness witness{end(all.x), end(all.y)};
    const double quotient = proved_quotient(query, witness);
    if (quotient <= proved.value) continue;
    proved = {quotient, std::move(witness)};
    if (quotient >= value[k] * (1 - 1e-9)) break;
  }
  return proved;
}

}  // namespace lipscope
