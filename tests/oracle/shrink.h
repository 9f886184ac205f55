// SPDX-License-Identifier: Apache-2.0
// A smaller graph that fails in the same way, for reports.
#pragma once

#include <functional>

#include "tests/oracle/generator.h"

namespace oracle {

// `fails` is asked many times. Nodes are left out or replaced by the constant they stand for.
RandomGraph shrunk(RandomGraph graph, const std::function<bool(const RandomGraph&)>& fails);

}  // namespace oracle
