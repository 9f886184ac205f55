// SPDX-License-Identifier: Apache-2.0
#include "bounds/domain_support.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/rounding.h"

namespace lipscope {
namespace {

// 1/p + 1/q = 1. Norms with a smaller exponent are larger.
double dual_exponent_down(double p) {
  if (p == 1) return kInf;
  return p == 2 ? 2 : std::max(1.0, div_down(p, sub_up(p, 1)));
}

}  // namespace

DomainSupport::DomainSupport(const Domain& domain, std::size_t inputs)
    : low_(inputs), high_(inputs), center_(inputs), half_(inputs), size_(inputs) {
  for (std::size_t i = 0; i < inputs; ++i) {
    double low = -kInf, high = kInf;
    if (domain.ball) {
      const double c = domain.ball->center.doubles()[i];
      low = sub_down(c, domain.ball->radius);
      high = add_up(c, domain.ball->radius);
    }
    if (domain.box) {
      low = std::max(low, domain.box->lower.doubles()[i]);
      high = std::min(high, domain.box->upper.doubles()[i]);
    }
    low_[i] = low;
    high_[i] = high;
    center_[i] = 0.5 * low + 0.5 * high;
    half_[i] = std::max({0.0, sub_up(high, center_[i]), sub_up(center_[i], low)});
    size_[i] = std::max(std::fabs(low), std::fabs(high));
  }
  if (domain.ball && domain.ball->norm.p() != kInf) {
    ball_center_.assign(domain.ball->center.doubles().begin(), domain.ball->center.doubles().end());
    radius_ = domain.ball->radius;
    p_ = domain.ball->norm.p();
    dual_ = dual_exponent_down(p_);
  }
  around_ = find_around(domain);
}

std::optional<DomainSupport::Around> DomainSupport::find_around(const Domain& domain) const {
  Around around;
  std::vector<double> reach;
  for (std::size_t i = 0; i < center_.size(); ++i) {
    const double c = domain.ball ? domain.ball->center.doubles()[i]
                                 : std::clamp(center_[i], low_[i], std::max(low_[i], high_[i]));
    if (domain.box && !(domain.box->lower.doubles()[i] <= c && c <= domain.box->upper.doubles()[i]))
      return std::nullopt;
    around.center.push_back(c);
    reach.push_back(std::max({0.0, sub_up(high_[i], c), sub_up(c, low_[i])}));
  }
  around.radius = norm2_up(reach);
  // l2 norms are at most lp norms for p <= 2.
  if (domain.ball && domain.ball->norm.p() <= 2)
    around.radius = std::min(around.radius, domain.ball->radius);
  return around;
}

bool DomainSupport::bounded() const {
  return std::ranges::all_of(size_, [](double s) { return s < kMaxDouble; });
}

double DomainSupport::max_up(const double* a) const {
  const std::size_t n = center_.size();
  double middle = 0, reach = 0, size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double term = a[i] * center_[i];
    middle += term;
    size += std::fabs(term);
    reach += std::fabs(a[i]) * half_[i];
  }
  const double g = gamma_up(2 * n + 8);
  const double tiny = 0x1p-1000;
  const double box = add_up(add_up(middle, reach), add_up(mul_up(g, add_up(size, reach)), tiny));
  if (ball_center_.empty()) return box;
  middle = size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double term = a[i] * ball_center_[i];
    middle += term;
    size += std::fabs(term);
  }
  const double ball = add_up(add_up(middle, mul_up(radius_, pnorm_up(std::span(a, n), dual_))),
                             add_up(mul_up(g, size), tiny));
  return std::min(box, ball);
}

std::vector<double> DomainSupport::lowest_point(const std::vector<double>& a) const {
  std::vector<double> x = center_;
  if (!ball_center_.empty() && p_ == 1) {
    x = ball_center_;
    std::size_t top = 0;
    for (std::size_t i = 0; i < a.size(); ++i) top = std::fabs(a[i]) > std::fabs(a[top]) ? i : top;
    if (!a.empty()) x[top] -= std::copysign(radius_, a[top]);
  } else if (!ball_center_.empty() && p_ == 2) {
    double square = 0;
    for (const double e : a) square += e * e;
    const double step = square > 0 ? radius_ / std::sqrt(square) : 0;
    for (std::size_t i = 0; i < a.size(); ++i) x[i] = ball_center_[i] - step * a[i];
  } else if (!ball_center_.empty()) {
    const double length = pnorm_up(a, dual_);
    x = ball_center_;
    for (std::size_t i = 0; i < a.size() && length > 0; ++i)
      x[i] -= std::copysign(radius_ * std::pow(std::fabs(a[i]) / length, dual_ - 1), a[i]);
  } else {
    for (std::size_t i = 0; i < a.size(); ++i) x[i] = a[i] > 0 ? low_[i] : high_[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::clamp(x[i], low_[i], std::max(low_[i], high_[i]));
  return x;
}

void DomainSupport::project(std::vector<double>& x) const {
  if (!ball_center_.empty()) {
    double size = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double away = std::fabs(x[i] - ball_center_[i]);
      size += p_ == 1 ? away : std::pow(away, p_);
    }
    size = p_ == 1 ? size : std::pow(size, 1 / p_);
    // Towards the centre: not the nearest point, but one of the domain.
    if (size > radius_) {
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = ball_center_[i] + (x[i] - ball_center_[i]) * (radius_ / size) * (1 - 1e-12);
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::clamp(x[i], low_[i], high_[i]);
}

}  // namespace lipscope
