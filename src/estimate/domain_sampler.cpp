// SPDX-License-Identifier: Apache-2.0
#include "estimate/domain_sampler.h"

#include <algorithm>
#include <cmath>

namespace lipscope {

DomainSampler::DomainSampler(const Graph& graph, const Domain& domain)
    : domain_(domain), projection_(graph, domain) {
  const bool one_point = domain.ball && domain.ball->radius == 0;
  for (std::size_t i = 0; i < projection_.low().size(); ++i) {
    const double width = projection_.high()[i] - projection_.low()[i];
    frozen_.push_back(width > 0 && !one_point ? 0 : 1);
    extent_ = std::max(extent_, width);
  }
}

std::string DomainSampler::unsupported() const {
  if (domain_.everywhere()) return "everywhere has no uniform points; it is for balls and boxes";
  if (!std::isfinite(extent_)) return "the box has no end; there are no uniform points in it";
  for (std::size_t i = 0; i < frozen_.size(); ++i) {
    if (projection_.low()[i] > projection_.high()[i]) return "no point is in the ball and the box";
  }
  return std::ranges::find(frozen_, 0) == frozen_.end() ? "the domain is one point" : "";
}

bool DomainSampler::draw(std::mt19937_64& rng, std::span<double> point) const {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    if (domain_.ball && !std::isinf(domain_.ball->norm.p())) {
      draw_in_ball(rng, point);
    } else {
      draw_in_box(rng, point);
    }
    projection_.apply(point);
    if (in_domain(domain_, point)) return true;
  }
  return false;
}

void DomainSampler::draw_in_box(std::mt19937_64& rng, std::span<double> point) const {
  std::uniform_real_distribution<double> uniform;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double low = projection_.low()[i], high = projection_.high()[i];
    point[i] = low + uniform(rng) * (high - low);
  }
}

// [estimates-1].
void DomainSampler::draw_in_ball(std::mt19937_64& rng, std::span<double> point) const {
  const Ball& ball = *domain_.ball;
  const double p = ball.norm.p();
  std::gamma_distribution<double> gamma(1 / p);
  std::normal_distribution<double> normal(0, std::sqrt(0.5));
  double sum = std::exponential_distribution<double>()(rng);
  for (double& e : point) {
    if (p == 2) {
      e = normal(rng);
      sum += e * e;
    } else {
      const double power = gamma(rng), size = std::pow(power, 1 / p);
      e = (rng() & 1) != 0 ? size : -size;
      sum += power;
    }
  }
  const double factor = ball.radius / std::pow(sum, 1 / p);
  const auto center = ball.center.doubles();
  for (std::size_t i = 0; i < point.size(); ++i) point[i] = center[i] + factor * point[i];
}

}  // namespace lipscope
