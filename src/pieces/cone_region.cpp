// SPDX-License-Identifier: Apache-2.0
#include "pieces/cone_region.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;
using IntervalVector = std::vector<Interval>;

Interval weight_at(const DenseLayer& layer, std::size_t i, std::size_t j) {
  const std::size_t at = i * static_cast<std::size_t>(layer.in) + j;
  const double w = layer.weights[at], r = layer.radius.empty() ? 0 : layer.radius[at];
  return {sub_down(w, r), add_up(w, r)};
}

// A sum of weighted signed values of units, less their kinks, that are linear functions for the
// given pieces. Each value is a combination of values further down: of units of the sum, which stay
// as they are, and of the rest, down to the units of layer `bottom` or, for -1, to the input; and
// of t.
class SignedSum {
 public:
  // Each unit of the proof has a side: that of its weight's sign where it has both.
  SignedSum(const LayeredNet& net, const Spans& spans, const CaseTree::InfeasibilityProof& proof,
            const std::vector<std::vector<std::ptrdiff_t>>& members)
      : net_(net), spans_(spans), proof_(proof), members_(members), count_(proof.units.size()) {
    for (std::size_t u = 0; u < count_; ++u) {
      order_.push_back(u);
      const auto [layer, place] = proof.units[u];
      const UnitForm form = net.layers[layer].form(place);
      const PieceSpan& span = spans[layer][place];
      const bool up = has_side(form, span, true), down = has_side(form, span, false);
      above_.push_back(up && (!down || proof.weights[u] >= 0));
      kinks_.push_back(kink_of(form, span, above_.back()));
      guesses_.push_back(up && down ? std::fabs(proof.weights[u]) : proof.weights[u]);
    }
    std::ranges::sort(order_, [&](std::size_t a, std::size_t b) {
      return proof.units[a].layer > proof.units[b].layer;
    });
  }
  // Whether non-negative weights, not all zero, make the sum zero.
  bool vanishes() {
    for (auto bottom = static_cast<std::ptrdiff_t>(net_.hidden()) - 2; bottom >= -1; --bottom) {
      if (vanishes_above(bottom)) return true;
    }
    return false;
  }

 private:
  struct Share {
    IntervalVector own;      // by entry of the bottom, then t
    IntervalVector through;  // by unit of the sum
  };
  [[nodiscard]] double sign_of(std::size_t u) const { return above_[u] ? 1 : -1; }
  // Of a unit of the sum.
  Share share_of(std::size_t u, std::ptrdiff_t bottom) const;
  // The value before the unit is not its kink for all inputs.
  [[nodiscard]] bool is_not_zero(std::size_t u) const;
  bool vanishes_above(std::ptrdiff_t bottom);
  void guess_weights();
  bool solve_for(const std::vector<std::size_t>& equations);
  bool weights_fit(std::ptrdiff_t bottom) const;

  const LayeredNet& net_;
  const Spans& spans_;
  const CaseTree::InfeasibilityProof& proof_;
  const std::vector<std::vector<std::ptrdiff_t>>& members_;
  std::size_t count_;
  std::vector<bool> above_;  // by unit of the sum
  IntervalVector kinks_;
  Vector guesses_;                  // weights
  std::vector<std::size_t> order_;  // deep units first
  std::vector<Share> shares_;
  // The sum is one of mu_u times share_u, where mu_u is the unit's own weight and what deeper units
  // take from it. Where it nearly vanishes it is held at 0 exactly.
  Vector mu_;
  std::vector<std::size_t> unknown_;
  IntervalVector values_;  // enclosures of mu
};

