// SPDX-License-Identifier: Apache-2.0
// pattern-ascent: lower bound from a search over the linear pieces of a network.
//
// Needs      dense, convolutional or residual layers with ReLU, LeakyReLU, Abs or another function
//            with one kink at zero; l2 to l2, or one output in any norm.
// Gives      lower bound, proved: the difference quotient of two points on a piece, both outputs
//            enclosed by interval evaluation.
// Cost       seven tenths of the time that is left, less for small networks: starts guided by a
//            free choice of the pieces, ascent with smoothed gates, then annealed moves and
//            crossings of single kinks.
// Certifies  the two points.
// Theory     docs/theory/composition.md [composition-4], [composition-8].
#include <algorithm>

#include "base/parallel.h"
#include "estimate/jacobian_norm.h"
#include "estimate/method.h"
#include "estimate/pattern_search.h"
#include "estimate/quotient.h"
#include "estimate/sdp_query.h"
#include "net/problem.h"

namespace lipscope {
namespace {

std::string pattern_ascent_unsupported(const Query& query) {
  const Index outputs = element_count(query.graph->value(query.graph->outputs()[0]).type.shape);
  const bool euclidean = query.norms.in == Norm(2) && query.norms.out == Norm(2);
  if (outputs != 1 && !euclidean) return "supports only the l2 norm when there are several outputs";
  if (query.domain.ball && query.domain.ball->radius == 0) return "the domain is one point";
  return {};
}

class PatternAscent {
 public:
  // Takes at most so much of the time that is left.
  PatternAscent(const MethodRun& run, const PiecewiseLinearNet& net, double most)
      : run_(run),
        projection_(*run.query.graph, run.query.domain),
        start_(run.now()),
        end_(start_ + time_for(run, net, most)) {
    const auto project = [this](std::span<double> x) { projection_.apply(x); };
    for (std::uint64_t i = 0; i < kWorkers; ++i)
      workers_.emplace_back(net, run.query.norms, project, run.context.seed + i);
    starting_ = net.inputs() * net.outputs() > 3000 ? 0.7 : 0.3;
  }

  void search() {
    for (double slice = 0.05; !run_.should_stop() && !run_.passed(end_); slice = 0.4) {
      work(std::min(end_, run_.now() + slice));
      prove();
    }
    prove();
  }

 private:
  static constexpr std::uint64_t kWorkers = 2;
  // Small networks have few pieces.
  static double time_for(const MethodRun& run, const PiecewiseLinearNet& net, double most) {
    const double enough = 0.3 + 0.1 * static_cast<double>(net.units());
    return std::min(enough, most * run.seconds_left());
  }
  double share() const { return (run_.now() - start_) / (end_ - start_); }

  void work(double until) {
    parallel_for(kWorkers, 1, [&](std::int64_t from, std::int64_t to) {
      for (auto i = static_cast<std::size_t>(from); i < static_cast<std::size_t>(to); ++i) {
        const auto stop = [&] { return run_.passed(end_); };
        while (!run_.passed(until)) {
          const double gone = share();
          if (gone < starting_ || !workers_[i].has_starts()) {
            workers_[i].climb(stop);
          } else {
            workers_[i].anneal((gone - starting_) / (1 - starting_), stop);
          }
        }
      }
    });
  }

  void prove() {
    for (PatternSearch& worker : workers_) {
      const PatternSearch::Point point = worker.best();
      if (!(point.value > tried_ * (1 + 1e-6))) continue;
      tried_ = point.value;
      const double reach = 1e-3 * std::max(1.0, vector_norm(point.x, Norm(2)));
      ProvedPair pair = prove_along(run_.query, projection_, {point.x, point.d, reach}, 10, proved_,
                                    0, [this] { return run_.interrupted(); });
      if (pair.value > proved_) {
        proved_ = pair.value;
        run_.report({pair.value, Guarantee::kProved, "pattern-ascent"},
                    {.proof = QuotientProof{std::move(pair.witness)}});
      }
      if (pair.value < 0.999 * point.value) {
        worker.devalue(std::max(pair.value, proved_));
        tried_ = proved_;
      }
    }
  }

  const MethodRun& run_;
  DomainProjection projection_;
  double start_, end_;
  std::vector<PatternSearch> workers_;
  double starting_ = 0.3, proved_ = 0, tried_ = 0;
};

void search_patterns(const MethodRun& run, double most) {
  if (!run.problem.units()) return run.decline(run.problem.units().reason());
  const auto& network = run.problem.network();
  if (!network) return run.decline(network.reason());
  const auto net = PiecewiseLinearNet::of(*network);
  if (!net) return run.decline(net.reason());
  PatternAscent(run, *net, most).search();
}

void run_pattern_ascent(const MethodRun& run) { search_patterns(run, 0.7); }
void run_pattern_ascent_first(const MethodRun& run) {
  if (is_small(*run.query.graph)) search_patterns(run, 0.05);
}

}  // namespace

std::vector<Method> method_pattern_ascent() {
  return {{.info = {.id = "pattern-ascent",
                    .side = "lower",
                    .summary = "search over the linear pieces, proved by interval evaluation",
                    .theory = "composition-8",
                    .guarantee = Guarantee::kProved},
           .unsupported = pattern_ascent_unsupported,
           .run = run_pattern_ascent,
           .run_first = run_pattern_ascent_first}};
}

}  // namespace lipscope
