// SPDX-License-Identifier: Apache-2.0
// Runs whose seconds are counted by work: the same on every machine, however busy.
#pragma once

#include "lipscope/bound.h"

namespace lipscope {

inline RunContext counted() { return {.clock = RunClock::by_work(1e6)}; }

}  // namespace lipscope
