// SPDX-License-Identifier: Apache-2.0
#include "attention/head.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/parallel.h"
#include "linalg/norm/definite.h"
#include "linalg/norm/operator_norm.h"
#include "softmax/box.h"

namespace lipscope {
namespace {

double sqrt_of_sum_up(std::span<const double> terms) { return sqrt_up(sum_up(terms)); }

}  // namespace

IntervalMatrix share_ranges(const IntervalMatrix& scores) {
  IntervalMatrix shares(scores.rows, scores.cols);
  std::vector<double> low(static_cast<std::size_t>(scores.cols)), high(low.size());
  for (Index i = 0; i < scores.rows; ++i) {
    for (Index j = 0; j < scores.cols; ++j) {
      low[static_cast<std::size_t>(j)] = scores(i, j).lo;
      high[static_cast<std::size_t>(j)] = scores(i, j).hi;
    }
    const auto ranges = softmax_ranges({low, high});
    for (Index j = 0; j < scores.cols; ++j)
      shares(i, j) = intersect(ranges[static_cast<std::size_t>(j)].share, {0, 1});
  }
  return shares;
}

IntervalMatrix deviations(const IntervalMatrix& values, const IntervalMatrix& mixed, Index i) {
  IntervalMatrix away = values;
  for (Index j = 0; j < away.rows; ++j) {
    for (Index a = 0; a < away.cols; ++a) away(j, a) = values(j, a) - mixed(i, a);
  }
  return away;
}

IntervalMatrix scaled_rows(IntervalMatrix a, std::span<const Interval> factors) {
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) a(i, j) *= factors[static_cast<std::size_t>(i)];
  }
  return a;
}

HeadAt::HeadAt(const HeadWeights& head, std::vector<double> tokens)
    : head_(head), tokens_(std::move(tokens)) {
  const IntervalMatrix x(head.tokens, head.width, tokens_);
  q_ = with_bias(x * head.query, head.query_bias);
  k_ = with_bias(x * head.key, head.key_bias);
  v_ = with_bias(x * head.value, head.value_bias);
  qk_ = k_ * transposed(head.query);
  kq_ = q_ * transposed(head.key);
  scores_ = q_ * transposed(k_);
  for (std::size_t i = 0; i < head.mask.size(); ++i) scores_.entries[i] += head.mask[i];
  shares_ = share_ranges(scores_);
  o_ = shares_ * v_;
  value_turned_ = CentredMatrix(transposed(head.value));
  key_rates_ = CentredMatrix(kq_);
  find_query_parts();
}

// C_i Q', C_i = sum_j P_ij u_ij (k_j - centre)' for any centre, since the weighted sum of u_ij is
// zero.
void HeadAt::find_query_parts() {
  const Index n = head_.tokens;
  query_parts_.resize(static_cast<std::size_t>(n));
  const IntervalMatrix query = transposed(head_.query);
  const std::vector<double> share = midpoints(shares_.entries), key = midpoints(k_.entries);
  for (Index i = 0; i < n; ++i) {
    IntervalMatrix keys = k_;
    for (Index c = 0; c < k_.cols; ++c) {
      double centre = 0;
      for (Index j = 0; j < n; ++j)
        centre += share[static_cast<std::size_t>(i * n + j)] *
                  key[static_cast<std::size_t>(j * k_.cols + c)];
      for (Index j = 0; j < n; ++j) keys(j, c) = keys(j, c) - centre;
    }
    const IntervalMatrix weighted = scaled_rows(deviations(v_, o_, i), shares_.row(i));
    query_parts_[static_cast<std::size_t>(i)] =
        CentredMatrix((transposed(weighted) * keys) * query);
  }
}

