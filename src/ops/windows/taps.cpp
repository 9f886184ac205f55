// SPDX-License-Identifier: Apache-2.0
#include "ops/windows/taps.h"

#include <algorithm>

#include "lipscope/error.h"
#include "ops/linear/linear_gain.h"

namespace lipscope {
namespace {

Index ceil_div(Index a, Index b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

struct Range {
  Index begin, end;
  [[nodiscard]] Index size() const { return std::max<Index>(0, end - begin); }
};

// The k with low <= o * stride - pad_begin + k * dilation < high.
Range kernel_range(const Window& w, std::size_t a, Index o, Index low, Index high) {
  const Index start = o * w.stride[a] - w.pad_begin[a];
  return {std::clamp<Index>(ceil_div(low - start, w.dilation[a]), 0, w.kernel[a]),
          std::clamp<Index>(ceil_div(high - start, w.dilation[a]), 0, w.kernel[a])};
}

// The o for which kernel position k looks into the input.
Range output_range(const Window& w, std::size_t a, Index k) {
  const Index shift = k * w.dilation[a] - w.pad_begin[a];
  return {std::clamp<Index>(ceil_div(-shift, w.stride[a]), 0, w.output[a]),
          std::clamp<Index>(ceil_div(w.input[a] - shift, w.stride[a]), 0, w.output[a])};
}

Index product_of(const std::vector<Index>& v) {
  Index p = 1;
  for (const Index d : v) p *= d;
  return p;
}

// Runs along the last axis for one output row and one input row, given by their offsets.
void lay_out_row(const Window& w, Index out_row, Index in_row, Taps& taps) {
  const std::size_t a = w.rank() - 1;
  if (w.output[a] == 0) return;
  const Index first = kernel_range(w, a, w.output[a] - 1, 0, w.input[a]).begin;
  const Index last = kernel_range(w, a, 0, 0, w.input[a]).end;
  for (Index k = first; k < last; ++k) {
    const Range o = output_range(w, a, k);
    if (o.size() == 0) continue;
    const Index in = o.begin * w.stride[a] - w.pad_begin[a] + k * w.dilation[a];
    taps.taps.push_back({static_cast<std::int32_t>(out_row * w.output[a] + o.begin),
                         static_cast<std::int32_t>(in_row * w.input[a] + in),
                         static_cast<std::int32_t>(o.size())});
  }
}

// Walks the output positions of the leading axes; `in_rows` holds the input rows seen so far.
void walk(const Window& w, std::size_t a, Index out_row, const std::vector<Index>& in_rows,
          Taps& taps) {
  if (a + 1 == w.rank()) {
    for (const Index in_row : in_rows) lay_out_row(w, out_row, in_row, taps);
    return;
  }
  for (Index o = 0; o < w.output[a]; ++o) {
    const Range k = kernel_range(w, a, o, 0, w.input[a]);
    std::vector<Index> next;
    next.reserve(in_rows.size() * static_cast<std::size_t>(k.size()));
    for (const Index row : in_rows) {
      for (Index i = k.begin; i < k.end; ++i) {
        next.push_back(row * w.input[a] + o * w.stride[a] - w.pad_begin[a] + i * w.dilation[a]);
      }
    }
    walk(w, a + 1, out_row * w.output[a] + o, next, taps);
  }
}

}  // namespace

Taps lay_out(const Window& window) {
  Taps taps{product_of(window.input), product_of(window.output), 1, {}};
  constexpr Index kLargest = INT32_MAX;
  if (taps.in_size > kLargest || taps.out_size > kLargest) {
    throw Error(ErrorCode::kUnsupported, "a pool over more than 2^31 entries");
  }
  if (window.rank() == 0) {
    taps.taps.push_back({0, 0, 1});
    return taps;
  }
  taps.step = window.stride.back();
  walk(window, 0, 0, {0}, taps);
  return taps;
}

std::vector<Index> window_counts(const Window& w, bool include_pad) {
  std::vector<Index> counts{1};
  for (std::size_t a = 0; a < w.rank(); ++a) {
    const Index low = include_pad ? -w.pad_begin[a] : 0;
    const Index high = w.input[a] + (include_pad ? w.pad_end[a] : 0);
    std::vector<Index> next;
    next.reserve(counts.size() * static_cast<std::size_t>(w.output[a]));
    for (const Index c : counts) {
      for (Index o = 0; o < w.output[a]; ++o)
        next.push_back(c * kernel_range(w, a, o, low, high).size());
    }
    counts = std::move(next);
  }
  return counts;
}

double window_gain_up(const Taps& taps, Index planes, Norm order, const NormPair& norms) {
  std::vector<Index> cover(static_cast<std::size_t>(taps.in_size), 0);
  std::vector<Index> cells(static_cast<std::size_t>(taps.out_size), 0);
  for (const Tap& tap : taps.taps) {
    for (Index i = 0; i < tap.length; ++i) {
      ++cover[static_cast<std::size_t>(tap.in + i * taps.step)];
      ++cells[static_cast<std::size_t>(tap.out + i)];
    }
  }
  const auto largest = [](const std::vector<Index>& list) {
    return list.empty() ? 0 : *std::max_element(list.begin(), list.end());
  };
  const Index windows = largest(cover), most = largest(cells);
  // Through the p-norm, respectively the q-norm, of every window.
  const auto through = [&](Norm norm, Index entries) {
    const double each = norm_equivalence_up(most, norm, order);
    return gain_mul_up(gain_mul_up(each, copied_norm_up(windows, norm)),
                       norm_equivalence_up(entries, norms.in, norms.out));
  };
  const double plane = std::min(through(norms.in, taps.out_size), through(norms.out, taps.in_size));
  return repeated_norm_up(plane, planes, norms);
}

}  // namespace lipscope
