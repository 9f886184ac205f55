// SPDX-License-Identifier: Apache-2.0
// What each kind of proof proves: an upper bound, or for a quotient a lower bound, of the constant
// the problem is about. All throw Rejected where nothing follows.
#pragma once

#include "lipscope/proof.h"
#include "proof/statement.h"

namespace lipscope {

[[nodiscard]] double proved_by(const CompositionProof& proof, Problem& problem);
[[nodiscard]] double proved_by(const MultiplierProof& proof, Problem& problem);
[[nodiscard]] double proved_by(const CaseProof& proof, Problem& problem);
[[nodiscard]] double proved_by(const RecomputedProof& proof, Problem& problem);
[[nodiscard]] double proved_by(const QuotientProof& proof, Problem& problem);

// Its name in certificates.
[[nodiscard]] std::string_view kind_of(const Proof& proof);

}  // namespace lipscope
