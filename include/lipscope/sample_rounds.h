// SPDX-License-Identifier: Apache-2.0
// Certified radii of a whole set of samples: what is cheap for all of them first, then the time
// where it decides a radius that is asked for, then the largest radius of each.
//
//   std::vector<SampleWork> samples;  // with the decisions of certifier.decide()
//   const bool all = certify_samples(certifier, set, *context.clock, end, {}, samples);
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "lipscope/robustness.h"

namespace lipscope {

// What is known of a sample, and what was tried.
struct SampleWork {
  Decision decision;
  bool attacked = false;  // an attack ran to its end
  // The least radii at which a proof was tried to its end and failed: on the whole ball; by cases.
  double whole_failed = std::numeric_limits<double>::infinity();
  double cases_failed = std::numeric_limits<double>::infinity();
  bool complete = false;  // more time would find nothing more

  // Neither proved nor refuted.
  [[nodiscard]] bool open_at(double radius) const {
    return decision.certain && decision.radius < radius &&
           !(decision.attack_radius && *decision.attack_radius <= radius);
  }
};

struct SampleSet {
  std::span<const double> points;  // samples one after another
  std::span<const Index> labels;
  std::span<const double> radii;  // that are asked for, ascending
  bool local = false;    // bounds around each sample, not only constants of the whole space
  bool attack = false;   // the nearest input of another class of every sample
  std::size_t size = 0;  // entries of a sample
};

struct SampleHooks {
  // A round over so many samples begins.
  std::function<void(std::string_view round, Index samples)> begin = {};
  // One of them is through; from several threads.
  std::function<void(std::size_t sample)> done = {};
};

// Goes on with samples whose decisions are those of the certifier's constants, or of an earlier
// call. `end`: by the clock. Under a budget of work every sample has a budget of its own, in
// proportion to the clock's, and its result does not depend on the others. Returns whether all are
// complete; what there is is valid in any case.
bool certify_samples(const Certifier& certifier, const SampleSet& set, const RunClock& clock,
                     double end, const SampleHooks& hooks, std::span<SampleWork> samples);

}  // namespace lipscope
