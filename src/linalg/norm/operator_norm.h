// SPDX-License-Identifier: Apache-2.0
// Proved brackets of operator norms ||A||_{p->q} = sup ||Ax||_q / ||x||_p. Theory: [norms-*] in
// docs/theory/norms.md.
//
//   const NormBracket b = matrix_norm({rows, cols, entries.data()}, parse_norms("2"));
//   // b.lower <= ||A||_2 <= b.upper, every rounding included
//
// A map with radii stands for every matrix within them, and both bounds hold for each of those.
// A map without rows or columns has norm 0. Entries or radii that are NaN or infinite, and negative
// radii, give [0, inf]; no bound is ever NaN. Thread safety: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "base/rounding_basic.h"
#include "linalg/conv/convolution.h"
#include "lipscope/norm.h"
#include "lipscope/proof_steps.h"

namespace lipscope {

// Row-major. `radius` bounds the error of each entry; null: none.
struct MatrixView {
  Index rows = 0, cols = 0;
  const double* entries = nullptr;
  const double* radius = nullptr;
};

// Entries at (row[i], col[i]) with value weight[i]; repeated places add up.
struct SparseView {
  Index rows = 0, cols = 0;
  std::span<const Index> row, col;
  std::span<const double> weight;
};

struct NormBracket {
  double lower = 0, upper = kInf;
  std::string_view how;  // theorem that gave `upper`
};

// The answer depends on these limits and on nothing else: no clocks.
struct NormEffort {
  bool want_lower = true;
  Index max_dense = 4096;  // largest side of a matrix that is factored
  double max_work = 2e11;  // multiplications one method may spend on a spectral norm
  // Unless null: steps to be written, `upper` then being what others can prove with them, or given
  // steps: `upper` is what they prove, and nothing is looked for.
  ProofSteps* steps = nullptr;
};

[[nodiscard]] NormBracket matrix_norm(const MatrixView& matrix, const NormPair& norms,
                                      const NormEffort& effort = {});

// Of one image (shape.batch is ignored), zero padding. `radius`: as `weights`, or null.
[[nodiscard]] NormBracket conv_norm(const ConvShape& shape, const double* weights,
                                    const double* radius, const NormPair& norms,
                                    const NormEffort& effort = {});

[[nodiscard]] NormBracket sparse_norm(const SparseView& map, const NormPair& norms,
                                      const NormEffort& effort = {});

// Norm of diag(d), or of a block-diagonal map whose blocks have the norms d: ||d||_r with
// 1/r = max(1/q - 1/p, 0) [norms-2]. NaN if an element is NaN.
[[nodiscard]] double diagonal_norm_up(std::span<const double> magnitudes, const NormPair& norms);
[[nodiscard]] double diagonal_norm_down(std::span<const double> magnitudes, const NormPair& norms);

// sup ||x||_to / ||x||_from over R^n [norms-3]; 0 for n = 0.
[[nodiscard]] double norm_equivalence_up(Index n, Norm from, Norm to);

}  // namespace lipscope
