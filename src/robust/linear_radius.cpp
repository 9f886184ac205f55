// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "net/small.h"
#include "robust/local_radius.h"
#include "robust/margin_bounds.h"
#include "robust/part_search.h"
#include "robust/radius_search.h"

namespace lipscope {
namespace {

constexpr int kWholeSteps = 25, kPartSteps = 5, kLeafSteps = 100;

using Part = MarginBounds::Part;

class BallProof {
 public:
  BallProof(Problem& problem, const LocalQuery& question, double radius,
            const std::function<bool()>& stop)
      : enough_(question.needed(radius)) {
    const Ball ball{Tensor::vector({question.point.begin(), question.point.end()}), radius,
                    question.norm};
    const Expected<LocalNet> local = problem.chain_on({.ball = ball}, stop);
    if (!local) return;
    net_ = local->net;
    bounds_.emplace(*net_, ball, question.winner, stop);
    for (Index j = 0; j < net_->outputs(); ++j) {
      if (j != question.winner && bounds_->usable()) wholes_.push_back(bounds_->whole(j));
    }
  }

  // Whether all margins are positive on the whole ball.
  bool whole() {
    if (!bounds_ || !bounds_->usable()) return false;
    bounds_->raise(wholes_, enough_, kWholeSteps);
    std::erase_if(wholes_, [&](const Part& part) { return closed(part); });
    return wholes_.empty();
  }

  // And if not, on all parts of it: looks at so many.
  bool parts(Index most, const std::function<bool()>& stop) {
    if (!bounds_ || !bounds_->usable()) return false;
    return prove_parts(std::move(wholes_), *this, most, stop);
  }

  [[nodiscard]] bool closed(const Part& part) const {
    return part.bound > enough_[to_size(part.target)];
  }
  bool hopeless(const Part& part) {
    rival_ = part.target;
    return false;
  }
  bool halve(Part part, std::vector<Part>& to) const {
    if (part.split >= bounds_->unstable_units()) return false;
    part.signs[part.split] = 1;
    part.multipliers[part.split] = 0;
    to.push_back(part);
    part.signs[part.split] = -1;
    to.push_back(std::move(part));
    return true;
  }
  void raise(std::span<Part> parts, bool last) const {
    bounds_->raise(parts, enough_, last ? kLeafSteps : kPartSteps);
  }

  // A class whose margin was not proved.
  [[nodiscard]] Index rival() const {
    if (rival_ >= 0 || wholes_.empty()) return rival_;
    return std::ranges::min_element(wholes_, {}, &Part::bound)->target;
  }

 private:
  std::shared_ptr<const LayeredNet> net_;
  std::optional<MarginBounds> bounds_;
  std::vector<double> enough_;
  std::vector<Part> wholes_;
  Index rival_ = -1;
};

}  // namespace

BallAnswer prove_ball_by_lines(Problem& problem, const LocalQuery& question, double radius,
                               bool cases, const std::function<bool()>& stop) {
  BallProof proof(problem, question, radius, stop);
  if (proof.whole()) return {true, -1, "linear-bounds"};
  if (cases && proof.parts(question.parts, stop)) return {true, -1, "linear-bounds-by-cases"};
  return {false, proof.rival(), ""};
}

LocalAnswer linear_radius(Problem& problem, const LocalQuery& question,
                          const std::function<bool()>& stop) {
  constexpr int kTries = 9, kBranchings = 5;
  LocalAnswer best{.radius = question.low};
  const auto attempt = [&](double radius, bool branching) {
    BallProof proof(problem, question, radius, stop);
    if (proof.whole() || (branching && proof.parts(question.parts, stop))) {
      best.radius = radius;
      best.branched = best.branched || branching;
    } else {
      best.rival = proof.rival();
    }
    return best.radius;
  };
  // First without branching: between where it works and where it does not.
  RadiusRange range{question.low, question.high};
  narrow_radius(
      range, kTries, kCloseRadii,
      [](const RadiusRange& r) { return geometric_middle_of(r, 0.125); },
      [&](double radius) { return attempt(radius, false); }, stop);
  if (question.parts == 0) return best;
  range = {best.radius, question.high};
  narrow_radius(
      range, kBranchings, kCloseRadii, middle_of,
      [&](double radius) { return attempt(radius, true); }, stop);
  return best;
}

}  // namespace lipscope
