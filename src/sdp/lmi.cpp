// SPDX-License-Identifier: Apache-2.0
#include "sdp/lmi.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "linalg/blas.h"
#include "linalg/block_definite.h"

namespace lipscope {
namespace {

using Vector = std::vector<double>;

// The matrix of [global-2] by blocks x_0, ..., x_L, output; scaled by powers of two to a diagonal
// of about 1. |true - computed| has row sums below `error`.
class Form {
 public:
  Form(const Chain& chain, const Multipliers& t, double rho) : chain_(chain), t_(t), rho_(rho) {
    m_.sizes.push_back(chain.inputs());
    for (const ChainLayer& layer : chain.layers) m_.sizes.push_back(layer.rows);
    for (const Index n : m_.sizes) error_.emplace_back(static_cast<std::size_t>(n));
  }

  [[nodiscard]] bool is_positive() {
    if (!usable()) return false;
    fill();
    scale();
    bound_errors();
    double trace = 0, error = 0, widest = 0;
    for (std::size_t k = 0; k < m_.sizes.size(); ++k) {
      widest = std::max(widest, static_cast<double>(m_.sizes[k] + (k > 0 ? m_.sizes[k - 1] : 0)));
      for (Index i = 0; i < m_.sizes[k]; ++i) trace = add_up(trace, m_.entry(k, i));
      for (const double e : error_[k]) error = !(e <= error) ? e : error;  // NaN stays
    }
    // More than the factorisation may need: [norms-16].
    const double shift =
        add_up(error, mul_up(2.2 * widest + 20, mul_up(2 * 0x1p-53, add_up(trace, 1))));
    if (!std::isfinite(shift)) return false;
    for (std::size_t k = 0; k < m_.sizes.size(); ++k) {
      for (Index i = 0; i < m_.sizes[k]; ++i) m_.entry(k, i) = sub_down(m_.entry(k, i), shift);
    }
    return add_up(block_definite_deficit_up(m_), error) <= shift;
  }

 private:
  bool usable() const {
    if (!(rho_ > 0) || !std::isfinite(rho_) || t_.size() != chain_.slopes.size()) return false;
    for (std::size_t k = 0; k < t_.size(); ++k) {
      if (static_cast<Index>(t_[k].size()) != chain_.layers[k].rows) return false;
      for (const double t : t_[k]) {
        if (!(t >= 0) || !std::isfinite(t)) return false;
      }
    }
    return true;
  }

  // For each phi with slopes [a, b] and v = W x before it
  //   2 T (x' - a v)(x' - b v) = 2 T x'^2 - 2 T (a + b) x' v + 2 T a b v^2;
  // rho I at the beginning, [., W_L'; W_L, I] at the end.
  void fill() {
    for (std::size_t k = 0; k < chain_.layers.size(); ++k) squares_.push_back(square_weights(k));
    for (std::size_t k = 0; k < m_.sizes.size(); ++k) {
      const Index n = m_.sizes[k];
      const bool thin = k == 0 && squares_[0].empty() && n > 1;
      m_.diagonal.emplace_back(static_cast<std::size_t>(thin ? n : n * n));
      for (Index i = 0; i < n; ++i) {
        const bool last = k + 1 == m_.sizes.size();
        m_.entry(k, i) = k == 0 ? rho_ : last ? 1 : 2 * t_[k - 1][static_cast<std::size_t>(i)];
      }
      if (k < squares_.size() && !squares_[k].empty()) add_square(k);
    }
    for (std::size_t k = 0; k < chain_.layers.size(); ++k) {
      m_.below.push_back(chain_.layers[k].weights);
      if (k == t_.size()) continue;  // the output
      for (Index i = 0; i < chain_.layers[k].rows; ++i) {
        const Interval slope = chain_.slopes[k][static_cast<std::size_t>(i)];
        const double factor = -t_[k][static_cast<std::size_t>(i)] * (slope.lo + slope.hi);
        for (double& w : row(m_.below.back(), k, i)) w *= factor;
      }
    }
  }

  std::span<double> row(Vector& all, std::size_t k, Index i) const {
    const Index cols = chain_.layers[k].cols;
    return std::span(all).subspan(static_cast<std::size_t>(i * cols),
                                  static_cast<std::size_t>(cols));
  }
  std::span<const double> row(const Vector& all, std::size_t k, Index i) const {
    const Index cols = chain_.layers[k].cols;
    return std::span(all).subspan(static_cast<std::size_t>(i * cols),
                                  static_cast<std::size_t>(cols));
  }

  // 2 T a b; empty when all are zero.
  Vector square_weights(std::size_t k) const {
    Vector d;
    if (k == t_.size()) return d;
    for (std::size_t i = 0; i < t_[k].size(); ++i)
      d.push_back(2 * t_[k][i] * chain_.slopes[k][i].lo * chain_.slopes[k][i].hi);
    if (std::ranges::all_of(d, [](double e) { return e == 0; })) d.clear();
    return d;
  }

  // W' D W.
  void add_square(std::size_t k) {
    const ChainLayer& layer = chain_.layers[k];
    Vector scaled = layer.weights;
    for (Index i = 0; i < layer.rows; ++i) {
      for (double& w : row(scaled, k, i)) w *= squares_[k][static_cast<std::size_t>(i)];
    }
    gemm(layer.cols, layer.cols, layer.rows, 1.0, {layer.weights.data(), layer.cols, true},
         {scaled.data(), layer.cols}, 1.0, m_.diagonal[k].data(), layer.cols);
  }

