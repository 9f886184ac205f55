// SPDX-License-Identifier: Apache-2.0
// A search for points of a piecewise linear network with a steep Jacobian. Plain arithmetic: what
// it finds has to be proved elsewhere.
#pragma once

#include <functional>
#include <random>
#include <span>

#include "lipscope/norm.h"
#include "net/piecewise_linear_net.h"

namespace lipscope {

class PatternSearch {
 public:
  using Vector = PiecewiseLinearNet::Vector;
  struct Point {
    Vector x, d;  // |J(x) d| = value for |d| = 1 in the input norm
    double value = 0;
  };

  // `project` moves a point into the domain. Scalar outputs, or l2 to l2.
  PatternSearch(const PiecewiseLinearNet& net, const NormPair& norms,
                std::function<void(std::span<double>)> project, std::uint64_t seed);

  // Starts: at random or guided by a free choice of gates, then uphill with smoothed gates. `stop`
  // is asked at every step: of large networks one start may take all the time there is.
  void climb(const std::function<bool()>& stop);
  // One round of annealed moves of the best points so far; `share` of the time has gone by.
  void anneal(double share, const std::function<bool()>& stop);
  [[nodiscard]] const Point& best() const { return best_; }
  // The best point could not be proved: it is worth this much only.
  void devalue(double value) { best_.value = value; }
  [[nodiscard]] bool has_starts() const { return !chains_.empty(); }

 private:
  using Layers = PiecewiseLinearNet::Layers;
  struct Chain {
    Point now, best;
    double step = 0.3;
  };

  double uniform() { return std::uniform_real_distribution<double>()(rng_); }
  double normal() { return std::normal_distribution<double>()(rng_); }
  [[nodiscard]] bool wide() const;
  void measure(Point& point);
  [[nodiscard]] Vector random_point();
  void follow_pattern(Vector& x, const std::function<bool()>& stop);
  void ascend(Point& point, const std::function<bool()>& stop);
  void keep(const Point& point);
  [[nodiscard]] Vector shaken(const Chain& chain);
  [[nodiscard]] Vector crossed(const Vector& x);
  void breed();

  const PiecewiseLinearNet& net_;
  NormPair norms_;
  std::function<void(std::span<double>)> project_;
  std::mt19937_64 rng_;
  std::vector<Chain> chains_;
  Point best_;
  int starts_ = 0, bred_ = 0;
};

}  // namespace lipscope
