// SPDX-License-Identifier: Apache-2.0
// What a tree of cases proves [pieces-5]: no search, its multipliers and proofs of emptiness are
// what the tree says.
#pragma once

#include <memory>

#include "pieces/euclidean_bound.h"
#include "pieces/norm_decomposition.h"
#include "pieces/region.h"

namespace lipscope {

// An upper bound of a part of the Jacobian for given slopes and multipliers.
class CaseBound {
 public:
  virtual ~CaseBound() = default;
  // For part `row`, all rounding included. `state`: what a call for a larger set of slopes left
  // behind; replaced.
  virtual double upper_bound(const Slopes& slopes, Index row, const Multipliers& multipliers,
                             std::vector<float>& state) = 0;
  // Whether the state carries facts from larger sets of slopes to smaller ones: then a bound is
  // proved from the root on.
  [[nodiscard]] virtual bool inherits() const = 0;
  // Numbers per input, the same for all bounds of a part: any positive ones are valid. False for
  // others.
  virtual bool use_input_weights(Index, const std::vector<double>& weights) {
    return weights.empty();
  }
};

// `net`: that of ComponentNet. Borrowed.
[[nodiscard]] std::unique_ptr<CaseBound> make_case_bound(const LayeredNet& net,
                                                         const NormDecomposition& parts);

// The upper bound that the tree proves; +inf for one that is not a tree of this network.
[[nodiscard]] double confirmed_bound(const LayeredNet& net, const NormDecomposition& parts,
                                     Region& region, const CaseTree& tree);

}  // namespace lipscope