  // Exact but for underflow, which the errors count.
  void scale() {
    for (std::size_t k = 0; k < m_.sizes.size(); ++k) {
      Vector unit;
      for (Index i = 0; i < m_.sizes[k]; ++i) {
        int exponent = 0;
        const double d = m_.entry(k, i);
        if (d > 0 && std::isfinite(d)) std::frexp(d, &exponent);
        exponent = std::clamp(exponent, -1000, 1000);
        unit.push_back(std::ldexp(1.0, -(exponent >= 0 ? exponent / 2 : (exponent - 1) / 2)));
      }
      unit_.push_back(std::move(unit));
    }
    for (std::size_t k = 0; k < m_.sizes.size(); ++k) {
      if (m_.is_diagonal(k)) {
        for (std::size_t i = 0; i < unit_[k].size(); ++i)
          m_.diagonal[k][i] *= unit_[k][i] * unit_[k][i];
      } else {
        times_units(m_.diagonal[k], unit_[k], unit_[k]);
      }
      if (k + 1 < m_.sizes.size()) times_units(m_.below[k], unit_[k + 1], unit_[k]);
    }
  }
  static void times_units(Vector& block, const Vector& rows, const Vector& cols) {
    double* e = block.data();
    for (const double r : rows) {
      for (const double c : cols) *e++ *= r * c;
    }
  }

  // An entry of the couplings goes through at most three roundings (the sum of the slopes, two
  // products), one of the diagonal through at most two beside those of W'DW, which are charged
  // there; scaling may lose 2^-1074 in each entry. Eight roundings are charged.
  void bound_errors() {
    const double gamma = gamma_up(8);
    for (std::size_t k = 0; k < m_.sizes.size(); ++k) {
      const double lost = mul_up(static_cast<double>(4 * (m_.sizes[k] + 1)), 2 * kMinSubnormal);
      for (Index i = 0; i < m_.sizes[k]; ++i) {
        double& e = error_[k][static_cast<std::size_t>(i)];
        e = add_up(e, add_up(mul_up(gamma, std::fabs(m_.entry(k, i))), lost));
      }
    }
    for (std::size_t k = 0; k < chain_.layers.size(); ++k) {
      charge_coupling(k, gamma);
      if (!squares_[k].empty()) charge_square(k);
    }
  }

  void charge_coupling(std::size_t k, double gamma) {
    const ChainLayer& layer = chain_.layers[k];
    const bool output = k == t_.size();
    if (output && layer.radius.empty()) return;  // the weights as they are
    const double lost = mul_up(static_cast<double>(layer.rows + layer.cols), kMinSubnormal);
    for (Index i = 0; i < layer.rows; ++i) {
      const auto at = static_cast<std::size_t>(i);
      double factor = unit_[k + 1][at];
      if (!output) {
        const Interval sum = point(chain_.slopes[k][at].lo) + point(chain_.slopes[k][at].hi);
        factor = mul_up(factor, mul_up(t_[k][at], magnitude(sum)));
      }
      const auto weights = row(layer.weights, k, i);
      double across = lost;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        const double radius = layer.radius.empty() ? 0 : row(layer.radius, k, i)[j];
        double off =
            output ? radius : add_up(mul_up(gamma, add_up(std::fabs(weights[j]), radius)), radius);
        off = mul_up(mul_up(off, factor), unit_[k][j]);
        across = add_up(across, off);
        error_[k][j] = add_up(error_[k][j], add_up(off, kMinSubnormal));
      }
      error_[k + 1][at] = add_up(error_[k + 1][at], across);
    }
  }

  // |W'DW - computed| <= gamma (|W| + R)'|D|(|W| + R) + R'|D|(|W| + R) + (|W| + R)'|D|R entrywise;
  // row sums by products with vectors. D is rounded three times: part of the eight in gamma.
  void charge_square(std::size_t k) {
    const ChainLayer& layer = chain_.layers[k];
    const double gamma = gamma_up(static_cast<std::size_t>(layer.rows + 8));
    const double lost = mul_up(static_cast<double>(4 * layer.rows * layer.cols), kMinSubnormal);
    Vector sums(static_cast<std::size_t>(layer.cols), lost);
    for (Index i = 0; i < layer.rows; ++i) {
      const auto weights = row(layer.weights, k, i);
      const auto radius = [&](std::size_t j) {
        return layer.radius.empty() ? 0 : row(layer.radius, k, i)[j];
      };
      const double d = mul_up(std::fabs(squares_[k][static_cast<std::size_t>(i)]), 1 + 0x1p-40);
      double size = 0, spread = 0;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        size = add_up(size, mul_up(add_up(std::fabs(weights[j]), radius(j)), unit_[k][j]));
        spread = add_up(spread, mul_up(radius(j), unit_[k][j]));
      }
      for (std::size_t j = 0; j < weights.size(); ++j) {
        const double w = add_up(std::fabs(weights[j]), radius(j));
        const double part =
            add_up(mul_up(add_up(mul_up(gamma, w), radius(j)), size), mul_up(w, spread));
        sums[j] = add_up(sums[j], mul_up(d, part));
      }
    }
    for (std::size_t j = 0; j < sums.size(); ++j)
      error_[k][j] = add_up(error_[k][j], mul_up(sums[j], unit_[k][j]));
  }

  const Chain& chain_;
  const Multipliers& t_;
  double rho_;
  BlockTridiagonal m_;
  std::vector<Vector> unit_, error_, squares_;  // by block
};

}  // namespace

bool proves_chain(const Chain& chain, const Multipliers& multipliers, double rho) {
  return Form(chain, multipliers, rho).is_positive();
}

double chain_constant_up(const Chain& chain, double rho) {
  const double scaled = std::ldexp(sqrt_up(rho), chain.exponent);
  return scaled < 0x1p-900 ? add_up(scaled, kMinSubnormal) : scaled;
}

}  // namespace lipscope
