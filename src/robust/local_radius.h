// SPDX-License-Identifier: Apache-2.0
// The largest ball on which a decision is proved to stay [robustness-4].
#pragma once

#include <functional>
#include <span>

#include "lipscope/robustness.h"
#include "net/problem.h"

namespace lipscope {

class AffineNodes;
class BallRanges;

// What a proof on a ball of this radius has to exceed, by rival.
using Needed = std::function<std::vector<double>(double radius)>;

struct LocalQuery {
  std::span<const double> point;
  Norm norm = Norm(2);
  Index winner = 0;
  double low = 0, high = 0;  // known to be safe; not safe, as far as is known
  Index parts = 0;           // to look at, per radius
  Needed needed;
};

struct LocalAnswer {
  double radius = 0;
  Index rival = -1;  // where the next larger radius failed
  bool branched = false;
  bool by_lines = false;  // linear bounds had a part in it
};

// By linear bounds of the margins on the ball, and on parts of it. The problem is about the whole
// space, and its chain is made. `stop` costs tightness only.
[[nodiscard]] LocalAnswer linear_radius(Problem& problem, const LocalQuery& question,
                                        const std::function<bool()>& stop);

// What is known of a graph for all balls of a norm.
struct GraphParts {
  const BallRanges* ranges = nullptr;
  const AffineNodes* nodes = nullptr;  // null: without linear bounds
};
// For any graph: by linear bounds of the margins on the ball [local-13], and by their gradients
// there, which give constants of the ball.
[[nodiscard]] LocalAnswer gradient_radius(const Graph& graph, const GraphParts& parts,
                                          const LocalQuery& question,
                                          const std::function<bool()>& stop);

// One ball; `cases`: by parts of it, too.
struct BallAnswer {
  bool proved = false;
  Index rival = -1;  // one whose margin was not proved
  const char* method = "";
};
[[nodiscard]] BallAnswer prove_ball_by_lines(Problem& problem, const LocalQuery& question,
                                             double radius, bool cases,
                                             const std::function<bool()>& stop);
[[nodiscard]] BallAnswer prove_ball_by_gradients(const Graph& graph, const GraphParts& parts,
                                                 const LocalQuery& question, double radius,
                                                 bool cases, const std::function<bool()>& stop);
[[nodiscard]] BallAnswer prove_ball_by_constants(const Graph& graph, const LocalQuery& question,
                                                 double radius, const std::function<bool()>& stop);

// For any graph: by ranges of the margins on the ball, and by their constants there.
[[nodiscard]] LocalAnswer constant_radius(const Graph& graph, const LocalQuery& question,
                                          const std::function<bool()>& stop);

}  // namespace lipscope
