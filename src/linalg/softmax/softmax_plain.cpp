// SPDX-License-Identifier: Apache-2.0
// Any row, in double, entry by entry: for processors without vector code and for the rows it does
// not take.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "linalg/softmax/softmax_kernel.h"
#include "lipscope/error.h"

namespace lipscope::softmax_detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void add(RowSum& sum, double term) {
  const double t = sum.hi + term, b = t - sum.hi;
  sum.lo += (sum.hi - (t - b)) + (term - b);
  sum.hi = t;
}

// lambda (x - top) = value + error to twice the precision of a double; value is 0 or negative.
struct Distance {
  double value, error;
};
Distance distance(double x, double lambda, double top) {
  double unit = 1;
  if (std::isinf(x - top)) unit = 0.5, x *= unit, top *= unit;
  const double factor = lambda / unit;
  const double d = x - top, b = d - x;
  const double rest = (x - (d - b)) - (top + b);
  const double value = factor * d;
  if (!(value >= -0x1p1000)) return {value, 0};
  return {value, std::fma(factor, d, -value) + factor * rest};
}

double term_at(const Distance& d) {
  if (d.value < -800) return 0;  // exp underflows below -745.2
  const double e = std::exp(d.value);
  return std::fma(e, d.error, e);
}

template <class T, class Value>
void fill(const Rows<T>& job, Index row, Value value) {
  T* y = job.y + row * job.y_stride;
  for (Index i = 0; i < job.length; ++i) y[i] = static_cast<T>(value(i));
}

// Rows whose largest entry is infinite, with `ties` entries at +inf.
template <class T>
void infinite_row(const Rows<T>& job, Index row, Index ties) {
  const T* x = job.x + row * job.x_stride;
  const bool log = job.output == Output::kLogSoftmax;
  if (job.output == Output::kLogSumExp) {
    job.y[row * job.y_stride] = static_cast<T>(ties > 0 ? kInfinity : -kInfinity);
    return;
  }
  const auto count = static_cast<double>(ties);
  const double none = log ? -kInfinity : 0;
  const double share = ties == 0 ? none : log ? -std::log(count) : 1 / count;
  fill(job, row, [&](Index i) {
    const bool wins = std::isinf(x[i]) && (x[i] > 0) == (job.lambda > 0);
    return wins ? share : none;
  });
}

}  // namespace

double plain_term(double x, double lambda, double top) {
  return std::isinf(x) ? 0 : term_at(distance(x, lambda, top));
}

RowSum plain_sum(const double* x, Index length, double lambda, double top) {
  RowSum sum;
  for (Index i = 0; i < length; ++i) add(sum, plain_term(x[i], lambda, top));
  return sum;
}

template <class T>
void plain_row(const Rows<T>& job, Index row) {
  const T* x = job.x + row * job.x_stride;
  const bool falling = job.lambda < 0;
  T top = falling ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
  Index ties = 0;  // at +inf after the multiplication
  for (Index i = 0; i < job.length; ++i) {
    if (std::isnan(x[i])) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("softmax: NaN at row {}, column {}", job.first_row + row, i));
    }
    if (falling ? x[i] < top : x[i] > top) top = x[i];
    ties += std::isinf(x[i]) && (x[i] < 0) == falling;
  }
  if (std::isinf(top)) return infinite_row(job, row, ties);

  const double peak = static_cast<double>(top);
  const auto at = [&](Index i) { return static_cast<double>(x[i]); };
  RowSum sum;
  for (Index i = 0; i < job.length; ++i) add(sum, plain_term(at(i), job.lambda, peak));
  if (job.output == Output::kSoftmax) {
    const double inverse = 1 / sum.hi;
    const double rest = (std::fma(-inverse, sum.hi, 1.0) - inverse * sum.lo) * inverse;
    fill(job, row, [&](Index i) {
      const double e = plain_term(at(i), job.lambda, peak);
      return std::fma(e, inverse, e * rest);
    });
    return;
  }
  const double log_sum = std::log(sum.hi) + sum.lo / sum.hi;
  if (job.output == Output::kLogSumExp) {
    job.y[row * job.y_stride] = static_cast<T>(std::fma(job.lambda, peak, log_sum));
    return;
  }
  fill(job, row, [&](Index i) {
    if (std::isinf(x[i])) return -kInfinity;
    const Distance d = distance(at(i), job.lambda, peak);
    return d.value + (d.error - log_sum);
  });
}

template void plain_row<float>(const Rows<float>& job, Index row);
template void plain_row<double>(const Rows<double>& job, Index row);

}  // namespace lipscope::softmax_detail
