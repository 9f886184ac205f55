// SPDX-License-Identifier: Apache-2.0
#include "lipscope/norm.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "lipscope/error.h"

namespace lipscope {
namespace {

Norm parse_norm(std::string_view text, std::string_view whole) {
  double p = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, p);
  if (text.empty() || status != std::errc() || stop != end || !(p >= 1)) {
    throw Error(ErrorCode::kUsage,
                fmt::format("norm '{}': expected P or P:Q with P and Q a number of at least 1 or "
                            "'inf', for example 2, inf or 1:inf",
                            whole));
  }
  return Norm(p);
}

}  // namespace

Norm::Norm(double p) : p_(p) {
  if (!(p >= 1)) throw Error(ErrorCode::kUsage, fmt::format("a norm needs p >= 1, not {}", p));
}

Norm Norm::dual() const {
  if (p_ == 1) return Norm::infinity();
  if (std::isinf(p_)) return Norm(1);
  return Norm(p_ / (p_ - 1));
}

std::string Norm::name() const { return std::isinf(p_) ? "inf" : fmt::format("{}", p_); }

std::string NormPair::name() const { return in.name() + ":" + out.name(); }

NormPair parse_norms(std::string_view text) {
  const std::size_t colon = text.find(':');
  const Norm in = parse_norm(text.substr(0, colon), text);
  if (colon == std::string_view::npos) return {in, in};
  return {in, parse_norm(text.substr(colon + 1), text)};
}

std::string_view to_string(Guarantee guarantee) {
  switch (guarantee) {
    case Guarantee::kEstimate: return "estimate";
    case Guarantee::kReal: return "real";
    case Guarantee::kProved: return "proved";
  }
  return "estimate";
}

void uncross(std::optional<Bound>& lower, std::optional<Bound>& upper) {
  if (!lower || !upper || !(lower->value > upper->value)) return;
  if (lower->guarantee == Guarantee::kProved && upper->guarantee == Guarantee::kProved) {
    throw Error(
        ErrorCode::kInternal,
        fmt::format(
            "{} proved a lower bound of {} and {} an upper bound of {}: one of them is wrong",
            lower->method, lower->value, upper->method, upper->value));
  }
  if (upper->guarantee < lower->guarantee) {
    upper->value = lower->value;
  } else {
    lower->value = upper->value;
  }
}

}  // namespace lipscope
