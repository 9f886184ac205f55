// SPDX-License-Identifier: Apache-2.0
// ||A||_2 <= ||(A'A)^(2^k)||_F^(1/2^(k+1)) by repeated squaring, rounded outward [norms-15]: an
// upper bound that needs products only, for matrices too large to factor. Internal to linalg.
#pragma once

#include "linalg/norm/norm_map.h"

namespace lipscope {

// Row-major entries of moderate size (see ScaledWeights). Squares until the bound settles, at most
// `max_squarings` times and while all products together stay below max_work multiplications; gives
// up (+inf) if the Gram matrix alone is above that. Given steps say how often. No vector.
[[nodiscard]] SpectralUpper gram_iteration(Index rows, Index cols, const double* entries,
                                           const NormEffort& effort, int max_squarings = 12);

}  // namespace lipscope
