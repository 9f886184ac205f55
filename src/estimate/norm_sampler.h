// SPDX-License-Identifier: Apache-2.0
// Norms of Jacobians at random points of a domain.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimate/domain_sampler.h"
#include "estimate/jacobian_norm.h"

namespace lipscope {

// The point of a draw with the largest norm of the Jacobian, from below and up to rounding, and the
// direction in which the output moves that much.
struct SampledMaximum {
  double value = 0;
  std::vector<double> point, direction;  // empty when there was no point or no time
  bool complete = false;                 // not cut short
};

// Borrows the query.
class NormSampler {
 public:
  NormSampler(const Query& query, std::uint64_t seed);

  // Why there is nothing to sample; empty when there is.
  [[nodiscard]] static std::string unsupported(const Query& query);

  // Finds a direction from which the iterations of all draws start; part of no sample.
  void warm_up(const std::function<bool()>& should_stop);

  // Draws number first, first + 1, ..., each of points() points, on all threads. The same number
  // gives the same points, and the same maximum unless should_stop cuts it short.
  [[nodiscard]] std::vector<SampledMaximum> draw(std::uint64_t first, Index count,
                                                 const std::function<bool()>& should_stop) const;

  [[nodiscard]] Index points() const { return points_; }
  [[nodiscard]] const DomainSampler& domain() const { return domain_; }

 private:
  [[nodiscard]] SampledMaximum draw_one(std::uint64_t number,
                                        const std::function<bool()>& should_stop) const;
  void refine(std::vector<SampledMaximum>& points, int steps) const;

  const Query& query_;
  DomainSampler domain_;
  std::uint64_t seed_;
  std::size_t size_;
  Index touched_, points_;
  bool one_output_;
  std::vector<double> hint_;
};

}  // namespace lipscope
