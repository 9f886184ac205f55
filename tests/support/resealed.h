// SPDX-License-Identifier: Apache-2.0
// Certificates that were changed and signed again, as anybody can.
#pragma once

#include <string>
#include <utility>

#include "base/json.h"
#include "proof/document.h"

namespace lipscope::testing_support {

inline lipscope::Json resealed(lipscope::Json document) {
  document["sha256"] = certificate_digest(document);
  return document;
}
inline std::string resealed_text(lipscope::Json document) {
  return to_text(resealed(std::move(document)));
}

inline CheckResult check_resealed(const OnnxModel& model, lipscope::Json document) {
  return check_certificate(model, resealed_text(std::move(document)));
}

}  // namespace lipscope::testing_support
