// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "base/rounding.h"
#include "lipscope/bound.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

std::size_t slot(Guarantee guarantee) { return static_cast<std::size_t>(guarantee); }

void refuse_nan(const Bound& bound) {
  if (std::isnan(bound.value)) {
    throw Error(ErrorCode::kInternal, fmt::format("method {} gave NaN as a bound", bound.method));
  }
}

}  // namespace

void Bracket::add_lower(Bound bound) {
  refuse_nan(bound);
  auto& held = lower_[slot(bound.guarantee)];
  if (!held || bound.value > held->value) held = std::move(bound);
  check();
}

void Bracket::add_upper(Bound bound) {
  refuse_nan(bound);
  auto& held = upper_[slot(bound.guarantee)];
  if (!held || bound.value < held->value) held = std::move(bound);
  check();
}

std::optional<Bound> Bracket::lower(Guarantee at_least) const {
  std::optional<Bound> best;
  for (std::size_t g = slot(at_least); g < lower_.size(); ++g) {
    if (lower_[g] && (!best || lower_[g]->value >= best->value)) best = lower_[g];
  }
  return best;
}

std::optional<Bound> Bracket::upper(Guarantee at_least) const {
  std::optional<Bound> best;
  for (std::size_t g = slot(at_least); g < upper_.size(); ++g) {
    if (upper_[g] && (!best || upper_[g]->value <= best->value)) best = upper_[g];
  }
  return best;
}

std::optional<double> Bracket::ratio(Guarantee at_least) const {
  const auto low = lower(at_least), high = upper(at_least);
  if (!low || !high) return std::nullopt;
  if (low->value == high->value) return 1;
  if (low->value <= 0) return std::nullopt;
  return div_up(high->value, low->value);
}

void Bracket::check() const {
  auto low = lower_[slot(Guarantee::kProved)], high = upper_[slot(Guarantee::kProved)];
  uncross(low, high);
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished: return "finished";
    case Outcome::kTarget: return "target";
    case Outcome::kLittleGain: return "little-gain";
    case Outcome::kTimeLimit: return "time-limit";
    case Outcome::kMemoryLimit: return "memory-limit";
    case Outcome::kInterrupted: return "interrupted";
  }
  return "finished";
}

}  // namespace lipscope