// P_ij (V' + u_ij (K q_i)'), and the query's part on the diagonal [attention-1]. Middles in plain
// arithmetic; the radius has the roundings of four operations and the radii of the parts.
void HeadAt::write_block(Index i, Index j, double* middle, double* radius, Index stride) const {
  const Index d = head_.width, w = head_.value_width;
  const double gamma = gamma_up(8);
  constexpr double kSlack = 1 + 1e-9, kLost = 64 * kMinSubnormal;
  const Interval share = shares_(i, j);
  const double p = midpoint(share), p_radius = radius_up(share);
  const double* g = key_rates_.middle.data() + i * d;
  const double* g_radius = key_rates_.radius.data() + i * d;
  for (Index a = 0; a < w; ++a) {
    const Interval away = v_(j, a) - o_(i, a);
    const double u = midpoint(away), u_radius = radius_up(away);
    const double* v = value_turned_.middle.data() + a * d;
    const double* v_radius = value_turned_.radius.data() + a * d;
    double* to = middle + a * stride;
    double* around = radius + a * stride;
    for (Index b = 0; b < d; ++b) {
      const double inner = v[b] + u * g[b], size = std::fabs(v[b]) + std::fabs(u * g[b]);
      const double inner_radius =
          v_radius[b] + std::fabs(u) * g_radius[b] + u_radius * (std::fabs(g[b]) + g_radius[b]);
      to[b] = p * inner;
      around[b] =
          (p * inner_radius + p_radius * (size + inner_radius) + gamma * p * size) * kSlack + kLost;
    }
    if (i != j) continue;
    const CentredMatrix& part = query_parts_[static_cast<std::size_t>(i)];
    for (Index b = 0; b < d; ++b) {
      const auto at = static_cast<std::size_t>(a * d + b);
      const double sum = to[b] + part.middle[at];
      around[b] =
          (around[b] + part.radius[at] + 2 * kUnitRoundoff * std::fabs(sum)) * kSlack + kLost;
      to[b] = sum;
    }
  }
}

double HeadAt::covariance_bound() const {
  const Index n = head_.tokens;
  const double mixing = mul_up(spectral_norm_up(head_.value), spectral_norm_up(shares_));
  std::vector<double> query(static_cast<std::size_t>(n)), by_row(query), by_column(query);
  parallel_for(
      n, rows_at_once(4 * n * (head_.width + head_.value_width)), [&](Index from, Index to) {
        for (Index i = from; i < to; ++i) {
          const auto at = static_cast<std::size_t>(i);
          query[at] = spectral_norm_up(query_parts_[at]);
          std::vector<Interval> roots;
          for (const Interval& share : shares_.row(i)) roots.push_back(sqrt(share));
          const IntervalMatrix away = deviations(v_, o_, i);
          const double rate = length_up(kq_.row(i));
          const double size = mul_up(spectral_norm_up(scaled_rows(away, roots)), rate);
          const double row = mul_up(spectral_norm_up(scaled_rows(away, shares_.row(i))), rate);
          by_column[at] = mul_up(size, size);
          by_row[at] = mul_up(row, row);
        }
      });
  double columns = 0;
  for (Index j = 0; j < n; ++j) {
    std::vector<double> terms;
    for (Index i = 0; i < n; ++i)
      terms.push_back(mul_up(shares_(i, j).hi, by_column[static_cast<std::size_t>(i)]));
    columns = std::max(columns, sqrt_of_sum_up(terms));
  }
  const double keys = std::min(columns, sqrt_of_sum_up(by_row));
  return add_up(add_up(mixing, std::ranges::max(query)), keys);
}

// Upper bounds of the norms of the blocks.
std::vector<double> HeadAt::block_norms() const {
  const Index n = head_.tokens, d = head_.width, w = head_.value_width;
  std::vector<double> norms(static_cast<std::size_t>(n * n));
  const double value = spectral_norm_up(head_.value), value_square = mul_up(value, value);
  const IntervalMatrix turned = kq_ * head_.value;  // rows V' g_i
  parallel_for(n, rows_at_once(4 * n * (head_.width + head_.value_width)),
               [&](Index from, Index to) {
                 for (Index i = from; i < to; ++i) {
                   const double rate = length_up(kq_.row(i)), turned_up = length_up(turned.row(i));
                   const IntervalMatrix away = deviations(v_, o_, i);
                   for (Index j = 0; j < n; ++j) {
                     double& norm = norms[static_cast<std::size_t>(i * n + j)];
                     if (i == j) {
                       CentredMatrix own(w, d);
                       write_block(i, i, own.middle.data(), own.radius.data(), d);
                       norm = spectral_norm_up(own);
                       continue;
                     }
                     // |V' + u g'|^2 <= |V|^2 + 2 |u| |V'g| + |u|^2 |g|^2.
                     const double u = length_up(away.row(j)), both = mul_up(u, rate);
                     const double square =
                         add_up(add_up(value_square, mul_up(2 * u, turned_up)), mul_up(both, both));
                     norm = mul_up(shares_(i, j).hi, sqrt_up(square));
                   }
                 }
               });
  return norms;
}

double HeadAt::block_bound() const {
  const std::vector<double> norms = block_norms();
  return spectral_norm_up(IntervalMatrix(head_.tokens, head_.tokens, norms));
}