// Encloses the solution of a square system for all matrices and right sides in the intervals, by
// an approximate inverse R and |I - R A| < 1; nothing where that fails. By rows.
std::optional<IntervalVector> solve_enclosed(const std::vector<IntervalVector>& a,
                                             const IntervalVector& b) {
  const std::size_t n = b.size();
  std::vector<Vector> work(n, Vector(2 * n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) work[i][j] = 0.5 * (a[i][j].lo + a[i][j].hi);
    work[i][n + i] = 1;
  }
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t top = c;
    for (std::size_t i = c + 1; i < n; ++i) {
      if (std::fabs(work[i][c]) > std::fabs(work[top][c])) top = i;
    }
    std::swap(work[c], work[top]);
    if (!(std::fabs(work[c][c]) > 0)) return std::nullopt;
    const double pivot = work[c][c];
    for (double& e : work[c]) e /= pivot;
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = work[i][c];
      if (i == c || factor == 0) continue;
      for (std::size_t j = 0; j < 2 * n; ++j) work[i][j] -= factor * work[c][j];
    }
  }
  Vector guess(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) guess[i] += work[i][n + j] * 0.5 * (b[j].lo + b[j].hi);
    if (!std::isfinite(guess[i])) return std::nullopt;
  }
  IntervalVector residual = b;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) residual[i] -= a[i][j] * point(guess[j]);
  }
  double contraction = 0, distance = 0;
  for (std::size_t i = 0; i < n; ++i) {
    Interval moved = point(0);
    double row = 0;
    for (std::size_t j = 0; j < n; ++j) moved += point(work[i][n + j]) * residual[j];
    for (std::size_t j = 0; j < n; ++j) {
      Interval entry = point(i == j ? 1 : 0);
      for (std::size_t k = 0; k < n; ++k) entry -= point(work[i][n + k]) * a[k][j];
      row = add_up(row, magnitude(entry));
    }
    contraction = max_nan(contraction, row);
    distance = max_nan(distance, magnitude(moved));
  }
  if (!(contraction < 0.5)) return std::nullopt;
  const double radius = div_up(distance, sub_down(1, contraction));
  IntervalVector result;
  for (const double g : guess) result.push_back({sub_down(g, radius), add_up(g, radius)});
  return result;
}

SignedSum::Share SignedSum::share_of(std::size_t u, std::ptrdiff_t bottom) const {
  const UnitId unit = proof_.units[u];
  const DenseLayer& own = net_.layers[unit.layer];
  const std::size_t width = static_cast<std::size_t>(
      bottom < 0 ? net_.inputs() : net_.layers[static_cast<std::size_t>(bottom)].out);
  Share share{IntervalVector(width + 1, point(0)), IntervalVector(count_, point(0))};
  if (static_cast<std::ptrdiff_t>(unit.layer) <= bottom) return share;
  IntervalVector row;
  for (std::size_t j = 0; j < static_cast<std::size_t>(own.in); ++j)
    row.push_back(weight_at(own, unit.place, j));
  Interval constant = own.bias[unit.place] - kinks_[u];
  for (auto k = static_cast<std::ptrdiff_t>(unit.layer) - 1; k >= bottom && k >= 0; --k) {
    const auto at = static_cast<std::size_t>(k);
    const DenseLayer& layer = net_.layers[at];
    IntervalVector before(k == bottom ? width : static_cast<std::size_t>(layer.in), point(0));
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto [slope, offset] = layer.form(i).piece(spans_[at][i].first);
      if (offset != point(0)) constant += row[i] * offset;
      const Interval part = row[i] * point(slope);
      if (part == point(0)) continue;
      if (members_[at][i] >= 0) {
        const auto member = static_cast<std::size_t>(members_[at][i]);
        share.through[member] = part;
        if (kinks_[member] != point(0)) constant += part * kinks_[member];
      } else if (k == bottom) {
        before[i] = part;
      } else {
        for (std::size_t j = 0; j < before.size(); ++j) before[j] += part * weight_at(layer, i, j);
        constant += part * layer.bias[i];
      }
    }
    row = std::move(before);
  }
  std::ranges::copy(row, share.own.begin());
  share.own.back() = constant;
  return share;
}

bool SignedSum::is_not_zero(std::size_t u) const {
  std::vector<std::vector<std::ptrdiff_t>> nobody;
  for (const auto& layer : spans_) nobody.emplace_back(layer.size(), -1);
  const Share whole = SignedSum(net_, spans_, proof_, nobody).share_of(u, -1);
  return std::ranges::any_of(whole.own, [](const Interval& e) { return e.lo > 0 || e.hi < 0; });
}

void SignedSum::guess_weights() {
  mu_.assign(count_, 0);
  unknown_.clear();
  for (const std::size_t u : order_) {
    double size = std::fabs(guesses_[u]);
    mu_[u] = sign_of(u) * guesses_[u];
    for (std::size_t d = 0; d < count_; ++d) {
      const Interval part = shares_[d].through[u];
      const double taken = 0.5 * (part.lo + part.hi) * mu_[d];
      mu_[u] += taken;
      size += std::fabs(taken);
    }
    if (std::fabs(mu_[u]) > 1e-9 * size) {
      unknown_.push_back(u);
    } else {
      mu_[u] = 0;
    }
  }
}

