// SPDX-License-Identifier: Apache-2.0
// The certificate document, lipscope.certificate/2: the one place that knows its fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lipscope/certificate.h"
#include "lipscope/proof.h"

namespace lipscope {

struct Certificate {
  Statement statement;
  std::optional<Bound> lower;
  Bound upper;
  Proof upper_proof;
  std::optional<QuotientProof> lower_proof;  // there when the lower bound is
};

// The query of a statement, as results show it, too.
[[nodiscard]] Json statement_to_json(const Statement& statement);

[[nodiscard]] Json certificate_to_json(const Certificate& certificate);
// Throws kBadFile, naming the field, for a document of another kind or version, or one with fields
// that are missing, wrong or not known. Does not look at the digest.
[[nodiscard]] Certificate read_certificate(const Json& document);
// The documents of a file that holds one certificate or several. Throws kBadFile.
[[nodiscard]] std::vector<Json> certificates_in(const std::string& text);
// SHA-256 of the canonical text without the field "sha256".
[[nodiscard]] std::string certificate_digest(Json document);

}  // namespace lipscope
