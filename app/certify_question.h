// SPDX-License-Identifier: Apache-2.0
// certify: what the flags ask, before anything is computed.
#pragma once

#include <vector>

#include "certify_run.h"
#include "lipscope/graph.h"

namespace lipscope::app {

// The model as a function to certify. The margins of the options point into `whole`.
struct CertifyQuestion {
  Graph whole;   // of the file
  Graph logits;  // what decides
  CertifyOptions options;
};

// Throws kUsage for flags that do not go together.
void check_flags(const CertifyFlags& flags, Certified& found);
// Reads model and data; what is known then is in `found`.
[[nodiscard]] std::unique_ptr<CertifyQuestion> read_question(const CertifyFlags& flags,
                                                             Certified& found);

// The radii to report about: those that the user gave, or fixed ones for the norm; and that of the
// requirement. Ascending.
[[nodiscard]] std::vector<double> radii_to_report(const CertifyFlags& flags,
                                                  const Certified& found);

// Notes about the data and the model.
void add_hints(Certified& found, const Graph& whole);

}  // namespace lipscope::app
