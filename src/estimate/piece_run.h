// SPDX-License-Identifier: Apache-2.0
// The methods that search over linear pieces: exact-global and exact-local.
#pragma once

#include <memory>

#include "estimate/method.h"
#include "net/local_net.h"
#include "search/search.h"

namespace lipscope {

struct PieceRun {
  std::string_view name;      // of the method
  double share = 0.5;         // of the time left; less where units are many
  double most_seconds = 1e9;  // and never more
  Index most_weights = 0;     // of the network as dense layers
  bool reduces = false;       // to the units unstable on the domain, where it has more
  // The domain; nothing, and the reason set, where it has no region.
  std::unique_ptr<SearchRegion> (*make_region)(const LayeredNet& net, const Domain& domain,
                                               std::string& reason);
};

// Why the query's norms have no such search; empty when they do.
[[nodiscard]] std::string why_no_pieces(const Query& query);

// The chain of the whole network where it has no more weights.
[[nodiscard]] Expected<LocalNet> small_chain(Problem& problem, Index most);

// Seconds that the bounds of the roots take, about.
[[nodiscard]] double root_seconds(const LayeredNet& net, const NormDecomposition& parts,
                                  bool bounded);

// What a certificate may claim: larger by more than sums in another order can change it.
[[nodiscard]] double claim_of_cases(double upper);

// Reports bounds of both sides as they get better.
void search_pieces(const MethodRun& run, const PieceRun& how);

}  // namespace lipscope
