// SPDX-License-Identifier: Apache-2.0
#include "sdp/lmi.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "linalg/blas.h"
#include "linalg/definite.h"

namespace lipscope {
namespace {

// The matrix of [global-2], scaled by powers of two to a diagonal of about 1, and a bound of what
// rounding and the radii of the weights may hide: |true - computed| has row sums below `error`.
class Form {
 public:
  Form(const Chain& chain, const Multipliers& t, double rho)
      : chain_(chain), t_(t), rho_(rho), n_(chain.size()) {
    entries_.assign(static_cast<std::size_t>(n_ * n_), 0);
    error_.assign(static_cast<std::size_t>(n_), 0);
    start_.push_back(0);
    start_.push_back(chain.inputs());
    for (const ChainLayer& layer : chain.layers) start_.push_back(start_.back() + layer.rows);
  }

  [[nodiscard]] bool is_positive() {
    if (!fill()) return false;
    scale();
    const double order = static_cast<double>(n_);
    double trace = 0, error = 0;
    for (Index i = 0; i < n_; ++i) {
      trace = add_up(trace, at(i, i));
      const double e = error_[static_cast<std::size_t>(i)];
      error = !(e <= error) ? e : error;  // NaN stays
    }
    // More than the factorisation may need: [norms-5].
    const double shift =
        add_up(error, mul_up(1.1 * order + 10, mul_up(4 * 0x1p-53, add_up(trace, 1))));
    if (!std::isfinite(shift)) return false;
    for (Index i = 0; i < n_; ++i) at(i, i) = sub_down(at(i, i), shift);
    const double deficit = definite_deficit_up(n_, entries_.data());
    return add_up(deficit, error) <= shift;
  }

 private:
  double& at(Index i, Index j) { return entries_[static_cast<std::size_t>(i * n_ + j)]; }

  // Lower triangle: rho I; for each phi with slopes [a, b] and v = W x before it
  //   2 T (x' - a v)(x' - b v) = 2 T x'^2 - 2 T (a + b) x' v + 2 T a b v^2;
  // [., W_L'; W_L, I] at the end.
  bool fill() {
    if (!(rho_ > 0) || !std::isfinite(rho_) || t_.size() != chain_.slopes.size()) return false;
    for (Index i = 0; i < chain_.inputs(); ++i) at(i, i) = rho_;
    for (std::size_t k = 0; k < chain_.slopes.size(); ++k) {
      if (!add_phi(k)) return false;
    }
    const ChainLayer& last = chain_.layers.back();
    const Index from = start_[chain_.layers.size() - 1], to = start_[chain_.layers.size()];
    for (Index i = 0; i < last.rows; ++i) {
      at(to + i, to + i) = 1;
      for (Index j = 0; j < last.cols; ++j) at(to + i, from + j) = weight(last, i, j);
    }
    return true;
  }

  bool add_phi(std::size_t k) {
    const ChainLayer& layer = chain_.layers[k];
    const Index from = start_[k], to = start_[k + 1];
    if (static_cast<Index>(t_[k].size()) != layer.rows) return false;
    std::vector<double> square(t_[k].size());
    bool any_square = false;
    for (Index i = 0; i < layer.rows; ++i) {
      const double t = t_[k][static_cast<std::size_t>(i)];
      const Interval slope = chain_.slopes[k][static_cast<std::size_t>(i)];
      if (!(t >= 0) || !std::isfinite(t)) return false;
      at(to + i, to + i) += 2 * t;
      const double factor = -t * (slope.lo + slope.hi);
      for (Index j = 0; j < layer.cols; ++j) at(to + i, from + j) = factor * weight(layer, i, j);
      square[static_cast<std::size_t>(i)] = 2 * t * slope.lo * slope.hi;
      any_square = any_square || square[static_cast<std::size_t>(i)] != 0;
    }
    squares_.push_back(any_square ? square : std::vector<double>{});
    if (!any_square) return true;
    // W' D W.
    std::vector<double> scaled = layer.weights;
    for (Index i = 0; i < layer.rows; ++i) {
      for (Index j = 0; j < layer.cols; ++j)
        scaled[static_cast<std::size_t>(i * layer.cols + j)] *= square[static_cast<std::size_t>(i)];
    }
    std::vector<double> product(static_cast<std::size_t>(layer.cols * layer.cols));
    gemm(layer.cols, layer.cols, layer.rows, 1.0, {layer.weights.data(), layer.cols, true},
         {scaled.data(), layer.cols}, 0.0, product.data(), layer.cols);
    for (Index i = 0; i < layer.cols; ++i) {
      for (Index j = 0; j <= i; ++j)
        at(from + i, from + j) += product[static_cast<std::size_t>(i * layer.cols + j)];
    }
    return true;
  }

  static double weight(const ChainLayer& layer, Index i, Index j) {
    return layer.weights[static_cast<std::size_t>(i * layer.cols + j)];
  }
  static double size_up(const ChainLayer& layer, Index i, Index j) {
    const auto at = static_cast<std::size_t>(i * layer.cols + j);
    const double r = layer.radius.empty() ? 0 : layer.radius[at];
    return add_up(std::fabs(layer.weights[at]), r);
  }