double HeadAt::token_max_bound() const {
  const Index n = head_.tokens;
  const std::vector<double> norms = block_norms();
  const double value = spectral_norm_up(head_.value);
  double by_blocks = 0, by_covariance = 0;
  for (Index i = 0; i < n; ++i) {
    const IntervalMatrix away = deviations(v_, o_, i);
    std::vector<double> spread;
    for (Index j = 0; j < n; ++j)
      spread.push_back(mul_up(shares_(i, j).hi, length_up(away.row(j))));
    const auto row =
        std::span(norms).subspan(static_cast<std::size_t>(i * n), static_cast<std::size_t>(n));
    by_blocks = std::max(by_blocks, sum_up(row));
    const double keys = mul_up(length_up(kq_.row(i)), sum_up(spread));
    const double query = spectral_norm_up(query_parts_[static_cast<std::size_t>(i)]);
    by_covariance = std::max(by_covariance, add_up(add_up(value, query), keys));
  }
  return std::min(by_blocks, by_covariance);
}

JacobianNorm HeadAt::explicit_norm(Index most) const {
  const Index n = head_.tokens, d = head_.width, w = head_.value_width;
  if (n * w * n * d > most) return {0, kInf};
  CentredMatrix all(n * w, n * d);
  parallel_for(n, rows_at_once(n * d * w / 8), [&](Index from, Index to) {
    for (Index i = from; i < to; ++i) {
      for (Index j = 0; j < n; ++j) {
        const Index at = i * w * n * d + j * d;
        write_block(i, j, all.middle.data() + at, all.radius.data() + at, n * d);
      }
    }
  });
  const NormBracket norm =
      matrix_norm({all.rows, all.cols, all.middle.data(), all.radius.data()}, {Norm(2), Norm(2)});
  return {norm.lower, norm.upper};
}

std::vector<double> HeadAt::push(std::span<const double> direction) const {
  const Index n = head_.tokens, d = head_.width, w = head_.value_width;
  LIPSCOPE_CHECK(static_cast<Index>(direction.size()) == n * d);
  std::vector<double> out(static_cast<std::size_t>(n * w)), dv(out.size());
  std::vector<double> along_query(static_cast<std::size_t>(n * n));  // d score_ij
  for (Index i = 0; i < n; ++i) {
    const double* x = direction.data() + i * d;
    for (Index b = 0; b < d; ++b) {
      for (Index a = 0; a < w; ++a)
        dv[static_cast<std::size_t>(i * w + a)] += x[b] * midpoint(head_.value(b, a));
    }
    for (Index j = 0; j < n; ++j) {
      double own = 0, other = 0;
      for (Index b = 0; b < d; ++b) {
        own += x[b] * midpoint(qk_(j, b));
        other += x[b] * midpoint(kq_(j, b));
      }
      along_query[static_cast<std::size_t>(i * n + j)] += own;
      along_query[static_cast<std::size_t>(j * n + i)] += other;
    }
  }
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      const double share = midpoint(shares_(i, j));
      const double rate = along_query[static_cast<std::size_t>(i * n + j)];
      for (Index a = 0; a < w; ++a) {
        const double u = midpoint(v_(j, a)) - midpoint(o_(i, a));
        out[static_cast<std::size_t>(i * w + a)] +=
            share * (dv[static_cast<std::size_t>(j * w + a)] + u * rate);
      }
    }
  }
  return out;
}

std::vector<double> HeadAt::pull(std::span<const double> weights) const {
  const Index n = head_.tokens, d = head_.width, w = head_.value_width;
  std::vector<double> out(static_cast<std::size_t>(n * d)), gv(static_cast<std::size_t>(n * w));
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      const double share = midpoint(shares_(i, j));
      double rate = 0;
      for (Index a = 0; a < w; ++a) {
        const double g = weights[static_cast<std::size_t>(i * w + a)];
        rate += share * g * (midpoint(v_(j, a)) - midpoint(o_(i, a)));
        gv[static_cast<std::size_t>(j * w + a)] += share * g;
      }
      for (Index b = 0; b < d; ++b) {
        out[static_cast<std::size_t>(j * d + b)] += rate * midpoint(kq_(i, b));
        out[static_cast<std::size_t>(i * d + b)] += rate * midpoint(qk_(j, b));
      }
    }
  }
  for (Index j = 0; j < n; ++j) {
    for (Index b = 0; b < d; ++b) {
      for (Index a = 0; a < w; ++a)
        out[static_cast<std::size_t>(j * d + b)] +=
            midpoint(head_.value(b, a)) * gv[static_cast<std::size_t>(j * w + a)];
    }
  }
  return out;
}

