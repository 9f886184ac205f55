// SPDX-License-Identifier: Apache-2.0
#include "lipscope/certificate.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/json_reader.h"
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
  std::string text = to_text(certificate_to_json(certificate)) + "\n";
  if (constexpr JsonLimits kLimits; text.size() > kLimits.bytes) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the certificate would have {} bytes, {} can be checked; a larger "
                            "--target-ratio or other --methods need less",
                            text.size(), kLimits.bytes));
  }
  return text;
}

}  // namespace lipscope
