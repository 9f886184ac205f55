// SPDX-License-Identifier: Apache-2.0
// Proofs in a file, and their re-verification from the model file alone. The format and the kinds
// of proof: docs/reference/certificates.md.
#pragma once

#include <string>
#include <vector>

#include "lipscope/model.h"
#include "lipscope/proof.h"
#include "lipscope/query.h"
#include "lipscope/select.h"

namespace lipscope {

struct Answer;  // bound.h

// Everything a certificate states, ready to be written.
struct Statement {
  std::string model_sha256;
  GraphOptions options;  // dims and shapes the graph was made with
  Selection selection;
  std::string from;  // where the function starts, as Selected says
  NormPair norms{Norm(2), Norm(2)};
  Domain domain;
};

// A certificate document (JSON, lipscope.certificate/2) for the proved bounds of an answer; throws
// kUnsupported when there is no proved finite upper bound to certify.
[[nodiscard]] std::string write_certificate(const Statement& statement, const Answer& answer);

// What was read of a certificate and whether it is proved.
struct CheckResult {
  bool valid = false;
  std::string reason;  // why not
  // As JSON; empty when the certificate is about another model or does not fit its digest. The
  // statement is that of the certificate, {"model":...,"query":...}.
  std::string statement, claim;
  std::vector<std::string> kinds;  // of its proofs, in order
  Conventions conventions = {};    // that the function of the model rests on
};

// Reads the model's weights again and proves the claim of the certificate in outward-rounded
// arithmetic. What this uses: the importer and the rewriting passes, the operators' ranges and
// gains, and the arithmetic of the bounds (interval evaluation, norms, factorisations, linear
// bounds); this code is shared with the methods that look for bounds. What it does not use: any
// search, planner, ascent or clock; from src/proof none can be reached. What each kind of proof
// rests on:
//   composition  the gains it lists; each is proved to be as small as claimed, by the theorems and
//                numbers that stand beside it, and composed
//   multipliers  the multipliers it lists; a matrix inequality is proved for them
//   cases        the tree it lists; every leaf is bounded, or proved to be empty
//   recomputed   nothing but the network: the bound of that name is computed again, by the code
//                that computed it first. Its claim has room for the rounding of other machines.
//   quotient     the two points it lists; the function is evaluated there in intervals
// A document that is no certificate of this version is kBadFile.
[[nodiscard]] CheckResult check_certificate(const OnnxModel& model, const std::string& document);
// The same for a file of several, {"schema":"lipscope.certificates/1","certificates":[...]}, or of
// one.
[[nodiscard]] std::vector<CheckResult> check_certificates(const OnnxModel& model,
                                                          const std::string& document);

}  // namespace lipscope
