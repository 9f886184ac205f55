// SPDX-License-Identifier: Apache-2.0
// Proofs as JSON: an object with the kind of the proof and what it needs.
#pragma once

#include "base/json_reader.h"
#include "lipscope/proof.h"

namespace lipscope {

[[nodiscard]] Json proof_to_json(const Proof& proof);
// Throws kBadFile for another form.
[[nodiscard]] Proof read_proof(const JsonValue& value);

}  // namespace lipscope
