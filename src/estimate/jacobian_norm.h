// SPDX-License-Identifier: Apache-2.0
// Operator norms of Jacobians and difference quotients, many at once, from below and up to
// rounding.
//
// Vectors hold samples one after another, each with the entries of all floating inputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lipscope/evaluate.h"
#include "lipscope/norm.h"

namespace lipscope {

[[nodiscard]] double vector_norm(std::span<const double> x, const Norm& norm);

// The vector g with <g, y> = |y|_q and |g|_{q*} = 1 (zero for y = 0).
void dual_vector(std::span<const double> y, const Norm& q, std::span<double> g);

struct JacobianNorms {
  std::vector<double> value;      // one per sample
  std::vector<double> direction;  // of unit length in the input norm, with |J direction| = value
};

// Boyd's iteration [norms: lower] on J at `count` points, starting from `direction`. Each step
// costs one jvp and one vjp. The values of further steps never fall. Entries marked as frozen stay
// zero in all directions: the norm of J on the others.
[[nodiscard]] JacobianNorms jacobian_norms(const Graph& graph, std::span<const double> points,
                                           Index count, const NormPair& norms,
                                           std::vector<double> direction, int steps,
                                           std::span<const std::uint8_t> frozen = {});

// Pairs of points a, b, the vector u with <u, f(a) - f(b)> = |f(a) - f(b)|, |u|* = 1, and the
// gradients of <u, f> at both. With |a - b| held, the quotient has gradient at_a / |a - b| for a
// and -at_b / |a - b| for b: unlike the norm of J, it sees kinks between a and b.
struct PairQuotients {
  // (|f(a) - f(b)| - noise) / |a - b|, minus the possible rounding error; 0 where it is no number.
  std::vector<double> value;
  std::vector<double> at_a, at_b;  // J(a)'u, J(b)'u
};
[[nodiscard]] PairQuotients pair_quotients(const Graph& graph, const NormPair& norms,
                                           std::span<const double> a, std::span<const double> b,
                                           double noise = 0);
// The values alone.
[[nodiscard]] std::vector<double> quotient_values(const Graph& graph, const NormPair& norms,
                                                  std::span<const double> a,
                                                  std::span<const double> b, double noise = 0);

}  // namespace lipscope
