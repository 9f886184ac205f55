// SPDX-License-Identifier: Apache-2.0
// The largest value of linear functions on a bounded domain.
#pragma once

#include <optional>
#include <vector>

#include "lipscope/query.h"

namespace lipscope {

class DomainSupport {
 public:
  // A box, a ball or both. `inputs`: entries of all of them.
  DomainSupport(const Domain& domain, std::size_t inputs);

  [[nodiscard]] std::size_t inputs() const { return center_.size(); }
  [[nodiscard]] bool bounded() const;
  // Upper bound of <a, x> on the domain, all rounding included.
  [[nodiscard]] double max_up(const double* a) const;
  // A point of the domain where <a, x> is least, or nearly so; in plain arithmetic.
  [[nodiscard]] std::vector<double> lowest_point(const std::vector<double>& a) const;
  // Bounds of |x_j|.
  [[nodiscard]] const std::vector<double>& size() const { return size_; }
  [[nodiscard]] std::vector<double> middle() const { return center_; }
  // The box around the domain.
  [[nodiscard]] const std::vector<double>& low() const { return low_; }
  [[nodiscard]] const std::vector<double>& high() const { return high_; }
  // A point of the domain and a distance in l2 that no other point of it exceeds; nothing when the
  // centre of the ball is outside the box.
  struct Around {
    std::vector<double> center;
    double radius = 0;
  };
  [[nodiscard]] const std::optional<Around>& around() const { return around_; }
  // Into the domain, up to rounding.
  void project(std::vector<double>& x) const;

 private:
  [[nodiscard]] std::optional<Around> find_around(const Domain& domain) const;

  std::vector<double> low_, high_, center_, half_, size_;  // the box around the domain
  std::vector<double> ball_center_;                        // empty: no ball but an l-infinity one
  double radius_ = 0, dual_ = 1, p_ = 2;
  std::optional<Around> around_;
};

}  // namespace lipscope
