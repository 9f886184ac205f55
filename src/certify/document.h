// SPDX-License-Identifier: Apache-2.0
// The certificate document: the one place that knows its fields.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "lipscope/certificate.h"

namespace lipscope {

struct CertificateParts {
  Statement statement;
  std::optional<double> lower, upper;
  std::vector<GainClaim> gains;
  std::vector<ChainProof> chains;
  std::string computed;
  std::optional<CaseTree> cases;
  std::optional<std::vector<std::size_t>> open_units;  // of either
  std::optional<Witness> witness;
};

[[nodiscard]] Json statement_to_json(const Statement& statement);
// Throws kBadFile naming the field that is missing or wrong.
// Throws kBadFile for a document of another kind.
void require_schema(const Json& document);
[[nodiscard]] CertificateParts read_certificate(const Json& document);
// SHA-256 of the canonical text without the field "sha256".
[[nodiscard]] std::string certificate_digest(Json document);

}  // namespace lipscope
