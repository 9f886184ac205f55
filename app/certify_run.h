// SPDX-License-Identifier: Apache-2.0
// certify: from flags to decisions about every sample.
#pragma once

#include <string>
#include <vector>

#include "command.h"
#include "labelled_data.h"
#include "lipscope/robustness.h"
#include "lipscope/select.h"
#include "model_flags.h"

namespace lipscope::app {

// "0.5:70%": at least this share of all samples certified at this radius.
struct Requirement {
  double radius = 0, percent = 0;
};

enum class Verdict { kHolds, kFails, kOpen };

struct CertifyFlags {
  ModelFlags model;
  DataFlags data;
  std::string norm = "2", scope = "global", resume, require, inference, accumulate;
  std::vector<double> radii;
  bool attack = false, flush_to_zero = false;
  Index parts = 400;
};

struct Certified {
  CertifyFlags flags;
  std::string model_file, sha256;
  Norm norm = Norm(2);
  std::string output;   // the model's output that decides
  std::string dropped;  // final operator that was left out
  std::string squash;   // final operator that is part of the decision as computed
  Conventions conventions;
  LabelledData data;
  PairConstants constants;
  std::vector<Decision> decisions;
  std::vector<double> radii;
  std::optional<Requirement> required;
  std::string local_obstacle;
  Outcome outcome = Outcome::kFinished;
  double seconds = 0, seconds_constants = 0;
  std::vector<std::string> hints;

  [[nodiscard]] bool right(std::size_t s) const {
    return decisions[s].certain && decisions[s].predicted == data.labels[s];
  }
  // Of the real-valued function.
  [[nodiscard]] Index clean() const;
  [[nodiscard]] Index certified_at(double radius) const;
  // In the arithmetic of --inference not even the sample itself is known to be classified as in
  // real arithmetic.
  [[nodiscard]] bool unproved(std::size_t s) const {
    return !flags.inference.empty() && !(decisions[s].radius > 0);
  }
  // Right and not known to have another class within the radius.
  [[nodiscard]] Index standing_at(double radius) const;
  // Of the requirement; holds when there is none. Attacks are on the real-valued function and
  // refute nothing about another arithmetic.
  [[nodiscard]] Verdict verdict() const;
};

[[nodiscard]] Certified run_certify(const CertifyFlags& flags, const Common& common);

}  // namespace lipscope::app