std::vector<double> HeadAt::direction(double tolerance, int steps) const {
  const Index size = head_.tokens * head_.width;
  const auto multiply = [&](const double* x, double* y) {
    const auto pulled = pull(push({x, static_cast<std::size_t>(size)}));
    std::copy(pulled.begin(), pulled.end(), y);
  };
  return lanczos(size, multiply, {}, tolerance, steps).vector;
}

namespace {

// Scales each row to length one; rows of zeros stay.
void normalise_rows(std::vector<double>& entries, Index width) {
  for (auto row = entries.begin(); row != entries.end(); row += width) {
    double square = 0;
    for (Index b = 0; b < width; ++b) square += row[b] * row[b];
    if (!(square > 0)) continue;
    for (Index b = 0; b < width; ++b) row[b] /= std::sqrt(square);
  }
}

}  // namespace

// |J d| in the token-max norm is the largest, over output tokens i and unit vectors g, of
// sum_j |(J' (e_i g'))_j| when the tokens of d are the best for i and g, so d and g take turns.
std::vector<double> HeadAt::token_max_direction() const {
  constexpr int kStarts = 8, kTurns = 12;
  const Index n = head_.tokens, d = head_.width, w = head_.value_width;
  const auto length = [&](const std::vector<double>& out, Index i) {
    double square = 0;
    for (Index a = 0; a < w; ++a) {
      const double entry = out[static_cast<std::size_t>(i * w + a)];
      square += entry * entry;
    }
    return std::sqrt(square);
  };
  std::vector<double> best = direction(1e-3, 20);
  normalise_rows(best, d);
  const std::vector<double> first = push(best);
  std::vector<Index> order(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
  std::ranges::stable_sort(order, std::greater<>(), [&](Index i) { return length(first, i); });
  double most = length(first, order[0]);
  order.resize(std::min<std::size_t>(order.size(), kStarts));
  for (const Index i : order) {
    std::vector<double> out = first;
    for (int turn = 0; turn < kTurns; ++turn) {
      std::vector<double> covector(out.size());
      for (Index a = i * w; a < (i + 1) * w; ++a)
        covector[static_cast<std::size_t>(a)] = out[static_cast<std::size_t>(a)];
      std::vector<double> turned = pull(covector);
      normalise_rows(turned, d);
      out = push(turned);
      if (!(length(out, i) > most)) break;
      most = length(out, i);
      best = std::move(turned);
    }
  }
  return best;
}

double HeadAt::token_max_stretch_down(std::span<const double> direction) const {
  const Index n = head_.tokens, d = head_.width;
  const IntervalMatrix moved = pushed(direction);
  double reached = 0, step = 0;
  for (Index i = 0; i < n; ++i) {
    reached = std::max(reached, length_down(moved.row(i)));
    step = std::max(step, norm2_up(direction.subspan(static_cast<std::size_t>(i * d),
                                                     static_cast<std::size_t>(d))));
  }
  return step > 0 ? div_down(reached, step) : 0;
}

// The same sums as push, in intervals.
IntervalMatrix HeadAt::pushed(std::span<const double> direction) const {
  const Index n = head_.tokens, d = head_.width, w = head_.value_width;
  const IntervalMatrix x(n, d, direction);
  const IntervalMatrix dv = x * head_.value;
  const IntervalMatrix own = x * transposed(qk_), other = kq_ * transposed(x);
  IntervalMatrix moved(n, w);
  for (Index i = 0; i < n; ++i) {
    // Rates minus any number per row: the weighted sum of u_ij is zero.
    double mean = 0;
    for (Index j = 0; j < n; ++j)
      mean += midpoint(shares_(i, j)) * midpoint(own(i, j) + other(i, j));
    for (Index a = 0; a < w; ++a) {
      Interval sum = point(0);
      for (Index j = 0; j < n; ++j) {
        const Interval rate = own(i, j) + other(i, j) - point(mean);
        sum += shares_(i, j) * (dv(j, a) + (v_(j, a) - o_(i, a)) * rate);
      }
      moved(i, a) = sum;
    }
  }
  return moved;
}

double HeadAt::stretch_down(std::span<const double> direction) const {
  const IntervalMatrix moved = pushed(direction);
  const double length = norm2_up(direction);
  return length > 0 ? div_down(length_down(moved.entries), length) : 0;
}

}  // namespace lipscope
