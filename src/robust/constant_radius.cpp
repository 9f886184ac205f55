// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "lipscope/select.h"
#include "net/small.h"
#include "robust/local_radius.h"
#include "robust/radius_search.h"

namespace lipscope {
namespace {

// Margins of one class against the others, on balls around a point.
class MarginsOnBalls {
 public:
  MarginsOnBalls(const Graph& graph, const LocalQuery& question) : question_(question) {
    const Index classes = element_count(graph.value(graph.outputs()[0]).type.shape);
    for (Index j = 0; j < classes; ++j) {
      if (j == question.winner) continue;
      Selection row;
      row.margin = {question.winner, j};
      margins_.push_back(select(graph, row).graph);
      rivals_.push_back(j);
      at_center_.push_back(least_value(margins_.back(), 0));
    }
  }

  [[nodiscard]] bool stays(double radius, const std::function<bool()>& stop) {
    const std::vector<double> needed = question_.needed(radius);
    for (std::size_t m = 0; m < margins_.size(); ++m) {
      const double least = needed[to_size(rivals_[m])];
      if (least_value(margins_[m], radius) > least) continue;
      rival_ = rivals_[m];
      if (stop()) return false;
      const Query query{&margins_[m], {question_.norm, question_.norm}, ball(radius)};
      // Work, not time: the radius of a sample is the same on every machine.
      const Budget budget{.time = std::chrono::duration<double>(0.05),
                          .methods = {"layer-product", "dag", "loop-transform"}};
      const RunContext context{.clock = RunClock::by_work(1)};
      const RunScope scope(*context.clock, HUGE_VAL);
      const auto upper = find_bracket(query, budget, context).bracket.upper(Guarantee::kProved);
      if (!upper || !(sub_down(at_center_[m], mul_up(upper->value, radius)) > least)) return false;
    }
    return true;
  }
  [[nodiscard]] Index rival() const { return rival_; }

 private:
  [[nodiscard]] Domain ball(double radius) const {
    Domain domain;
    domain.ball = Ball{Tensor::vector({question_.point.begin(), question_.point.end()}), radius,
                       question_.norm};
    return domain;
  }
  [[nodiscard]] double least_value(const Graph& margin, double radius) const {
    ValueBoxes boxes(margin, input_boxes(margin, ball(radius)));
    return boxes.at(margin.outputs()[0]).lower.doubles()[0];
  }

  const LocalQuery& question_;
  std::vector<Graph> margins_;
  std::vector<Index> rivals_;
  std::vector<double> at_center_;
  Index rival_ = -1;
};

}  // namespace

BallAnswer prove_ball_by_constants(const Graph& graph, const LocalQuery& question, double radius,
                                   const std::function<bool()>& stop) {
  MarginsOnBalls margins(graph, question);
  const bool proved = margins.stays(radius, stop);
  return {proved, proved ? -1 : margins.rival(), "local-constants"};
}

LocalAnswer constant_radius(const Graph& graph, const LocalQuery& question,
                            const std::function<bool()>& stop) {
  constexpr int kTries = 10;
  LocalAnswer best{.radius = question.low};
  MarginsOnBalls margins(graph, question);
  RadiusRange range{question.low, question.high};
  const auto attempt = [&](double radius) {
    if (margins.stays(radius, stop)) {
      best.radius = radius;
    } else {
      best.rival = margins.rival();
    }
    return best.radius;
  };
  narrow_radius(
      range, kTries, kCloseRadii,
      [](const RadiusRange& r) { return geometric_middle_of(r, 0.0625); }, attempt, stop);
  return best;
}

}  // namespace lipscope
