// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/rounding_sums.h"
#include "bounds/derivative_boxes.h"
#include "bounds/linear_bounds.h"
#include "linalg/norm/norm_map.h"
#include "net/small.h"
#include "robust/ball_ranges.h"
#include "robust/graph_cases.h"
#include "robust/local_radius.h"
#include "robust/radius_search.h"

namespace lipscope {
namespace {

// Margins of the winner by linear bounds and by gradients, on balls around one point.
class GradientMargins {
 public:
  GradientMargins(const Graph& graph, const GraphParts& parts, const LocalQuery& question)
      : graph_(graph),
        parts_(parts),
        question_(question),
        logits_(graph.outputs()[0]),
        classes_(element_count(graph.value(logits_).type.shape)),
        proved_(to_size(classes_), question.low),
        dual_(dual_of(question.norm)) {
    proved_[to_size(question.winner)] = kInf;
    ValueBoxes center = boxes_on(0);
    const Box& box = center.at(logits_);
    for (std::size_t j = 0; j < to_size(classes_); ++j)
      margin_.push_back(
          sub_down(box.lower.doubles()[to_size(question.winner)], box.upper.doubles()[j]));
  }

  // The least radius proved for a rival, and that rival.
  [[nodiscard]] double radius() const { return *std::ranges::min_element(proved_); }
  [[nodiscard]] Index rival() const { return std::ranges::min_element(proved_) - proved_.begin(); }
  // False when gradients cannot be formed.
  [[nodiscard]] bool able() const { return able_; }
  // Whether the largest ball was proved by linear bounds.
  [[nodiscard]] bool by_lines() const { return by_lines_; }

  // Whether the class stays on the ball; learns from it either way.
  bool try_ball(double radius, const std::function<bool()>& stop) {
    Domain domain;
    domain.ball = ball(radius);
    DerivativeBoxes derivative(graph_, input_boxes(graph_, domain));
    const std::vector<double> needed = question_.needed(radius);
    const std::vector<double> least = linear_margins(domain, derivative.values(), needed, stop);
    ValueBoxes center = boxes_on(0);
    parts_.ranges->narrow(derivative.values(), center, radius);
    std::vector<std::size_t> order(to_size(classes_));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t j) { return proved_[j]; });
    for (const std::size_t j : order) {
      if (proved_[j] >= radius) continue;
      const std::size_t c = to_size(question_.winner);
      const Box& box = derivative.values().at(logits_);
      const double apart = sub_down(box.lower.doubles()[c], box.upper.doubles()[j]);
      if (std::max(apart, least[j]) > needed[j]) {
        by_lines_ = by_lines_ || !(apart > needed[j]);
        proved_[j] = radius;
        continue;
      }
      if (stop()) return false;
      std::vector<double> row(to_size(classes_));
      row[c] = 1;
      row[j] = -1;
      const auto gradient = derivative.pull(row, logits_);
      able_ = able_ && gradient.has_value();
      if (!gradient) return false;
      std::vector<double> sizes;
      for (const Interval& g : *gradient) sizes.push_back(magnitude(g));
      const double slope = pnorm_up(sizes, dual_), room = sub_down(margin_[j], needed[j]);
      if (!(room > 0) || !(slope < kInf)) return false;
      const double here = slope == 0 ? radius : std::min(radius, next_down(div_down(room, slope)));
      proved_[j] = std::max(proved_[j], here);
      if (here < radius) return false;
    }
    return true;
  }

  // The same by linear bounds on parts of the ball; nothing is learned from a failure.
  [[nodiscard]] CasesAnswer try_cases(double radius, const std::function<bool()>& stop) {
    std::vector<Index> rivals;
    for (Index j = 0; j < classes_; ++j) {
      if (proved_[to_size(j)] < radius) rivals.push_back(j);
    }
    const CasesAnswer found =
        prove_by_cases(graph_, *parts_.nodes, question_, radius, rivals, stop);
    if (found.proved) {
      for (const Index j : rivals) proved_[to_size(j)] = radius;
    }
    return found;
  }
  [[nodiscard]] bool has_cases() const {
    return question_.parts > 0 && parts_.nodes != nullptr && parts_.nodes->usable();
  }

