// SPDX-License-Identifier: Apache-2.0
// D = max |a_ij - a_kj - a_il + a_kl|, the largest oscillation of a difference of two columns.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>

#include "base/parallel.h"
#include "base/rounding.h"
#include "games/centred.h"

namespace lipscope {
namespace {

constexpr std::size_t kWidth = 2;
using Pack = double __attribute__((vector_size(kWidth * sizeof(double))));

inline Pack load_pack(const double* p) {
  Pack v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Rounding to nearest is monotone: the largest rounded difference is the rounded largest one.
struct Oscillation {
  double low = kInf, high = -kInf;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] double up() const { return sub_up(next_up(high), next_down(low)); }
  [[nodiscard]] double down() const { return max_nan(0, sub_down(next_down(high), next_up(low))); }
};

// Of a - b, entry by entry.
Oscillation oscillation(const double* a, const double* b, std::size_t n) {
  Oscillation result;
  std::size_t i = 0;
  if (n >= 2 * kWidth) {
    Pack low[2], high[2];
    for (std::size_t k = 0; k < 2; ++k)
      low[k] = high[k] = load_pack(a + k * kWidth) - load_pack(b + k * kWidth);
    for (i = 2 * kWidth; i + 2 * kWidth <= n; i += 2 * kWidth) {
      for (std::size_t k = 0; k < 2; ++k) {
        const Pack d = load_pack(a + i + k * kWidth) - load_pack(b + i + k * kWidth);
        low[k] = d < low[k] ? d : low[k];
        high[k] = d > high[k] ? d : high[k];
      }
    }
    for (std::size_t k = 0; k < 2 * kWidth; ++k) {
      result.add(low[k / kWidth][k % kWidth]);
      result.add(high[k / kWidth][k % kWidth]);
    }
  }
  for (; i < n; ++i) result.add(a[i] - b[i]);
  return result;
}

// The same, without widening where the differences are exact.
double sharp_oscillation_up(const double* a, const double* b, std::size_t n) {
  double low = kInf, high = -kInf;
  for (std::size_t i = 0; i < n; ++i) {
    low = std::min(low, sub_down(a[i], b[i]));
    high = std::max(high, sub_up(a[i], b[i]));
  }
  return sub_up(high, low);
}

struct Line {
  std::size_t index = 0;
  double up = 0;  // oscillation of this line less the middle of all lines
};

// Lines by falling oscillation: osc(a - b) <= osc(a - u) + osc(b - u) for every u.
std::vector<Line> sorted_lines(const std::vector<double>& lines, std::size_t count,
                               std::size_t length) {
  std::vector<double> low(length, kInf), high(length, -kInf), middle(length);
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t i = 0; i < length; ++i) {
      low[i] = std::min(low[i], lines[j * length + i]);
      high[i] = std::max(high[i], lines[j * length + i]);
    }
  }
  for (std::size_t i = 0; i < length; ++i) middle[i] = low[i] / 2 + high[i] / 2;
  std::vector<Line> out(count);
  for (std::size_t j = 0; j < count; ++j)
    out[j] = {j, sharp_oscillation_up(&lines[j * length], middle.data(), length)};
  std::sort(out.begin(), out.end(), [](const Line& a, const Line& b) { return a.up > b.up; });
  return out;
}

// Of the pairs of line j with later ones: an upper bound of all, at least `best`, and a lower bound
// of the widest. Alone, so that the result does not depend on how lines are dealt to threads.
Enclosure widest_with(const std::vector<double>& lines, const std::vector<Line>& order,
                      std::size_t j, std::size_t length, double best) {
  constexpr int kRefined = 64;  // ties would all be looked at twice
  Enclosure found{0, best};
  const double* a = &lines[order[j].index * length];
  for (std::size_t l = j + 1, refined = 0; l < order.size(); ++l) {
    if (add_up(order[j].up, order[l].up) <= found.upper) break;
    const double* b = &lines[order[l].index * length];
    const Oscillation pair = oscillation(a, b, length);
    found.lower = std::max(found.lower, pair.down());
    if (pair.up() <= found.upper) continue;
    const bool sharp = refined++ < kRefined;
    found.upper = std::max(found.upper, sharp ? sharp_oscillation_up(a, b, length) : pair.up());
  }
  return found;
}

// Pairs of the sorted lines in blocks of first members, until no pair can exceed the best one, or
// until the work is spent: then the bound of the pairs left out counts.
Enclosure spread(const std::vector<double>& lines, std::size_t count, std::size_t length,
                 double max_work) {
  const std::vector<Line> order = sorted_lines(lines, count, length);
  double up = 0, down = 0, work = 0;
  constexpr std::size_t kBlock = 16;
  for (std::size_t begin = 0; begin + 1 < count; begin += kBlock) {
    if (add_up(order[begin].up, order[begin + 1].up) <= up) break;
    work += static_cast<double>(kBlock * (count - begin)) * static_cast<double>(length);
    if (work > max_work) {
      up = std::max(up, add_up(order[begin].up, order[begin + 1].up));
      break;
    }
    const std::size_t end = std::min(begin + kBlock, count - 1);
    std::mutex mutex;
    const auto one = [&, best = up](std::size_t j) {
      const Enclosure found = widest_with(lines, order, j, length, best);
      const std::lock_guard lock(mutex);
      up = std::max(up, found.upper);
      down = std::max(down, found.lower);
    };
    const auto pairs = static_cast<Index>((count - begin) * length);
    parallel_for(static_cast<Index>(end - begin), grain(pairs), [&](Index from, Index to) {
      for (Index j = from; j < to; ++j) one(begin + static_cast<std::size_t>(j));
    });
  }
  return {down, up};
}

}  // namespace

Contraction contraction_of(const Game& game, double max_work) {
  const auto rows = static_cast<std::size_t>(game.rows), cols = static_cast<std::size_t>(game.cols);
  // D is that of the transpose: pairs of the side with fewer lines.
  Contraction result;
  result.spread = rows <= cols
                      ? spread(game.payoff, rows, cols, max_work)
                      : spread(transposed(game.rows, game.cols, game.payoff), cols, rows, max_work);
  result.tau_guaranteed = mul_up(result.spread.upper, 0.25);
  const double root = div_up(result.spread.upper, mul_down(4, game.tau));
  result.factor = mul_up(root, root);
  return result;
}

}  // namespace lipscope
