// SPDX-License-Identifier: Apache-2.0
// Everything `lipscope attention` says about a model at an input.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attention/find.h"
#include "attention/head.h"
#include "attention/head_ball.h"
#include "attention/local_norm.h"
#include "lipscope/evaluate.h"
#include "softmax/study.h"

namespace lipscope {

struct AttentionQuery {
  std::vector<NormPair> norms;   // of the softmax rows
  std::optional<double> radius;  // of a ball of tokens, for heads and blocks
  TokenNorm ball = TokenNorm::kFrobenius;
  Index jasmin_rank = 10;        // k of g_1 / g_k
  std::vector<double> epsilons;  // sizes of perturbations of the scores; none: no empirical study
  std::uint64_t seed = 1;
};

struct HeadReport {
  Index head = 0;
  std::vector<SoftmaxSummary> softmax;          // by norm
  double score_spread = 0;                      // largest difference of scores within a row
  double entropy = 0;                           // mean over the rows, in nats
  double near_half = 0;                         // share of rows with an entry in [0.4, 0.6]
  double jasmin = 0, jasmin_ratio = 0;          // largest g_1 and g_1 / g_k of a row
  std::optional<Bound> lower, upper;            // at the point
  std::optional<Bound> ball_lower, ball_upper;  // on the ball, in its norm
  std::vector<AttentionBound> bounds;
  std::vector<EmpiricalConstant> empirical;
};

struct BlockReport {
  AttentionBlock block;
  std::string outside;  // why the theorems do not cover it; empty: they do
  std::vector<HeadReport> heads;
  std::optional<Bound> lower, upper, ball_lower, ball_upper;
};

struct AttentionReport {
  std::string from;  // node the model starts at; empty: its inputs
  std::vector<BlockReport> blocks;
  std::optional<Bound> lower, upper, ball_lower, ball_upper;  // of the whole model
  double model_seconds = 0;                                   // spent on it
  bool complete = true;
};

// Throws kUnsupported for a model without attention or with rows of one entry, kBadFile for scores
// that are not numbers and rows that a mask hides. `name` stands for the model in messages. Ends
// at the limit of the clock with what there is: the whole model at the point comes first, then the
// blocks, then what needs a ball.
[[nodiscard]] AttentionReport study_attention(const Graph& graph, std::span<const Tensor> inputs,
                                              const AttentionQuery& question,
                                              const std::string& name, const RunClock& clock);

}  // namespace lipscope