  // Powers of two; exact but for underflow, which the error counts.
  void scale() {
    std::vector<int> shift(static_cast<std::size_t>(n_));
    for (Index i = 0; i < n_; ++i) {
      int exponent = 0;
      const double d = at(i, i);
      if (d > 0 && std::isfinite(d)) std::frexp(d, &exponent);
      shift[static_cast<std::size_t>(i)] = -(exponent >= 0 ? exponent / 2 : (exponent - 1) / 2);
    }
    for (Index i = 0; i < n_; ++i) {
      for (Index j = 0; j <= i; ++j) {
        if (at(i, j) != 0)
          at(i, j) = std::ldexp(
              at(i, j), shift[static_cast<std::size_t>(i)] + shift[static_cast<std::size_t>(j)]);
      }
    }
    bound_errors(shift);
  }

  // Adds amount * 2^(shift_i + shift_j) to the row sums of i and j.
  void charge(const std::vector<int>& shift, Index i, Index j, double amount) {
    if (amount == 0) return;
    const double scaled = add_up(
        std::ldexp(amount, shift[static_cast<std::size_t>(i)] + shift[static_cast<std::size_t>(j)]),
        kMinSubnormal);
    auto& a = error_[static_cast<std::size_t>(i)];
    a = add_up(a, scaled);
    if (i == j) return;
    auto& b = error_[static_cast<std::size_t>(j)];
    b = add_up(b, scaled);
  }

  // An entry of the couplings goes through at most three roundings (the sum of the slopes, two
  // products), one of the diagonal through at most four (three products and the sum with W'DW,
  // whose own error is charged below); scaling may lose 2^-1074. Eight are charged.
  void bound_errors(const std::vector<int>& shift) {
    const double gamma = gamma_up(8);
    for (Index i = 0; i < n_; ++i) {
      double& e = error_[static_cast<std::size_t>(i)];
      e = add_up(e, add_up(mul_up(gamma, std::fabs(at(i, i))),
                           mul_up(static_cast<double>(2 * n_), kMinSubnormal)));
    }
    for (std::size_t k = 0; k < chain_.layers.size(); ++k) {
      const ChainLayer& layer = chain_.layers[k];
      const Index from = start_[k], to = start_[k + 1];
      const bool last = k + 1 == chain_.layers.size();
      for (Index i = 0; i < layer.rows; ++i) {
        const auto row = static_cast<std::size_t>(i);
        const double factor = last ? 1
                                   : mul_up(t_[k][row], magnitude(point(chain_.slopes[k][row].lo) +
                                                                  point(chain_.slopes[k][row].hi)));
        if (factor == 0) continue;
        for (Index j = 0; j < layer.cols; ++j) {
          const auto at_weight = static_cast<std::size_t>(i * layer.cols + j);
          const double radius = layer.radius.empty() ? 0 : layer.radius[at_weight];
          double off = last ? 0 : mul_up(gamma, size_up(layer, i, j));
          off = add_up(off, radius);
          charge(shift, to + i, from + j, mul_up(factor, off));
        }
      }
      if (!last && !squares_[k].empty()) charge_square(shift, k);
    }
  }

  // |W'DW - computed| <= (gamma (|W| + R)'|D|(|W| + R) + R'|D|(2|W| + R)) entrywise; row sums by
  // two products with vectors. D itself is rounded three times: eight in gamma.
  void charge_square(const std::vector<int>& shift, std::size_t k) {
    const ChainLayer& layer = chain_.layers[k];
    const Index from = start_[k];
    const double gamma = gamma_up(static_cast<std::size_t>(layer.rows + 8));
    std::vector<double> sizes(static_cast<std::size_t>(layer.rows)), radii(sizes.size());
    for (Index i = 0; i < layer.rows; ++i) {
      for (Index j = 0; j < layer.cols; ++j) {
        const double unit = std::ldexp(1.0, shift[static_cast<std::size_t>(from + j)]);
        const auto at_weight = static_cast<std::size_t>(i * layer.cols + j);
        const double r = layer.radius.empty() ? 0 : layer.radius[at_weight];
        auto& s = sizes[static_cast<std::size_t>(i)];
        s = add_up(s, mul_up(size_up(layer, i, j), unit));
        auto& q = radii[static_cast<std::size_t>(i)];
        q = add_up(q, mul_up(r, unit));
      }
    }
    for (Index j = 0; j < layer.cols; ++j) {
      double sum = 0;
      for (Index i = 0; i < layer.rows; ++i) {
        const auto row = static_cast<std::size_t>(i);
        const double d = mul_up(std::fabs(squares_[k][row]), 1 + 0x1p-40);
        const auto at_weight = static_cast<std::size_t>(i * layer.cols + j);
        const double r = layer.radius.empty() ? 0 : layer.radius[at_weight],
                     w = size_up(layer, i, j);
        const double part =
            add_up(mul_up(mul_up(gamma, w), sizes[row]),
                   add_up(mul_up(r, mul_up(2, sizes[row])), mul_up(mul_up(2, w), radii[row])));
        sum = add_up(sum, mul_up(d, part));
      }
      auto& e = error_[static_cast<std::size_t>(from + j)];
      e = add_up(e, std::ldexp(sum, shift[static_cast<std::size_t>(from + j)]));
      e = add_up(e, kMinSubnormal);
    }
  }

  const Chain& chain_;
  const Multipliers& t_;
  double rho_;
  Index n_;
  std::vector<Index> start_;
  std::vector<double> entries_, error_;
  std::vector<std::vector<double>> squares_;
};

}  // namespace

bool proves_chain(const Chain& chain, const Multipliers& multipliers, double rho) {
  return Form(chain, multipliers, rho).is_positive();
}

double chain_constant_up(const Chain& chain, double rho) {
  const double root = sqrt_up(rho);
  const double scaled = std::ldexp(root, chain.exponent);
  return scaled < 0x1p-900 ? add_up(scaled, kMinSubnormal) : scaled;
}

}  // namespace lipscope
