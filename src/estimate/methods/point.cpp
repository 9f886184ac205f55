// SPDX-License-Identifier: Apache-2.0
// point: the operator norm of the Jacobian at the centre of a ball, or where that is all there is.
//
// Needs      a ball, derivatives of all operators on the way.
// Gives      lower bound: proved where interval arithmetic follows the direction found, with a
// little
//            less than the plain value, which is real where it is confirmed at points next to x; at
//            a kink, where operators give one of the one-sided derivatives, also the largest value
//            next to x, as an estimate. No upper bound: the iteration approaches the norm from
//            below. On a ball with a radius only what is proved: one-sided derivatives are limits
//            of quotients.
// Cost       some ten products with J and with J' for a handful of starts, together.
// Certifies  nothing.
// Theory     docs/theory/composition.md [composition-7], docs/theory/attention.md [attention-17].
#include <algorithm>
#include <cmath>
#include <random>

#include "bounds/boxes.h"
#include "bounds/derivative_boxes.h"
#include "bounds/proved_stretch.h"
#include "estimate/jacobian_norm.h"
#include "estimate/method.h"
#include "estimate/quotient.h"

namespace lipscope {
namespace {

// Whether the domain holds a neighbourhood of the centre.
bool inside_of_box(const Domain& domain) {
  if (!domain.box) return true;
  const auto x = domain.ball->center.doubles();
  const auto low = domain.box->lower.doubles(), high = domain.box->upper.doubles();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(low[i] < x[i] && x[i] < high[i])) return false;
  }
  return true;
}

std::string point_unsupported(const Query& query) {
  if (!query.domain.ball) return "the domain is no ball";
  if (input_size(*query.graph) == 0) return "no floating input";
  if (!in_domain(query.domain, query.domain.ball->center.doubles()))
    return "the point is outside the box";
  if (!inside_of_box(query.domain)) return "the centre is at the edge of the box";
  for (const Node& node : query.graph->nodes()) {
    if (!node.op->differentiable()) {
      return "node '" + node.name + "': operator " + std::string(node.op->name()) +
             " has no derivative";
    }
  }
  return {};
}

constexpr std::size_t kStarts = 8;      // Boyd's iteration may end at a local maximum
constexpr double kMostProofWork = 1e9;  // entries of matrices, where the point is not all there is

std::vector<double> repeated(std::span<const double> x, std::size_t times = kStarts) {
  std::vector<double> all;
  for (std::size_t k = 0; k < times; ++k) all.insert(all.end(), x.begin(), x.end());
  return all;
}

std::vector<double> points_next_to(std::span<const double> x, std::mt19937_64& rng) {
  const double size = std::max(1.0, vector_norm(x, Norm(2)));
  const double step = 1e-7 * size / std::sqrt(static_cast<double>(x.size()));
  std::normal_distribution<double> normal;
  std::vector<double> points = repeated(x);
  for (double& e : points) e += step * normal(rng);
  return points;
}

struct Found {
  double value = -1;
  std::vector<double> direction;
};

Found best_of(const JacobianNorms& norms) {
  const auto top = std::ranges::max_element(norms.value);
  const auto size = static_cast<Index>(norms.direction.size() / norms.value.size());
  const auto from = norms.direction.begin() + (top - norms.value.begin()) * size;
  return {*top, std::vector<double>(from, from + size)};
}

// The largest norm at any of the points.
Found largest(const MethodRun& run, const std::vector<double>& points, std::mt19937_64& rng,
              std::size_t count = kStarts, int most_rounds = 200, double settled_at = 1e-13) {
  constexpr int kSteps = 6;
  std::normal_distribution<double> normal;
  std::vector<double> directions(points.size());
  for (double& e : directions) e = normal(rng);
  Found best;
  for (int round = 0; round < most_rounds && (round == 0 || !run.should_stop()); ++round) {
    JacobianNorms norms = jacobian_norms(*run.query.graph, points, static_cast<Index>(count),
                                         run.query.norms, std::move(directions), kSteps);
    Found found = best_of(norms);
    directions = std::move(norms.direction);
    const bool settled = !(found.value > best.value * (1 + settled_at));
    if (found.value > best.value) best = std::move(found);
    if (settled) break;
  }
  return best;
}

StretchQuestion question(const MethodRun& run, const Found& found) {
  return {.norms = run.query.norms,
          .at = run.query.domain.ball->center.doubles(),
          .direction = found.direction,
          .expected = found.value,
          .should_stop = [&run] { return run.should_stop(); }};
}

void run_centre(const MethodRun& run) {
  const Graph& graph = *run.query.graph;
  const auto x = run.query.domain.ball->center.doubles();
  if (DerivativeBoxes(graph, {}).work(graph.outputs()[0]) > kMostProofWork)
    return run.decline("too large to prove a derivative");
  std::mt19937_64 rng(run.context.seed);
  double entries = 0;
  for (const Value& value : graph.values())
    entries += static_cast<double>(element_count(value.type.shape));
  const std::size_t starts = entries < 1e6 ? kStarts : 1;
  const Found here = largest(run, repeated(x, starts), rng, starts, 10, 1e-10);
  const auto proved = proved_stretch(graph, question(run, here));
  if (proved && *proved > 0) run.report({*proved, Guarantee::kProved, "point"}, {});
}

void run_point(const MethodRun& run) {
  constexpr double kSame = 1e-4;
  const Query& query = run.query;
  if (query.domain.ball->radius > 0) return run_centre(run);
  const auto x = query.domain.ball->center.doubles();
  std::mt19937_64 rng(run.context.seed);
  Found here = largest(run, repeated(x), rng);
  const std::vector<double> others = points_next_to(x, rng);
  const Found near = largest(run, others, rng);
  Found again = best_of(jacobian_norms(*query.graph, x, 1, query.norms, near.direction, 6));
  if (again.value > here.value) here = std::move(again);
  const Found check = best_of(jacobian_norms(*query.graph, others, static_cast<Index>(kStarts),
                                             query.norms, repeated(here.direction), 1));
  const bool smooth = std::abs(near.value - here.value) <= kSame * near.value;
  if (smooth || check.value >= here.value * (1 - kSame)) {
    run.report({here.value, Guarantee::kReal, "point"}, {});
  }
  if (!smooth) run.report({near.value, Guarantee::kEstimate, "point"}, {});
  const auto proved = proved_stretch(*query.graph, question(run, here));
  if (proved && *proved > 0) run.report({*proved, Guarantee::kProved, "point"}, {});
}

}  // namespace

std::vector<Method> method_point() {
  return {{.info = {.id = "point",
                    .side = "lower",
                    .summary = "norm of the Jacobian at a point or the centre of a ball",
                    .theory = "composition-7",
                    .guarantee = Guarantee::kReal},
           .unsupported = point_unsupported,
           .run = run_point}};
}

}  // namespace lipscope
