// SPDX-License-Identifier: Apache-2.0
#include "linalg/softmax/softmax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "linalg/softmax/softmax_kernel.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using softmax_detail::Output;
using softmax_detail::Rows;

template <class T>
void adjacent_rows(const Rows<T>& job, std::vector<Index>& left) {
  left.clear();
  softmax_detail::vector_rows(job, left);
  for (const Index row : left) softmax_detail::plain_row(job, row);
}

// A few rows at a time in a scratch array, the masked entries replaced.
template <class T>
void scattered_rows(const RowLayout& layout, Rows<T> job, const std::uint8_t* mask) {
  constexpr Index kTile = 16, kEntries = 1 << 14;
  const Index n = layout.length;
  const Index tile =
      std::clamp<Index>(kEntries / std::max<Index>(n, 1), 1, std::min(kTile, layout.rows));
  const T masked = std::copysign(std::numeric_limits<T>::infinity(), static_cast<T>(-job.lambda));
  const bool one_each = job.output == Output::kLogSumExp;
  std::vector<T> scratch(static_cast<std::size_t>(tile * n));
  std::vector<Index> left;
  const T* const x = job.x;
  T* const y = job.y;
  for (Index first = 0; first < layout.rows; first += tile) {
    const Index count = std::min(tile, layout.rows - first);
    for (Index i = 0; i < n; ++i) {
      for (Index r = 0; r < count; ++r) {
        const Index at = (first + r) * layout.row_stride + i * layout.step;
        scratch[static_cast<std::size_t>(r * n + i)] = mask && !mask[at] ? masked : x[at];
      }
    }
    job.rows = count;
    job.first_row = first;
    job.x = scratch.data();
    job.x_stride = n;
    job.y = one_each ? y + first : scratch.data();
    job.y_stride = one_each ? 1 : n;
    adjacent_rows(job, left);
    if (one_each) continue;
    for (Index i = 0; i < n; ++i) {
      for (Index r = 0; r < count; ++r) {
        y[(first + r) * layout.row_stride + i * layout.step] =
            scratch[static_cast<std::size_t>(r * n + i)];
      }
    }
  }
}

template <class T>
void run_rows(const RowLayout& layout, const T* x, T* y, const SoftmaxOptions& options,
              Output output) {
  LIPSCOPE_CHECK(layout.rows >= 0 && layout.length >= 0);
  if (!std::isfinite(options.lambda) || options.lambda == 0) {
    throw Error(ErrorCode::kUsage,
                fmt::format("softmax: lambda must be finite and not 0, not {}", options.lambda));
  }
  if (layout.rows == 0) return;
  Rows<T> job{.rows = layout.rows,
              .length = layout.length,
              .x_stride = layout.row_stride,
              .y_stride = output == Output::kLogSumExp ? 1 : layout.row_stride,
              .x = x,
              .y = y,
              .lambda = options.lambda,
              .accurate = options.mode == SoftmaxMode::kAccurate,
              .output = output};
  if (options.mask || (layout.step != 1 && layout.length > 1)) {
    scattered_rows(layout, job, options.mask);
  } else {
    std::vector<Index> left;
    adjacent_rows(job, left);
  }
}

}  // namespace

void softmax_rows(const RowLayout& layout, const float* x, float* s,
                  const SoftmaxOptions& options) {
  run_rows(layout, x, s, options, Output::kSoftmax);
}
void softmax_rows(const RowLayout& layout, const double* x, double* s,
                  const SoftmaxOptions& options) {
  run_rows(layout, x, s, options, Output::kSoftmax);
}
void log_softmax_rows(const RowLayout& layout, const float* x, float* y,
                      const SoftmaxOptions& options) {
  run_rows(layout, x, y, options, Output::kLogSoftmax);
}
void log_softmax_rows(const RowLayout& layout, const double* x, double* y,
                      const SoftmaxOptions& options) {
  run_rows(layout, x, y, options, Output::kLogSoftmax);
}
void log_sum_exp_rows(const RowLayout& layout, const float* x, float* y,
                      const SoftmaxOptions& options) {
  run_rows(layout, x, y, options, Output::kLogSumExp);
}
void log_sum_exp_rows(const RowLayout& layout, const double* x, double* y,
                      const SoftmaxOptions& options) {
  run_rows(layout, x, y, options, Output::kLogSumExp);
}

}  // namespace lipscope
