// SPDX-License-Identifier: Apache-2.0
// What makes a bound more than a number: one of five kinds of proof. What each claims and how it is
// proved again: docs/reference/certificates.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lipscope/norm.h"
#include "lipscope/proof_steps.h"
#include "lipscope/tensor.h"

namespace lipscope {

// Two points of the domain whose difference quotient is the lower bound.
struct Witness {
  std::vector<double> x, y;
};

// The constants a composition is made of: gain of a node's output 0 with respect to one input.
struct GainClaim {
  std::string node;
  Index input = 0;
  NormPair norms{Norm(2), Norm(2)};
  double value = 0;
  // The theorems it rests on beyond what the operator says of itself; see proof_steps.h.
  std::vector<ProofStep> steps = {};
};

// Multipliers that prove the semidefinite bound [global-1] of the map from one value to another.
// Unless that is the whole network, gains beside it lead through the rest.
struct ChainProof {
  double rho = 0;
  std::vector<std::vector<double>> multipliers;  // by activation, by entry
  std::string from = {}, to = {};                // names; empty: the input, the output
  [[nodiscard]] bool whole() const { return from.empty() && to.empty(); }
};

// A unit of a network read as a chain of layers: its layer and its place there.
struct UnitId {
  std::size_t layer = 0, place = 0;
  friend bool operator==(const UnitId&, const UnitId&) = default;
};

// A proof by cases [pieces-5]: each split is by the value before a unit, each leaf has a bound that
// its multipliers prove, or no inner point.
struct CaseTree {
  // Non-negative weights, not all zero, with which the signed values before the units, less their
  // kinks, add up to nothing: then they cannot all be positive. `constant`: so does a positive
  // constant. A negative weight is that of the upper kink of a unit between two.
  struct InfeasibilityProof {
    std::vector<UnitId> units;
    std::vector<double> weights;
    bool constant = false;
  };
  struct Node {
    std::optional<UnitId> split;
    double at = 0;                                 // where the value before the unit is split
    std::array<std::size_t, 2> children = {0, 0};  // below, above
    InfeasibilityProof empty;
    std::vector<double> multipliers;  // of units without a sign, in their order
  };
  std::vector<Node> nodes;  // the first ones are roots: one per part of the Jacobian
  // By part: numbers per input for bounds of l1 norms by weighted l2 ones; empty where there are
  // none.
  std::vector<std::vector<double>> input_weights;
  // By round: multipliers of all units, by layer, that narrow their ranges on a bounded domain
  // before anything else [local-11].
  std::vector<std::vector<std::vector<double>>> narrowing = {};
  // One end of the range of a unit by lines beside the units of all layers before it, 0 to 255:
  // from one of two valid lines to the other [local-17]. In the order of layers, before any
  // narrowing.
  struct SharpEnd {
    UnitId unit;
    bool above = false;
    std::vector<std::uint8_t> mixes;
  };
  std::vector<SharpEnd> sharp_ends = {};
};

// An upper bound from the gains of the nodes, composed along the graph.
struct CompositionProof {
  std::vector<GainClaim> gains;
};

// An upper bound from multipliers of the semidefinite bound, for the network or for parts of it;
// gains lead through the rest.
struct MultiplierProof {
  std::vector<ChainProof> chains;
  std::vector<GainClaim> gains = {};
};

// Units of a network, counted through it.
using UnitNumbers = std::vector<std::size_t>;

// An upper bound by cases. `unstable_units`: those whose slope is not known on the domain, when the
// proof is about the network without the others [pieces-9].
struct CaseProof {
  std::shared_ptr<const CaseTree> tree;
  std::optional<UnitNumbers> unstable_units = {};
};

// An upper bound without evidence: a formula of the network alone, to be computed again, with the
// same effort on every machine.
struct RecomputedProof {
  std::string bound;  // its name
  std::optional<UnitNumbers> unstable_units = {};
};

// A lower bound: the difference quotient of two points.
struct QuotientProof {
  Witness witness;
};

using Proof =
    std::variant<CompositionProof, MultiplierProof, CaseProof, RecomputedProof, QuotientProof>;

}  // namespace lipscope
