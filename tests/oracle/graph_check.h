// SPDX-License-Identifier: Apache-2.0
// One random graph: loaded, evaluated and bounded by the library, and held against the oracle.
#pragma once

#include <map>

#include "tests/oracle/generator.h"

namespace oracle {

struct Tally {
  Index graphs = 0, refused = 0, queries = 0, finite = 0, quotients = 0, undecided = 0,
        undefined = 0;
  Index evaluations = 0, witnesses = 0, certificates = 0;
  double tightest = 0;                   // the largest quotient by its bound
  std::map<std::string, Index> reasons;  // why graphs were refused
  std::map<std::string, Index> operators;
  std::vector<std::string> failures;
  void add(const Tally& other);
};

// `seed` chooses the questions.
Tally check_graph(const RandomGraph& graph, std::uint64_t seed);
// What kind of failure it is, to tell whether a smaller graph has the same.
std::string kind_of(const std::string& failure);

}  // namespace oracle
