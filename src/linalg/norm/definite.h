// SPDX-License-Identifier: Apache-2.0
// Positive definiteness proved by a floating-point Cholesky factorisation, and eigenvalue bounds of
// Gram matrices built on it [norms-5] to [norms-7].
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/rounding_basic.h"
#include "lipscope/tensor.h"

namespace lipscope {

// r such that lambda_min(M) >= -r, for the symmetric M whose lower triangle (i >= j) is in
// matrix[i * n + j]; +inf if the factorisation breaks down or M or its factor is not finite.
// (LAPACK alone reports success on NaN.) The lower triangle is overwritten. r is about 2 n u
// trace(M).
[[nodiscard]] double definite_deficit_up(Index n, double* matrix);

// An approximation of B'B for an exact, unnamed B.
class Gram {
 public:
  explicit Gram(Index n);
  [[nodiscard]] Index size() const { return n_; }
  // Row-major; the caller fills the upper triangle (i <= j), the rest is scratch.
  [[nodiscard]] double* data() { return entries_.get(); }
  // To be called once filled: every entry (i, j) went through at most `roundings` roundings of each
  // of its terms, |error| <= gamma (|B|'|B|)_ij + roundings * 2^-1074 [norms-6].
  void finish(Index roundings);
  // Upper bound of the sum of the eigenvalues of B'B, the squared Frobenius norm of B.
  [[nodiscard]] double trace_up() const { return trace_up_; }
  void multiply(const double* x, double* y) const;
  // Upper bound of the largest eigenvalue of B'B, or +inf: tries to prove it near `guess`, raising
  // it `attempts` times. `slack`: relative distance of the first trial from the guess.
  [[nodiscard]] double top_up(double guess, double slack, int attempts);
  // Whether no eigenvalue of B'B is above `top`, by one factorisation.
  [[nodiscard]] bool proves(double top);
  // A number above `top`, a proved bound, that every machine can prove [norms-7].
  [[nodiscard]] double portable(double top) const;
  // Smallest relative slack with which a trial can be expected to succeed.
  [[nodiscard]] double least_slack() const;

 private:
  [[nodiscard]] double try_shift(double shift);
  // What try_shift adds to a shift up to `top`, at most.
  [[nodiscard]] double doubt(double top) const;
  Index n_;
  std::unique_ptr<double[]> entries_;
  std::vector<double> diagonal_;
  double trace_up_ = kInf, error_up_ = kInf;
};

struct Ritz {
  double value = 0;  // an estimate from below of the largest eigenvalue; no bound
  std::vector<double> vector;
};
// Lanczos with full reorthogonalisation for a symmetric positive semidefinite operator of size n,
// until the estimated relative error of the largest eigenvalue is below `tolerance` or after
// `max_steps` products. `start`: first vector; empty: pseudo-random, the same every time.
[[nodiscard]] Ritz lanczos(Index n, const std::function<void(const double*, double*)>& multiply,
                           std::vector<double> start, double tolerance, int max_steps);

}  // namespace lipscope
