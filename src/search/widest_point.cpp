// SPDX-License-Identifier: Apache-2.0
#include "search/widest_point.h"

#include <algorithm>
#include <cmath>

namespace lipscope {
namespace {

// Maximise s with a_i x - s - y_i = -c_i for unit rows a_i, low <= x <= high, y >= 0. Variables:
// x, then s, then y.
class Simplex {
 public:
  Simplex(const PlaneRows& rows, std::span<const double> low, std::span<const double> high,
          std::span<const double> start)
      : low_(low), high_(high), n_(low.size()), m_(rows.offsets.size()) {
    a_.assign(rows.weights.begin(), rows.weights.end());
    c_.assign(rows.offsets.begin(), rows.offsets.end());
    lengths_.resize(m_);
    for (std::size_t i = 0; i < m_; ++i) {
      double square = 0;
      for (std::size_t j = 0; j < n_; ++j) square += a_[i * n_ + j] * a_[i * n_ + j];
      lengths_[i] = square > 0 ? std::sqrt(square) : 1;
      for (std::size_t j = 0; j < n_; ++j) a_[i * n_ + j] /= lengths_[i];
      c_[i] /= lengths_[i];
    }
    at_high_.resize(n_ + 1 + m_);
    x_.resize(n_);
    for (std::size_t j = 0; j < n_; ++j) {
      at_high_[j] = start[j] - low[j] > high[j] - start[j];
      x_[j] = at_high_[j] ? high[j] : low[j];
    }
    std::vector<double> value = c_;
    for (std::size_t i = 0; i < m_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) value[i] += a_[i * n_ + j] * x_[j];
    }
    s_row_ = static_cast<std::size_t>(std::ranges::min_element(value) - value.begin());
    basis_.resize(m_);
    basic_.assign(n_ + 1 + m_, false);
    values_.resize(m_);
    inverse_.assign(m_ * m_, 0);
    for (std::size_t i = 0; i < m_; ++i) {
      basis_[i] = i == s_row_ ? n_ : n_ + 1 + i;
      basic_[basis_[i]] = true;
      values_[i] = i == s_row_ ? value[i] : value[i] - value[s_row_];
      inverse_[i * m_ + i] = -1;
      if (i != s_row_) inverse_[i * m_ + s_row_] = 1;
    }
  }

  [[nodiscard]] double slack() const { return values_[s_row_]; }

  // False at the optimum or when numbers fail.
  bool step() {
    const double* duals = &inverse_[s_row_ * m_];  // minus the weights
    reduced_.assign(n_, 0);
    for (std::size_t i = 0; i < m_; ++i) {
      if (duals[i] == 0) continue;
      for (std::size_t j = 0; j < n_; ++j) reduced_[j] -= duals[i] * a_[i * n_ + j];
    }
    std::size_t enters = n_ + 1 + m_;
    double most = 1e-10;
    for (std::size_t j = 0; j < n_; ++j) {
      if (basic_[j]) continue;
      const double gain = (at_high_[j] ? -reduced_[j] : reduced_[j]) * (high_[j] - low_[j]);
      if (gain > most) {
        most = gain;
        enters = j;
      }
    }
    for (std::size_t i = 0; i < m_; ++i) {
      if (basic_[n_ + 1 + i]) continue;
      if (duals[i] > 1e-10 && (enters > n_ + m_ || duals[i] > most)) {
        most = duals[i];
        enters = n_ + 1 + i;
      }
    }
    if (enters > n_ + m_) return false;
    return bring_in(enters);
  }

  [[nodiscard]] WidestPoint result() const {
    WidestPoint found{x_, slack(), std::vector<double>(m_)};
    for (std::size_t i = 0; i < m_; ++i) {
      if (basis_[i] < n_) found.x[basis_[i]] = values_[i];
      found.weights[i] = std::max(0.0, -inverse_[s_row_ * m_ + i]) / lengths_[i];
    }
    for (std::size_t j = 0; j < n_; ++j) found.x[j] = std::clamp(found.x[j], low_[j], high_[j]);
    return found;
  }

 private:
  bool bring_in(std::size_t enters) {
    column_.assign(m_, 0);
    for (std::size_t i = 0; i < m_; ++i) {
      if (enters > n_) {
        column_[i] = -inverse_[i * m_ + (enters - n_ - 1)];
      } else {
        for (std::size_t k = 0; k < m_; ++k)
          column_[i] += inverse_[i * m_ + k] * a_[k * n_ + enters];
      }
    }
    const double way = at_high_[enters] ? -1 : 1;
    double step = enters < n_ ? high_[enters] - low_[enters] : HUGE_VAL;
    std::size_t leaves = m_;
    bool to_high = false;
    for (std::size_t i = 0; i < m_; ++i) {
      const double rate = -way * column_[i];
      if (i == s_row_ || std::fabs(rate) < 1e-11) continue;
      const bool slack = basis_[i] > n_;
      const double floor = slack ? 0 : low_[basis_[i]], top = slack ? HUGE_VAL : high_[basis_[i]];
      const double room = rate < 0 ? (values_[i] - floor) / -rate : (top - values_[i]) / rate;
      if (room < step) {
        step = std::max(room, 0.0);
        leaves = i;
        to_high = rate > 0;
      }
    }
    if (!(step < HUGE_VAL)) return false;
    for (std::size_t i = 0; i < m_; ++i) values_[i] -= way * step * column_[i];
    if (leaves == m_) {
      at_high_[enters] = !at_high_[enters];
      x_[enters] = at_high_[enters] ? high_[enters] : low_[enters];
      return true;
    }
    const std::size_t out = basis_[leaves];
    const double pivot = column_[leaves];
    if (std::fabs(pivot) < 1e-11) return false;
    if (out < n_) x_[out] = to_high ? high_[out] : low_[out];
    at_high_[out] = out < n_ && to_high;
    basic_[out] = false;
    basic_[enters] = true;
    basis_[leaves] = enters;
    const double from = enters < n_ ? x_[enters] : 0;
    values_[leaves] = from + way * step;
    double* row = &inverse_[leaves * m_];
    for (std::size_t k = 0; k < m_; ++k) row[k] /= pivot;
    for (std::size_t i = 0; i < m_; ++i) {
      if (i == leaves || column_[i] == 0) continue;
      for (std::size_t k = 0; k < m_; ++k) inverse_[i * m_ + k] -= column_[i] * row[k];
    }
    return true;
  }

  std::span<const double> low_, high_;
  std::size_t n_, m_, s_row_ = 0;
  std::vector<double> a_, c_, lengths_, x_, values_, inverse_, reduced_, column_;
  std::vector<std::size_t> basis_;
  std::vector<bool> at_high_, basic_;
};

}  // namespace

WidestPoint widest_point(const PlaneRows& rows, std::span<const double> low,
                         std::span<const double> high, std::span<const double> start,
                         bool to_the_end) {
  const std::size_t m = rows.offsets.size();
  if (m == 0) return {{start.begin(), start.end()}, HUGE_VAL, {}};
  Simplex simplex(rows, low, high, start);
  for (std::size_t step = 0; step < 100 + 10 * m; ++step) {
    if (!to_the_end && simplex.slack() > 0) break;
    if (!simplex.step()) break;
  }
  return simplex.result();
}

}  // namespace lipscope