bool SignedSum::solve_for(const std::vector<std::size_t>& equations) {
  if (unknown_.size() < equations.size() + 1) return false;
  // The largest ones keep their numbers.
  std::ranges::sort(unknown_, [&](std::size_t a, std::size_t b) {
    return std::fabs(mu_[a]) > std::fabs(mu_[b]);
  });
  const std::size_t n = equations.size(), fixed = unknown_.size() - n;
  std::vector<IntervalVector> system(n, IntervalVector(n));
  IntervalVector right(n, point(0));
  for (std::size_t c = 0; c < unknown_.size(); ++c) {
    const std::size_t u = unknown_[c];
    for (std::size_t j = 0; j < n; ++j) {
      if (c < fixed) {
        right[j] -= shares_[u].own[equations[j]] * values_[u];
      } else {
        system[j][c - fixed] = shares_[u].own[equations[j]];
      }
    }
  }
  const auto solved = solve_enclosed(system, right);
  if (!solved) return false;
  for (std::size_t c = fixed; c < unknown_.size(); ++c) values_[unknown_[c]] = (*solved)[c - fixed];
  return true;
}

bool SignedSum::weights_fit(std::ptrdiff_t bottom) const {
  bool positive = false;
  const auto fits = [&](const Interval& weight) {
    positive = positive || weight.lo > 0;
    return weight.lo >= 0;
  };
  Interval constant = point(0);
  bool varies = false;
  for (std::size_t u = 0; u < count_; ++u) {
    if (static_cast<std::ptrdiff_t>(proof_.units[u].layer) < bottom) continue;  // weight 0
    Interval weight = values_[u];
    for (std::size_t d = 0; d < count_; ++d) weight -= shares_[d].through[u] * values_[d];
    weight *= point(sign_of(u));
    if (!fits(weight)) return false;
    varies = varies || (weight.lo > 0 && is_not_zero(u));
    constant += shares_[u].own.back() * values_[u];
  }
  // The equation of t has the slack of t's own weight where t takes part.
  if (proof_.constant && !fits(-constant)) return false;
  // Values that are zero everywhere have no sign, and either will do.
  return positive && (varies || (proof_.constant && constant.hi < 0));
}

bool SignedSum::vanishes_above(std::ptrdiff_t bottom) {
  shares_.clear();
  for (std::size_t u = 0; u < count_; ++u) shares_.push_back(share_of(u, bottom));
  guess_weights();
  if (std::ranges::any_of(unknown_, [&](std::size_t u) {
        return static_cast<std::ptrdiff_t>(proof_.units[u].layer) <= bottom;
      }))
    return false;
  std::vector<std::size_t> equations;
  const std::size_t last = shares_[0].own.size() - (proof_.constant ? 1 : 0);
  for (std::size_t j = 0; j < last; ++j) {
    if (std::ranges::any_of(unknown_, [&](std::size_t u) { return shares_[u].own[j] != point(0); }))
      equations.push_back(j);
  }
  values_.assign(count_, point(0));
  for (const std::size_t u : unknown_) values_[u] = point(mu_[u]);
  return (equations.empty() || solve_for(equations)) && weights_fit(bottom);
}

}  // namespace

Region::View ConeRegion::confirm(const Path& path, const CaseTree::InfeasibilityProof& proof) {
  View view;
  const auto spans = spans_of(net_, path);
  view.empty = !spans || (!proof.units.empty() && proves_empty(*spans, proof));
  if (spans) view.slopes = slopes_of(net_, *spans);
  return view;
}

bool ConeRegion::proves_empty(const Spans& spans, const CaseTree::InfeasibilityProof& proof) const {
  const std::size_t count = proof.units.size();
  if (count == 0 || proof.weights.size() != count) return false;
  std::vector<std::vector<std::ptrdiff_t>> members;
  for (const auto& layer : spans) members.emplace_back(layer.size(), -1);
  std::size_t deepest = 0;
  for (std::size_t u = 0; u < count; ++u) {
    const auto [layer, place] = proof.units[u];
    if (layer >= spans.size() || place >= spans[layer].size() || members[layer][place] >= 0)
      return false;
    const UnitForm form = net_.layers[layer].form(place);
    const PieceSpan& span = spans[layer][place];
    if (!has_side(form, span, true) && !has_side(form, span, false)) return false;
    members[layer][place] = static_cast<std::ptrdiff_t>(u);
    deepest = std::max(deepest, layer);
  }
  for (std::size_t k = 0; k < deepest; ++k) {
    for (std::size_t i = 0; i < spans[k].size(); ++i) {
      if (undecided(net_.layers[k], i, spans[k][i])) return false;
    }
  }
  return SignedSum(net_, spans, proof, members).vanishes();
}

}  // namespace lipscope
