// SPDX-License-Identifier: Apache-2.0
// Affine functions below and above the largest or smallest of some entries [pointwise-9].
#pragma once

#include <span>

#include "ops/affine_rows.h"

namespace lipscope {

// Writes row `row` of both sides; x[i] is the interval of the entry in column columns[i].
void relax_largest(std::span<const Interval> x, std::span<const Index> columns, Index row,
                   AffineRowsBuilder& lower, AffineRowsBuilder& upper);
void relax_smallest(std::span<const Interval> x, std::span<const Index> columns, Index row,
                    AffineRowsBuilder& lower, AffineRowsBuilder& upper);

}  // namespace lipscope
