// SPDX-License-Identifier: Apache-2.0
// What the bounds of operator_norm.h need to know of a set of matrices {A : |A - C| <= R}.
// Internal to linalg.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "linalg/norm/operator_norm.h"

namespace lipscope {

class Gram;

constexpr Index kMaxProducts = Index{1} << 26;  // entries of a table or matrix

enum class Lines { kRows, kColumns };
enum class Toward { kUp, kDown };

// Upper bound of the spectral norm and an approximate right singular vector (or empty).
struct SpectralUpper {
  double upper = kInf;
  std::string_view how;
  std::vector<double> vector;
};

class NormMap {
 public:
  NormMap(Index rows, Index cols) : rows_(rows), cols_(cols) {}
  virtual ~NormMap() = default;
  NormMap(const NormMap&) = delete;
  NormMap& operator=(const NormMap&) = delete;
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  // p-norm of every row (column): up of |C| + R, down of max(|C| - R, 0).
  [[nodiscard]] virtual std::vector<double> norms(Lines lines, Toward toward, double p) const = 0;
  // The largest of them; NaN wins, 0 if there are none.
  [[nodiscard]] virtual double largest_norm(Lines lines, Toward toward, double p) const;
  // y = C x or C' x, rounded somehow: a direction, no bound.
  virtual void apply(bool adjoint, const double* x, double* y) const = 0;
  // y >= (|C| + R) x or its adjoint, for x >= 0.
  virtual void magnitude_up(bool adjoint, const double* x, double* y) const = 0;
  // 0 <= y_i <= |(A x)_i| for every A of the set. |x_i| <= 1.
  virtual void image_down(const double* x, double* y) const = 0;
  // Beyond the bounds from norms() and magnitude_up(). May give up: +inf.
  [[nodiscard]] virtual SpectralUpper spectral(const NormEffort& effort) const = 0;

 private:
  Index rows_, cols_;
};

// Weights times 2^-exponent, of size about 1 unless already of moderate size: squares and products
// neither overflow nor lose digits. Radii are rounded up and include what scaling lost.
class ScaledWeights {
 public:
  // usable() is false if a weight is not finite or a radius not finite and non-negative.
  ScaledWeights(std::span<const double> weights, const double* radius);
  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] bool zero() const { return largest_ == 0; }
  [[nodiscard]] const double* weights() const { return weights_; }
  [[nodiscard]] const double* radius() const { return radius_; }  // may be null
  [[nodiscard]] int exponent() const { return exponent_; }

 private:
  std::vector<double> scaled_, scaled_radius_;
  const double *weights_, *radius_;
  double largest_ = 0;
  int exponent_ = 0;
  bool usable_ = false;
};

// 2^exponent times the bracket, rounded outward.
[[nodiscard]] NormBracket scale_back(const NormBracket& bracket, int exponent);

// The bracket of any map, by the best of all theorems.
[[nodiscard]] NormBracket bracket_of(const NormMap& map, const NormPair& norms,
                                     const NormEffort& effort);
// Upper bounds for 2->2 that need no factorisation, and the quotient at a vector (down).
[[nodiscard]] SpectralUpper cheap_spectral(const NormMap& map, const NormEffort& effort = {});
[[nodiscard]] double quotient_down(const NormMap& map, const NormPair& norms,
                                   std::span<const double> x);
// For any p and q: the best quotient found from several starts, one of them an approximate singular
// vector (may be empty).
[[nodiscard]] double general_lower(const NormMap& map, double p, double q,
                                   const std::vector<double>& singular);
[[nodiscard]] inline std::vector<double> vector_of(Index n, double value = 0) {
  return std::vector<double>(static_cast<std::size_t>(n), value);
}
// Largest element; NaN wins. 0 if there is none.
[[nodiscard]] double largest(std::span<const double> values);

// 1/p and the dual exponent p / (p - 1), enclosed.
[[nodiscard]] Interval reciprocal(double p);
[[nodiscard]] Interval dual_exponent(double p);

// |c| + r (up) or max(|c| - r, 0) (down) of each entry.
void line_magnitudes(Toward toward, Index n, const double* c, const double* r, double* out);
[[nodiscard]] double line_norm(Toward toward, std::span<const double> line, double p);

// Turns computed sums of `terms` non-negative products (with one rounding of a factor each) into
// upper bounds of them.
void inflate_sums(double* sums, Index n, Index terms);
// Turns computed sums y of `terms` products into lower bounds of their size, given upper bounds of
// the sums of their sizes and of what else may be wrong with them (`spread`).
void deflate_sums(double* y, Index n, Index terms, const double* sizes, const double* spread);

// Upper bound of ||B||_2 + radius and, unless it follows given steps, an approximate eigenvector of
// B'B. `radius`: of the set of matrices that B is the centre of. Steps that are written can be
// followed for a set inside this one, too, whose centre is elsewhere [norms-7].
[[nodiscard]] SpectralUpper top_of_gram(Gram& gram, ProofSteps* steps, double radius = 0);

[[nodiscard]] std::unique_ptr<NormMap> dense_map(Index rows, Index cols, const double* entries,
                                                 const double* radius);
// One group. Weights [out_channels, in_channels, kernel...].
[[nodiscard]] std::unique_ptr<NormMap> conv_map(const ConvShape& shape, const double* weights,
                                                const double* radius);
// Spectral bounds of one group with exact weights. Patches times reshaped kernel [norms-11].
[[nodiscard]] SpectralUpper kernel_spectral(const ConvShape& shape, const double* weights,
                                            const NormEffort& effort);
// Larger-grid Fourier bound [norms-10].
[[nodiscard]] SpectralUpper fourier_spectral(const ConvShape& shape, const double* weights,
                                             const NormEffort& effort);
// Gram matrix by blocks [norms-9]; gives up (+inf) where that is too large.
[[nodiscard]] SpectralUpper conv_gram_spectral(const ConvShape& shape, const double* weights,
                                               const NormEffort& effort);

}  // namespace lipscope
