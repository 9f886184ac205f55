// SPDX-License-Identifier: Apache-2.0
#pragma once

// Directed arithmetic: the only place where a proved number may be computed.
//
// `f_up(x)` is never below the exact real value of f at the doubles given, `f_down(x)` never above.
// Everything is round-to-nearest arithmetic plus an exact error term or an a-priori bound; the
// processor's rounding mode is never touched. Proofs: docs/theory/rounding.md.
//
//   const double gain = mul_up(norm_up, slope_up);            // one operation, tightest double
//   const Interval z = dot_enclosure(row, input);             // long loops: a-priori bound
//   std::cout << format_up(gain, 6);                          // printed outward, too
//
// Conventions, for every function of this header and the headers it includes:
// * NaN in, NaN out. An undefined operation (0 * inf, inf - inf, 0 / 0, log(-1), sin(inf)) is NaN.
// * Overflow: up gives +inf (or -DBL_MAX below), down gives DBL_MAX (or -inf below). A library
//   function that overflows gives, on the inner side, DBL_MAX less at most its step.
// * An infinite operand stands for the limit, and both directions return that limit.
// * x / 0 with x != 0 carries no information: up is +inf, down is -inf.
// * The sign of a zero result is unspecified.

#include "base/rounding_basic.h"
#include "base/rounding_functions.h"
#include "base/rounding_sums.h"