 private:
  // Lower bounds of the margins by rival. Narrows the boxes to what is known on the way.
  [[nodiscard]] std::vector<double> linear_margins(const Domain& domain, ValueBoxes& boxes,
                                                   const std::vector<double>& needed,
                                                   const std::function<bool()>& stop) const {
    constexpr int kAscentSteps = 20;
    std::vector<double> least(to_size(classes_), -kInf);
    if (parts_.nodes == nullptr || !parts_.nodes->usable()) return least;
    LinearBounds bounds(graph_, *parts_.nodes, domain, {.stop = stop});
    bounds.narrow(boxes);
    std::vector<double> rows, enough;
    for (std::size_t j = 0; j < to_size(classes_); ++j) {
      if (j == to_size(question_.winner)) continue;
      std::vector<double> row(to_size(classes_));
      row[to_size(question_.winner)] = 1;
      row[j] = -1;
      rows.insert(rows.end(), row.begin(), row.end());
      enough.push_back(needed[j]);
    }
    const std::vector<double> found = bounds.raised(logits_, rows, enough, kAscentSteps);
    for (std::size_t j = 0, r = 0; j < to_size(classes_); ++j) {
      if (j != to_size(question_.winner)) least[j] = found[r++];
    }
    return least;
  }
  // Rounded down, which makes norms larger.
  static double dual_of(const Norm& norm) {
    if (norm == Norm::infinity()) return 1;
    return norm.p() == 1 ? kInf : dual_exponent(norm.p()).lo;
  }
  [[nodiscard]] Ball ball(double radius) const {
    return {Tensor::vector({question_.point.begin(), question_.point.end()}), radius,
            question_.norm};
  }
  [[nodiscard]] ValueBoxes boxes_on(double radius) const {
    Domain domain;
    domain.ball = ball(radius);
    return {graph_, input_boxes(graph_, domain)};
  }

  const Graph& graph_;
  const GraphParts& parts_;
  const LocalQuery& question_;
  ValueId logits_;
  Index classes_;
  std::vector<double> margin_;  // at the center, by rival
  std::vector<double> proved_;  // by rival
  double dual_;
  bool able_ = true, by_lines_ = false;
};

// Larger balls, case by case: growing from the one that is proved, so that a network of which this
// proves nothing costs one ball.
void branch(GradientMargins& margins, const LocalQuery& question, LocalAnswer& answer,
            const std::function<bool()>& stop) {
  constexpr double kFirst = 0.06, kGrow = 2;
  constexpr int kTries = 5;
  double way = kFirst;
  bool hopeless = false;
  RadiusRange range{answer.radius, question.high};
  const auto next = [&](const RadiusRange& r) { return std::min(r.low * (1 + way), middle_of(r)); };
  const auto attempt = [&](double radius) {
    const CasesAnswer found = margins.try_cases(radius, stop);
    if (found.proved) {
      answer.radius = radius;
      answer.branched = true;
      way *= kGrow;
    } else {
      answer.rival = found.rival;
      hopeless = !answer.branched;
    }
    return answer.radius;
  };
  narrow_radius(range, kTries, kCloseRadii, next, attempt, [&] { return hopeless || stop(); });
}

}  // namespace

BallAnswer prove_ball_by_gradients(const Graph& graph, const GraphParts& parts,
                                   const LocalQuery& question, double radius, bool cases,
                                   const std::function<bool()>& stop) {
  GradientMargins margins(graph, parts, question);
  if (margins.try_ball(radius, stop))
    return {true, -1, margins.by_lines() ? "linear-bounds" : "local-gradients"};
  if (!cases || !margins.has_cases() || stop()) return {false, margins.rival(), ""};
  const CasesAnswer found = margins.try_cases(radius, stop);
  return {found.proved, found.rival, "linear-bounds-by-cases"};
}

LocalAnswer gradient_radius(const Graph& graph, const GraphParts& parts, const LocalQuery& question,
                            const std::function<bool()>& stop) {
  constexpr int kTries = 12;
  GradientMargins margins(graph, parts, question);
  RadiusRange range{margins.radius(), question.high};
  narrow_radius(
      range, kTries, kCloseRadii,
      [](const RadiusRange& r) { return geometric_middle_of(r, 0.0625); },
      [&](double radius) {
        (void)margins.try_ball(radius, stop);
        return margins.radius();
      },
      [&] { return !margins.able() || stop(); });
  LocalAnswer answer{
      .radius = margins.radius(), .rival = margins.rival(), .by_lines = margins.by_lines()};
  if (margins.has_cases()) branch(margins, question, answer, stop);
  return answer;
}

}  // namespace lipscope
