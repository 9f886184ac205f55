// SPDX-License-Identifier: Apache-2.0
#include "lipscope/certificate.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "lipscope/bound.h"
#include "lipscope/error.h"
#include "proof/document.h"

namespace lipscope {

std::string write_certificate(const Statement& statement, const Answer& answer) {
  const auto upper = answer.bracket.upper(Guarantee::kProved);
  if (!upper || std::isinf(upper->value))
    throw Error(ErrorCode::kUnsupported, "there is no finite proved upper bound to certify");
  LIPSCOPE_CHECK(answer.proof.has_value());
  Certificate certificate{.statement = statement, .upper = *upper, .upper_proof = *answer.proof};
  if (answer.witness) {
    certificate.lower = answer.witnessed;
    certificate.lower_proof = QuotientProof{*answer.witness};
  }
  return to_text(certificate_to_json(certificate)) + "\n";
}

}  // namespace lipscope
