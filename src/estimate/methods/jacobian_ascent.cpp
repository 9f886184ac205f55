// SPDX-License-Identifier: Apache-2.0
// jacobian-ascent: lower bound from points where the Jacobian is large.
//
// Needs      derivatives and ranges of all operators on the way.
// Gives      lower bound, proved: the difference quotient of two points near the best one, both
// outputs enclosed by
//            interval evaluation. Holds whether or not the function is differentiable there.
// Cost       a batch of points, a few products with J and J' each, as long as they improve.
// Certifies  the two points.
// Theory     docs/theory/composition.md [composition-4].
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "bounds/boxes.h"
#include "estimate/jacobian_norm.h"
#include "estimate/method.h"
#include "estimate/quotient.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using Rng = std::mt19937_64;

constexpr Index kBatch = 32;
constexpr int kSteps = 4;      // products with J and J' per round
constexpr int kPatience = 12;  // rounds without progress before it ends
constexpr double kProgress = 1e-4;

struct Population {
  std::vector<double> points, directions, values;
};

std::string unsupported(const Query& query) {
  if (input_size(*query.graph) == 0) return "no floating input";
  if (element_count(query.graph->value(query.graph->outputs()[0]).type.shape) == 0)
    return "empty output";
  for (const Node& node : query.graph->nodes()) {
    if (!node.op->differentiable()) {
      return "node '" + node.name + "': operator " + std::string(node.op->name()) +
             " has no derivative";
    }
  }
  return {};
}

class Ascent {
 public:
  explicit Ascent(const MethodRun& run)
      : run_(run),
        graph_(*run.query.graph),
        size_(static_cast<std::size_t>(input_size(graph_))),
        boxes_(input_boxes(graph_, run.query.domain)),
        rng_(run.context.seed) {
    for (const Box& box : boxes_) {
      low_.insert(low_.end(), box.lower.doubles().begin(), box.lower.doubles().end());
      high_.insert(high_.end(), box.upper.doubles().begin(), box.upper.doubles().end());
    }
  }

  void search() {
    Population people = start();
    double best = 0, scale = 1;
    for (int waited = 0; waited < kPatience && !run_.should_stop();) {
      const std::size_t top = leader(people);
      if (people.values[top] > best * (1 + kProgress)) {
        prove(people, top);
        best = people.values[top];
        waited = 0;
      } else {
        ++waited;
        scale *= 0.7;
      }
      people = improve(people, scale);
    }
    prove(people, leader(people));
  }

 private:
  static std::size_t leader(const Population& people) {
    return static_cast<std::size_t>(std::ranges::max_element(people.values) -
                                    people.values.begin());
  }
  std::span<const double> part(const std::vector<double>& all, std::size_t b) const {
    return std::span(all).subspan(b * size_, size_);
  }

  // Where the domain is unbounded, points are drawn at several scales: constants of smooth networks
  // live near the origin, those of piecewise linear ones may need far cells.
  double draw(std::size_t i, std::size_t b) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    const double scale = std::pow(10.0, static_cast<double>(b % 4) - 2);
    if (std::isfinite(low_[i]) && std::isfinite(high_[i]))
      return low_[i] + uniform(rng_) * (high_[i] - low_[i]);
    return std::clamp(scale * normal(rng_), low_[i], high_[i]);
  }

  Population start() {
    Population people;
    std::normal_distribution<double> normal;
    for (std::size_t b = 0; b < kBatch; ++b) {
      for (std::size_t i = 0; i < size_; ++i) people.points.push_back(draw(i, b));
      for (std::size_t i = 0; i < size_; ++i) people.directions.push_back(normal(rng_));
    }
    project(people.points);
    return measured(std::move(people.points), std::move(people.directions), 2 * kSteps);
  }

  Population measured(std::vector<double> points, std::vector<double> directions, int steps) const {
    JacobianNorms norms =
        jacobian_norms(graph_, points, kBatch, run_.query.norms, std::move(directions), steps);
    return {std::move(points), std::move(norms.direction), std::move(norms.value)};
  }

  // The better half stays; the other half is made of neighbours of the better ones, moved along
  // their own direction or at random, in steps that shrink when nothing improves.
  Population improve(const Population& old, double scale) {
    std::vector<std::size_t> order(kBatch);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order,
                      [&](std::size_t a, std::size_t b) { return old.values[a] > old.values[b]; });
    std::vector<double> points, directions;
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    for (std::size_t b = 0; b < kBatch; ++b) {
      const std::size_t parent =
          order[b < kBatch / 4 ? b : static_cast<std::size_t>(uniform(rng_) * kBatch / 4)];
      const auto x = part(old.points, parent), d = part(old.directions, parent);
      double width = 0;
      for (const double e : x) width = std::max(width, std::abs(e));
      const double step = scale * (width > 0 ? width : 1) * std::pow(10.0, -2 * uniform(rng_));
      const bool along = b % 2 == 0;
      const double sign = uniform(rng_) < 0.5 ? -1 : 1;
      for (std::size_t i = 0; i < size_; ++i) {
        const double move = b < kBatch / 4 ? 0 : along ? sign * step * d[i] : step * normal(rng_);
        points.push_back(x[i] + move);
        directions.push_back(d[i]);
      }
    }
    project(points);
    return measured(std::move(points), std::move(directions), kSteps);
  }

  // Into the box, and towards the centre of the ball.
  void project(std::vector<double>& points) const {
    const auto& ball = run_.query.domain.ball;
    for (std::size_t b = 0; b < kBatch; ++b) {
      const std::span<double> x = std::span(points).subspan(b * size_, size_);
      for (std::size_t i = 0; i < size_; ++i) x[i] = std::clamp(x[i], low_[i], high_[i]);
      for (int tries = 0; ball && tries < 60 && !in_domain(run_.query.domain, x); ++tries) {
        for (std::size_t i = 0; i < size_; ++i) x[i] += 0.25 * (ball->center.doubles()[i] - x[i]);
      }
    }
  }

  // Short steps follow curved functions, long ones lose less to rounding: the best of several.
  void prove(const Population& people, std::size_t b) {
    const auto x = part(people.points, b), d = part(people.directions, b);
    double width = 1;
    for (const double e : x) width = std::max(width, std::abs(e));
    for (const double sign : {1.0, -1.0}) {
      for (double step = 1e-2; step > 1e-8; step /= 10) {
        Witness witness{{x.begin(), x.end()}, {x.begin(), x.end()}};
        for (std::size_t i = 0; i < size_; ++i) witness.y[i] += sign * step * width * d[i];
        if (!in_domain(run_.query.domain, witness.x) || !in_domain(run_.query.domain, witness.y))
          continue;
        const double value = proved_quotient(run_.query, witness);
        if (value <= proved_) continue;
        proved_ = value;
        run_.report({value, Guarantee::kProved, "jacobian-ascent"}, std::move(witness), {});
      }
    }
  }

  const MethodRun& run_;
  const Graph& graph_;
  std::size_t size_;
  std::vector<Box> boxes_;
  std::vector<double> low_, high_;
  Rng rng_;
  double proved_ = 0;
};

void run(const MethodRun& run) { Ascent(run).search(); }

}  // namespace

std::vector<Method> method_jacobian_ascent() {
  return {{.info = {.id = "jacobian-ascent",
                    .side = "lower",
                    .summary = "points where the Jacobian is large, proved by interval evaluation",
                    .theory = "composition-4",
                    .guarantee = Guarantee::kProved},
           .unsupported = unsupported,
           .run = run}};
}

}  // namespace lipscope
