// SPDX-License-Identifier: Apache-2.0
// Affine functions below and above softmax and log-softmax of a row in a box. Theory: [softmax-17]
// to [softmax-19] in docs/theory/softmax.md.
#pragma once

#include <optional>
#include <vector>

#include "ops/rows/row_forms.h"
#include "ops/rows/rows.h"

namespace lipscope {

// Constants where the box is not bounded.
[[nodiscard]] RowRelaxation relax_softmax(const Group& x);
// Some offsets are infinite where the box is not bounded.
[[nodiscard]] RowRelaxation relax_log_softmax(const Group& x);

// The forms of each row of a tensor in a box, put together; nothing if an offset is infinite.
[[nodiscard]] std::optional<Relaxation> relax_rows(const Box& box, const RowSplit& split,
                                                   RowRelaxation (*relax)(const Group&));

}  // namespace lipscope
