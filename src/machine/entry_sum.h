// SPDX-License-Identifier: Apache-2.0
// Sums and means of entries as machines compute them: pools and reductions [robustness-6].
#pragma once

#include <cstdint>
#include <memory>

#include "machine/step.h"

namespace lipscope {

// y_i = (sum of the entries of row i) / count_i.
struct EntrySum {
  struct Entry {
    std::uint32_t input = 0, place = 0;
  };
  std::vector<std::vector<Entry>> rows;
  std::vector<double> counts;  // by row; empty: the sums themselves
  bool in_sums = true;  // in the format of sums; else in that of values, as single additions are
};

// In any order; divided after the sum, or entry by entry, or multiplied by the reciprocal.
[[nodiscard]] std::unique_ptr<const MachineStep> entry_sum_step(const Machine& machine,
                                                                EntrySum sum);

}  // namespace lipscope
