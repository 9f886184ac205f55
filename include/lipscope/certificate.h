// SPDX-License-Identifier: Apache-2.0
// Proofs in a file, and their re-verification from the model file alone.
#pragma once

#include <optional>
#include <string>

#include "lipscope/bound.h"
#include "lipscope/model.h"
#include "lipscope/select.h"

namespace lipscope {

// Everything a certificate states, ready to be written.
struct Statement {
  std::string model_sha256;
  GraphOptions options;  // dims and shapes the graph was made with
  Selection selection;
  std::string from;  // where the function starts, as Selected says
  NormPair norms{Norm(2), Norm(2)};
  Domain domain;
};

// A certificate document (JSON) for the proved bounds of an answer; throws kUnsupported when there
// is no proved finite upper bound to certify.
[[nodiscard]] std::string write_certificate(const Statement& statement, const Answer& answer);

struct CheckResult {
  bool valid = false;
  std::string reason;  // why not
  std::string claim;   // the claim as JSON; empty when the document could not be read
};

// Recomputes weights, ranges and gains from the model and follows the proof in outward-rounded
// arithmetic. Shares nothing with the methods but operators and rounding. A document that is no
// certificate at all is kBadFile.
[[nodiscard]] CheckResult check_certificate(const OnnxModel& model, const std::string& document);

}  // namespace lipscope
