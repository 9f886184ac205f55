// SPDX-License-Identifier: Apache-2.0
// Everything `lipscope softmax` says about an array of logits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "softmax/norm.h"

namespace lipscope {

struct SoftmaxQuestion {
  double lambda = 1;
  std::vector<NormPair> norms;
  std::vector<double> epsilons;  // sizes of perturbations; none: no empirical constants
  Index directions = 10;         // random perturbations of each row, for each size and norm
  std::uint64_t seed = 1;
  bool rows = true;  // keep what is said about each row
};

struct SoftmaxRowReport {
  Index row = 0;
  Interval log_sum_exp;
  std::vector<double> probabilities;  // 0 where masked
  std::vector<NormBracket> norms;     // in the order asked
};

// Over all rows examined; upper bounds but for max_lower.
struct SoftmaxSummary {
  double max = 0, median = 0, share_above = 0;  // share of rows above 0.4
  double max_lower = 0;
  Index worst_row = 0;  // of max_lower
};

// The largest |softmax(x) - softmax(x + d)|_q / |d|_p seen, |d|_p = epsilon: eq. 7 of Nair (2025)
// with random d, and with d along the direction in which the Jacobian stretches most.
struct EmpiricalConstant {
  double epsilon = 0;
  NormPair norms;
  double random_max = 0, directed_max = 0;
};

struct SoftmaxReport {
  Index rows = 0, columns = 0;
  Index rows_done = 0;           // the others were not reached
  bool complete = false;         // all rows, all perturbations
  std::vector<Interval> global;  // for each pair of norms
  std::vector<SoftmaxSummary> summary;
  std::vector<SoftmaxRowReport> local;
  std::vector<EmpiricalConstant> empirical;
};

// The last dimension is the row. Throws kBadFile, naming row and column, for NaN, +inf, no rows and
// rows without an entry that is not masked; kUsage for lambda 0 or not finite and epsilons that are
// not positive. `name` stands for the array in messages. Ends early when should_stop(rows done)
// says so, which is asked from several threads before each row but the first and before each
// perturbation.
[[nodiscard]] SoftmaxReport study_softmax(const Tensor& logits, const SoftmaxQuestion& question,
                                          const std::string& name,
                                          const std::function<bool(Index)>& should_stop = {});

// |softmax(x) - softmax(x + d)|_q / |d|_p in plain arithmetic, d one entry per weight of the row;
// differences are taken before rounding, so tiny d are as good as large ones.
[[nodiscard]] double softmax_quotient(const SoftmaxRow& row, std::span<const double> d,
                                      const NormPair& norms);

}  // namespace lipscope
