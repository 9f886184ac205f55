// SPDX-License-Identifier: Apache-2.0
// certify: from flags to decisions about every sample.
#pragma once

#include <string>
#include <vector>

#include "certify_table.h"
#include "command.h"
#include "labelled_data.h"
#include "lipscope/robustness.h"
#include "lipscope/select.h"
#include "model_flags.h"

namespace lipscope::app {

struct CertifyFlags {
  ModelFlags model;
  DataFlags data;
  std::string norm = "2", scope = "global", resume, require, inference, accumulate;
  std::vector<double> radii;
  bool attack = false, flush_to_zero = false;
  Index parts = 400;

  [[nodiscard]] bool local() const { return scope == "local"; }
};

struct Certified {
  CertifyFlags flags;
  std::uint64_t seed = 1;
  std::optional<double> effort;
  std::string model_file, sha256;
  Norm norm = Norm(2);
  std::string output;   // the model's output that decides
  std::string dropped;  // final operator that was left out
  std::string squash;   // final operator that is part of the decision as computed
  Conventions conventions;
  LabelledData data;
  PairConstants constants;
  CertifyTable table;
  std::string local_obstacle;
  Outcome outcome = Outcome::kFinished;
  double seconds = 0, seconds_constants = 0;
  std::vector<std::string> hints;
};

// What a radius of 1 is.
[[nodiscard]] std::string unit_text(const Certified& found);

[[nodiscard]] Certified run_certify(const CertifyFlags& flags, const Common& common);

}  // namespace lipscope::app
