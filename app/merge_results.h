// SPDX-License-Identifier: Apache-2.0
// Joins result documents about different samples of the same question.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"

namespace lipscope::app {

struct NamedResult {
  std::string name;  // of the file, for messages
  Json document;
};

// What is the same in all results about parts of one question, and how to join the rest. Kinds of
// results that can be merged are in a table in merge_results.cpp. Throws kBadFile for a document of
// another form and for samples that are there twice, or, unless `partial`, not at all; kUsage for
// documents about different questions.
[[nodiscard]] Json merge_results(const std::vector<NamedResult>& results, bool partial);

}  // namespace lipscope::app
