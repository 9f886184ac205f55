// SPDX-License-Identifier: Apache-2.0
#include "estimate/pattern_search.h"

#include <algorithm>
#include <cmath>

#include "base/checkpoint.h"
#include "estimate/jacobian_norm.h"

namespace lipscope {
namespace {

constexpr std::size_t kChains = 16;
constexpr double kFarthest = 1e8;  // points beyond lose too many digits to be proved
const Norm kEuclidean(2);

double length(const std::vector<double>& v) { return vector_norm(v, kEuclidean); }

double rms(const std::vector<double>& v) {
  return length(v) / std::sqrt(std::max<double>(1, static_cast<double>(v.size()))) + 1e-12;
}

}  // namespace

PatternSearch::PatternSearch(const PiecewiseLinearNet& net, const NormPair& norms,
                             std::function<void(std::span<double>)> project, std::uint64_t seed)
    : net_(net), norms_(norms), project_(std::move(project)), rng_(seed) {}

bool PatternSearch::wide() const { return net_.inputs() * net_.outputs() > 3000; }

// Exact for one output; otherwise a few steps of the power iteration, from the direction the point
// has.
void PatternSearch::measure(Point& point) {
  charge(50 * static_cast<double>(net_.inputs() + net_.units()));
  point.value = 0;
  if (!(length(point.x) < kFarthest)) return;
  const Layers gates = net_.gates(net_.values(point.x));
  if (net_.outputs() == 1) {
    const Vector g = net_.pull(gates, {1.0})[0];
    point.d.resize(g.size());
    dual_vector(g, norms_.in.dual(), point.d);
    point.value = vector_norm(g, norms_.in.dual());
  } else {
    if (!(length(point.d) > 0)) {
      point.d.resize(net_.inputs());
      for (double& e : point.d) e = normal();
    }
    for (int i = 0; i < (wide() ? 3 : 12); ++i) {
      const double size = length(point.d);
      if (!(size > 0)) break;
      for (double& e : point.d) e /= size;
      const Vector out = net_.push(gates, point.d).back();
      const double before = point.value;
      point.value = length(out);
      Vector next = net_.pull(gates, out)[0];
      if (point.value <= before * (1 + 1e-4) && i > 2) break;
      point.d = std::move(next);
    }
    const double size = length(point.d);
    for (double& e : point.d) e /= size > 0 ? size : 1;
  }
  if (!std::isfinite(point.value)) point.value = 0;
  if (point.value > best_.value) best_ = point;
}

PatternSearch::Vector PatternSearch::random_point() {
  Vector x(net_.inputs());
  const double scale = std::pow(10.0, 4 * uniform() - 1);
  for (double& e : x) e = scale * normal();
  if (wide() && chains_.size() >= kChains / 2 && starts_ % 2 == 0) {
    x = chains_[rng_() % chains_.size()].best.x;
    const double step = std::pow(10.0, -3 * uniform()) * rms(x);
    for (double& e : x) e += step * normal();
  }
  project_(x);
  return x;
}

// The steepest gates when each may be chosen freely, by a power iteration; then x moves to where
// the most important ones are as chosen.
void PatternSearch::follow_pattern(Vector& x, const std::function<bool()>& stop) {
  Layers gates(net_.nodes()), changes, pulls;
  for (std::size_t k = 1; k < net_.nodes(); ++k) {
    for (std::size_t i = 0; net_.is_unit(k) && i < net_.above(k).size(); ++i)
      gates[k].push_back(uniform() < 0.7 ? net_.above(k)[i] : net_.below(k)[i]);
  }
  Vector d(net_.inputs());
  for (double& e : d) e = normal();
  const auto chosen = [&](std::size_t k, std::size_t i) {
    const double gain = changes[k][i] * pulls[k][i];
    return std::fabs(net_.above(k)[i]) >= std::fabs(net_.below(k)[i]) ? gain > 0 : gain <= 0;
  };
  for (int step = 0; step < 15; ++step) {
    if (step > 0 && stop()) break;
    changes = net_.push(gates, d);
    pulls = net_.pull(gates, changes.back());
    for (std::size_t k = 1; k < net_.nodes(); ++k) {
      for (std::size_t i = 0; i < gates[k].size(); ++i)
        gates[k][i] = chosen(k, i) ? net_.above(k)[i] : net_.below(k)[i];
    }
    d = pulls[0];
    const double size = length(d);
    if (!(size > 0)) return;
    for (double& e : d) e /= size;
  }
  const int steps = wide() ? 20 : 40;
  for (int step = 0; step < steps && !stop(); ++step) {
    const Layers values = net_.values(x);
    Layers wish(net_.nodes());
    for (std::size_t k = 1; k < net_.nodes(); ++k) {
      if (!net_.is_unit(k)) continue;
      const double usual = rms(values[k]);
      double all = 1e-300;
      for (std::size_t i = 0; i < values[k].size(); ++i)
        all += std::fabs(changes[k][i] * pulls[k][i]);
      wish[k].assign(values[k].size(), 0);
      for (std::size_t i = 0; i < values[k].size(); ++i) {
        const double sign = chosen(k, i) ? 1 : -1;
        if (sign * values[k][i] < 0.05 * usual)
          wish[k][i] = sign * std::fabs(changes[k][i] * pulls[k][i]) / (all * usual);
      }
    }
    const Vector g = net_.gradient(net_.gates(values), wish);
    const double size = length(g);
    if (!(size > 1e-300)) return;
    const double step_length =
        0.5 * std::pow(0.05, static_cast<double>(step) / steps) * std::max(length(x), 1e-6);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += step_length / size * g[i];
    project_(x);
  }
}

// Along the gradient of |J d| with gates that turn smoothly, more and more sharply.
void PatternSearch::ascend(Point& point, const std::function<bool()>& stop) {
  const int steps = wide() ? 60 : 30;
  Point top = point;
  for (int step = 0; step < steps && !stop(); ++step) {
    const double sharp = std::pow(0.02, static_cast<double>(step) / steps);
    const Layers values = net_.values(point.x);
    Layers gates = net_.gates(values), bend(net_.nodes());
    for (std::size_t k = 1; k < net_.nodes(); ++k) {
      if (!net_.is_unit(k)) continue;
      const double width = sharp * rms(values[k]);
      bend[k].resize(values[k].size());
      for (std::size_t i = 0; i < values[k].size(); ++i) {
        const double s = 1 / (1 + std::exp(-values[k][i] / width));
        const double rise = net_.above(k)[i] - net_.below(k)[i];
        gates[k][i] = net_.below(k)[i] + rise * s;
        bend[k][i] = rise * s * (1 - s) / width;
      }
    }
    const Layers changes = net_.push(gates, point.d);
    const Layers pulls = net_.pull(gates, net_.outputs() == 1 ? Vector{1.0} : changes.back());
    for (std::size_t k = 1; k < net_.nodes(); ++k) {
      for (std::size_t i = 0; i < bend[k].size(); ++i) bend[k][i] *= pulls[k][i] * changes[k][i];
    }
    Vector g = net_.gradient(gates, bend);
    const double size = length(g);
    const double sign = net_.outputs() == 1 && changes.back()[0] < 0 ? -1 : 1;
    if (!(size > 1e-300)) break;
    const double step_length = 0.3 * sharp * std::max(length(point.x), 1e-6) * sign / size;
    for (std::size_t i = 0; i < g.size(); ++i) point.x[i] += step_length * g[i];
    project_(point.x);
    measure(point);
    if (point.value > top.value) top = point;
    if (!(point.value > 0)) break;
  }
  point = std::move(top);
}

void PatternSearch::keep(const Point& point) {
  if (!(point.value > 0)) return;
  if (chains_.size() < kChains) {
    chains_.push_back({point, point});
    return;
  }
  for (const Chain& chain : chains_) {
    if (std::fabs(chain.best.value - point.value) < 1e-9 * point.value) return;
  }
  const auto worst =
      std::ranges::min_element(chains_, {}, [](const Chain& chain) { return chain.best.value; });
  if (worst->best.value < point.value) *worst = {point, point};
}

void PatternSearch::climb(const std::function<bool()>& stop) {
  Point point{random_point(), {}, 0};
  if (++starts_ % 2 == 1) follow_pattern(point.x, stop);
  measure(point);
  if (!(point.value > 0)) return;
  ascend(point, stop);
  keep(point);
}

PatternSearch::Vector PatternSearch::shaken(const Chain& chain) {
  Vector x = chain.now.x;
  const double step = chain.step * std::pow(10.0, -3 * uniform()) * rms(x), share = uniform();
  for (double& e : x) e += uniform() < share ? step * normal() : 0;
  return x;
}

// Just beyond the kink of one unit.
PatternSearch::Vector PatternSearch::crossed(const Vector& x) {
  std::size_t unit = rng_() % net_.units(), node = 1;
  while (!net_.is_unit(node) || unit >= net_.above(node).size()) {
    unit -= net_.is_unit(node) ? net_.above(node).size() : 0;
    ++node;
  }
  const Layers values = net_.values(x);
  Layers one(net_.nodes());
  one[node].assign(values[node].size(), 0);
  one[node][unit] = 1;
  const Vector g = net_.gradient(net_.gates(values), one);
  double squares = 0;
  for (const double e : g) squares += e * e;
  if (!(squares > 0)) return x;
  const double step = -(1 + std::pow(10.0, -4 * uniform())) * values[node][unit] / squares;
  Vector moved = x;
  for (std::size_t i = 0; i < g.size(); ++i) moved[i] += step * g[i];
  return moved;
}

// The better half takes the places of the other.
void PatternSearch::breed() {
  std::ranges::sort(chains_, std::ranges::greater{},
                    [](const Chain& chain) { return chain.best.value; });
  const std::size_t half = std::max<std::size_t>(1, chains_.size() / 2);
  for (std::size_t i = 0; i < chains_.size(); ++i) {
    chains_[i].best = chains_[i % half].best;
    chains_[i].now = chains_[i].best;
  }
}

void PatternSearch::anneal(double share, const std::function<bool()>& stop) {
  constexpr double kBreed[] = {0.4, 0.7, 0.88};
  while (bred_ < std::ssize(kBreed) && share > kBreed[bred_]) {
    breed();
    ++bred_;
  }
  const double heat = 0.06 * std::pow(0.005, share);
  for (Chain& chain : chains_) {
    if (stop()) return;
    Point next{uniform() < 0.5 ? shaken(chain) : crossed(chain.now.x), chain.now.d, 0};
    project_(next.x);
    measure(next);
    if (next.value > chain.best.value) chain.best = next;
    const bool better = next.value >= chain.now.value;
    if (better || uniform() < std::pow(std::max(next.value, 1e-300) / chain.now.value, 1 / heat)) {
      if (next.value > chain.now.value) chain.step = std::min(3.0, chain.step * 1.2);
      chain.now = std::move(next);
    } else {
      chain.step = std::max(0.02, chain.step * 0.99);
    }
  }
}

}  // namespace lipscope
