// SPDX-License-Identifier: Apache-2.0
// One upper bound of the Jacobian for given slopes, whatever the norm, with multipliers that are
// looked for: what a search needs. CaseBound proves it again from these.
#pragma once

#include <memory>

#include "pieces/euclidean_bound.h"
#include "pieces/norm_decomposition.h"
#include "pieces/row_bound.h"
#include "search/multiplier_search.h"

namespace lipscope {

class JacobianBounder {
 public:
  virtual ~JacobianBounder() = default;
  // Upper bound for part `row`, all rounding included. May stop improving once it is at most
  // `enough`. `state`: what the last call for a larger set of slopes left behind; replaced.
  virtual double upper_bound(const Slopes& slopes, Index row, double good_enough,
                             std::vector<float>& state) = 0;
  // Of the last call: how much of the bound is due to the unit's freedom, and the multipliers used.
  [[nodiscard]] virtual double weight(UnitId unit) const = 0;
  [[nodiscard]] virtual const Multipliers& multipliers() const = 0;
  // Numbers per input, the same for all bounds of a part: any positive ones are valid. False for
  // others.
  [[nodiscard]] virtual std::vector<double> input_weights(Index) const { return {}; }
  virtual bool use_input_weights(Index, const std::vector<double>& weights) {
    return weights.empty();
  }
};

// To five decimal digits: multipliers go into certificates, and any are valid.
void shorten(Multipliers& multipliers);

// The Jacobian for slopes that are single numbers (else for their middles), by rows, in plain
// arithmetic.
[[nodiscard]] std::vector<double> plain_jacobian(const LayeredNet& net, const Slopes& slopes);
// The norm for slopes that are single numbers (else for their middles), in plain arithmetic. `net`:
// that of ComponentNet.
[[nodiscard]] double plain_norm(const LayeredNet& net, const NormDecomposition& parts,
                                const Slopes& slopes);

// `net`: that of ComponentNet. Borrowed.
[[nodiscard]] std::unique_ptr<JacobianBounder> make_bounder(const LayeredNet& net,
                                                            const NormDecomposition& parts);

}  // namespace lipscope
