// SPDX-License-Identifier: Apache-2.0
#pragma once

// Directed sums, dot products and vector norms. See rounding.h for the conventions.
//
// The loops work on packs with several accumulators; every bound used holds for any order of
// summation [rounding-9]. Overflow and underflow inside a loop are repaired by a second pass over
// scaled data, so weights of 1e-300 or 1e300 lose nothing. Kernels allocate nothing. An empty
// vector has sum, dot product and norm 0.

#include <cstddef>
#include <span>

#include "base/rounding_basic.h"

namespace lipscope {

// n u / (1 - n u) rounded up, u = 2^-53: relative error of n roundings [rounding-9]; +inf if n is
// too large for the bound to hold.
double gamma_up(std::size_t n);

// Sum of the elements. Compensated: within 2 ulp of the exact sum plus about n^2 2^-105 times the
// sum of the absolute values. Opposite infinities give NaN.
double sum_up(std::span<const double> x);
double sum_down(std::span<const double> x);

// Sum of the absolute values (the 1-norm), within 2 ulp.
double abs_sum_up(std::span<const double> x);
double abs_sum_down(std::span<const double> x);

// Encloses the dot product; a and b have the same length n. The radius is about
// 2 n u sum |a_i b_i|. NaN if a product is NaN; [-inf, inf] if an element is infinite.
Interval dot_enclosure(std::span<const double> a, std::span<const double> b);
double dot_up(std::span<const double> a, std::span<const double> b);
double dot_down(std::span<const double> a, std::span<const double> b);

// Largest |x_i|, exact; NaN if any element is NaN.
double max_abs(std::span<const double> x);

// Euclidean norm, relative width about n u; no overflow or underflow of the squares.
double norm2_up(std::span<const double> x);
double norm2_down(std::span<const double> x);

// p-norm for 1 <= p <= inf; NaN for any other p. Relative width about (n / p + 8) 2^-52;
// p = 1, 2, inf use the functions above.
double pnorm_up(std::span<const double> x, double p);
double pnorm_down(std::span<const double> x, double p);

}  // namespace lipscope
