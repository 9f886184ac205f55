// SPDX-License-Identifier: Apache-2.0
#include "robust/graph_cases.h"

#include <algorithm>
#include <cmath>

#include "bounds/linear_parts.h"
#include "net/small.h"
#include "robust/part_search.h"

namespace lipscope {
namespace {

// A function per rival.
std::vector<double> margin_rows(Index classes, Index winner, std::span<const Index> rivals) {
  std::vector<double> rows(rivals.size() * to_size(classes));
  for (std::size_t r = 0; r < rivals.size(); ++r) {
    rows[r * to_size(classes) + to_size(winner)] = 1;
    rows[r * to_size(classes) + to_size(rivals[r])] = -1;
  }
  return rows;
}

class CaseRules {
 public:
  // `roots`: the bounds on the whole ball.
  CaseRules(LinearParts& bounds, std::vector<double> enough, std::vector<double> roots, Index most)
      : bounds_(bounds),
        enough_(std::move(enough)),
        roots_(std::move(roots)),
        deepest_(std::log2(static_cast<double>(most)) + kMoreCuts) {}

  [[nodiscard]] std::size_t row() const { return row_; }
  [[nodiscard]] bool closed(const LinearPart& part) const { return part.bound > enough_[part.row]; }
  // If more cuts are needed, each raising the bound by as much as those so far, than so many parts
  // can have.
  bool hopeless(const LinearPart& part) {
    row_ = part.row;
    const double root = roots_[part.row], cuts = static_cast<double>(part.cuts.size());
    return cuts >= kFewCuts && (enough_[part.row] - root) * cuts > deepest_ * (part.bound - root);
  }
  bool halve(const LinearPart& part, std::vector<LinearPart>& to) {
    if (!part.split) return false;
    for (const bool at_least : {false, true})
      to.push_back(bounds_.side(part, *part.split, at_least));
    return true;
  }
  void raise(std::span<LinearPart> parts, bool last) {
    constexpr int kPartSteps = 5, kLeafSteps = 100;
    bounds_.raise(parts, enough_, last ? kLeafSteps : kPartSteps);
  }

 private:
  static constexpr double kFewCuts = 3, kMoreCuts = 2;

  LinearParts& bounds_;
  std::vector<double> enough_, roots_;
  double deepest_;
  std::size_t row_ = 0;
};

}  // namespace

CasesAnswer prove_by_cases(const Graph& graph, const AffineNodes& nodes, const LocalQuery& question,
                           double radius, std::span<const Index> rivals,
                           const std::function<bool()>& stop) {
  constexpr int kWholeSteps = 20;
  if (rivals.empty()) return {.proved = true};
  Domain domain;
  domain.ball =
      Ball{Tensor::vector({question.point.begin(), question.point.end()}), radius, question.norm};
  LinearBounds bounds(graph, nodes, domain, {.stop = stop});
  const ValueId logits = graph.outputs()[0];
  LinearParts parts(
      bounds, logits,
      margin_rows(element_count(graph.value(logits).type.shape), question.winner, rivals));
  const std::vector<double> needed = question.needed(radius);
  std::vector<double> enough;
  std::vector<LinearPart> wholes;
  for (std::size_t r = 0; r < rivals.size(); ++r) {
    enough.push_back(needed[to_size(rivals[r])]);
    wholes.push_back(parts.whole(r));
  }
  parts.raise(wholes, enough, kWholeSteps);
  std::vector<double> roots;
  for (const LinearPart& part : wholes) roots.push_back(part.bound);
  CaseRules rules(parts, enough, roots, question.parts);
  std::erase_if(wholes, [&](const LinearPart& part) { return rules.closed(part); });
  const bool proved = prove_parts(std::move(wholes), rules, question.parts, stop);
  return {.proved = proved, .rival = proved ? -1 : rivals[rules.row()]};
}

}  // namespace lipscope
