// SPDX-License-Identifier: Apache-2.0
// Changes to a document that leave it JSON: what random bytes almost never find.
#pragma once

#include <random>

#include "base/json.h"
#include "driver.h"

namespace lipscope::fuzz {

// A few values changed in type or size, deleted, doubled, renamed, nested or exchanged. A document
// with a field "sha256" is signed again most of the time, so that what is behind the digest is
// reached.
void mutate_document(Json& document, std::mt19937_64& random);

// For LLVMFuzzerCustomMutator; what is no JSON keeps its bytes.
[[nodiscard]] std::size_t mutate_text(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                      unsigned seed);

}  // namespace lipscope::fuzz
