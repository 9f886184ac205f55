// SPDX-License-Identifier: Apache-2.0
#include "estimate/quotient.h"

#include <algorithm>
#include <cmath>
#include <iterator>
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

double proved_quotient(const Query& query, const Witness& witness, bool portable_margin) {
  const Box fx = output_box(*query.graph, witness.x), fy = output_box(*query.graph, witness.y);
  std::vector<double> moved;
  for (std::size_t i = 0; i < fx.lower.doubles().size(); ++i) {
    const Interval a{fx.lower.doubles()[i], fx.upper.doubles()[i]};
    const Interval b{fy.lower.doubles()[i], fy.upper.doubles()[i]};
    double least = mignitude(b - a);
    // Other orders move the ends by parts of the width: the errors are less than what is allowed
    // for them.
    if (portable_margin) least -= 0.5 * (width_up(a) + width_up(b)) + 1e-15 * least;
    moved.push_back(std::isfinite(least) && least > 0 ? least : 0);
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

Trials make_trials(const Query& query, const DomainProjection& projection, const TrialLine& line,
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

ProvedPair prove_along(const Query& query, const DomainProjection& projection,
                       const TrialLine& line, int trials, double at_least, double noise,
                       const std::function<bool()>& should_stop) {
  const std::size_t size = line.x.size();
  const Trials all = make_trials(query, projection, line, trials);
  // What a proof is expected to give; the loss becomes known with the first one.
  std::vector<double> expected = quotient_values(*query.graph, query.norms, all.x, all.y);
  const auto charge = [&](double loss) {
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] -= loss / all.length[k];
  };
  charge(noise);
  ProvedPair proved{.value = 0, .witness = {}, .loss = noise};
  constexpr int kProofs = 3;
  for (int tried = 0; tried < std::min<Index>(kProofs, std::ssize(expected)); ++tried) {
    // Where plain evaluation sees no difference, longer segments lose less to rounding.
    const double best = std::ranges::max(expected);
    if (!(best > std::max(at_least, proved.value)) || (tried > 0 && should_stop())) break;
    std::size_t top = all.length.size();
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const bool ties = expected[k] >= best * (1 - 1e-10);
      if (ties && (top == all.length.size() || all.length[k] > all.length[top])) top = k;
    }
    const auto end = [&](const std::vector<double>& ends) {
      const auto from = ends.begin() + static_cast<Index>(top * size);
      return std::vector<double>(from, from + static_cast<Index>(size));
    };
    Witness witness{end(all.x), end(all.y)};
    const double quotient = proved_quotient(query, witness, true), length = all.length[top];
    // With nothing left the loss is anything above the whole difference.
    const double more = (quotient > 0 ? expected[top] - quotient : 2 * expected[top]) * length;
    if (quotient > proved.value) proved = {quotient, std::move(witness), proved.loss};
    const bool enough = quotient >= expected[top] * (1 - 1e-9);
    expected[top] = 0;
    if (enough) break;
    if (more > 0) {
      proved.loss += more;
      charge(more);
    }
  }
  return proved;
}

}  // namespace lipscope
