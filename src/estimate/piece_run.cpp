// SPDX-License-Identifier: Apache-2.0
#include "estimate/piece_run.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/parallel.h"
#include "base/rounding.h"
#include "estimate/jacobian_norm.h"
#include "estimate/quotient.h"
#include "pieces/local_bounds.h"
#include "pieces/search.h"
#include "pieces/signs.h"

namespace lipscope {
namespace {

using Clock = std::chrono::steady_clock;

// The best proved quotient near a point inside a piece.
class PointProver {
 public:
  PointProver(const MethodRun& run, const LayeredNet& net, const Parts& parts, const Region& region,
              std::string_view name)
      : run_(run),
        net_(net),
        parts_(parts),
        region_(region),
        name_(name),
        projection_(*run.query.graph, run.query.domain) {}

  double try_point(std::vector<double> x) {
    if (!run_.query.domain.everywhere()) leave_the_edge(x);
    std::vector<double> direction = steepest(x);
    const double size = std::max(1.0, vector_norm(x, Norm(2)));
    TrialLine line{std::move(x), std::move(direction), size};
    if (net_.piecewise_linear())
      line.reach = std::min(size, 0.9 * way_to_kink(net_, line.x, line.d));
    ProvedPair pair = prove_along(run_.query, projection_, line, 6, run_.proved_lower(), 0,
                                  [this] { return run_.context.stop.stop_requested(); });
    if (pair.value > run_.proved_lower())
      run_.report_witness({pair.value, Guarantee::kProved, std::string(name_)},
                          std::move(pair.witness));
    return run_.proved_lower();
  }

 private:
  // The direction in which the Jacobian at x stretches most.
  std::vector<double> steepest(const std::vector<double>& x) {
    const auto n = static_cast<std::size_t>(net_.inputs());
    std::vector<double> direction(n, 0);
    if (parts_.whole) {
      for (double& e : direction) e = normal_(rng_);
      return jacobian_norms(*run_.query.graph, x, 1, run_.query.norms, std::move(direction), 60)
          .direction;
    }
    const std::vector<double> rows = plain_jacobian(net_, region_.slopes_at(x));
    const auto outputs = static_cast<std::size_t>(net_.outputs());
    double most = -1;
    for (std::size_t part = 0; part < static_cast<std::size_t>(parts_.count); ++part) {
      std::vector<double> entries;  // a row, or a column
      for (std::size_t i = 0; i < (parts_.transposed ? outputs : n); ++i)
        entries.push_back(parts_.transposed ? rows[i * n + part] : rows[part * n + i]);
      const double norm = vector_norm(entries, Norm(parts_.norm));
      if (!(norm > most)) continue;
      most = norm;
      if (parts_.transposed) {
        std::ranges::fill(direction, 0);
        direction[part] = 1;
      } else {
        dual_vector(entries, Norm(parts_.norm), direction);
      }
    }
    return direction;
  }

  // Into the inside of a box or ball, on the same piece.
  void leave_the_edge(std::vector<double>& x) const {
    std::vector<double> inward(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double middle = run_.query.domain.ball
                                ? run_.query.domain.ball->center.doubles()[i]
                                : 0.5 * (projection_.low()[i] + projection_.high()[i]);
      inward[i] = middle - x[i];
    }
    const double way =
        net_.piecewise_linear() ? std::min(0.3, 0.5 * way_to_kink(net_, x, inward)) : 0.01;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += way * inward[i];
  }

  const MethodRun& run_;
  const LayeredNet& net_;
  const Parts& parts_;
  const Region& region_;
  std::string_view name_;
  DomainProjection projection_;
  std::mt19937_64 rng_{5};
  std::normal_distribution<double> normal_;
};

}  // namespace

std::string why_no_pieces(const Query& query) {
  const Graph& graph = *query.graph;
  const Index outputs = element_count(graph.value(graph.outputs()[0]).type.shape);
  Index inputs = 0;
  for (const ValueId id : graph.inputs()) inputs += element_count(graph.value(id).type.shape);
  return parts_of(query.norms, inputs, outputs) ? "" : "no search for these norms";
}

double root_seconds(const LayeredNet& net, const Parts& parts, bool bounded) {
  double cost = 0, behind = 0;
  for (std::size_t k = net.layers.size(); k-- > 0;) {
    const double rows = static_cast<double>(net.layers[k].out);
    const double cols = static_cast<double>(net.layers[k].in);
    cost += parts.norm == 2 ? 4 * rows * rows * (rows + cols) : 2 * cols * behind;
    behind += rows * cols;
  }
  return (cost * static_cast<double>(parts.count) + (bounded ? forward_cost(net) : 0)) / 5e9;
}

double claim_of_cases(double upper) { return mul_up(upper, 1 + 0x1p-36); }

void search_pieces(const MethodRun& run, const PieceRun& how) {
  std::string reason;
  const auto net = as_layered_net(*run.query.graph, how.most_weights, reason);
  if (!net) return run.decline(reason);
  const Parts parts = *parts_of(run.query.norms, net->inputs(), net->outputs());
  const std::chrono::duration<double> left = run.deadline - Clock::now();
  // Where there are many units, searches for lower bounds need time, too.
  constexpr Index kMany = 60, kVeryMany = 150;
  Index units = 0;
  for (std::size_t k = 0; k < net->hidden(); ++k) units += net->layers[k].out;
  const double share = how.share * (units > kVeryMany ? 0.3 : units > kMany ? 0.5 : 1);
  const double seconds = std::min(how.most_seconds, share * left.count());
  if (root_seconds(*net, parts, !run.query.domain.everywhere()) > seconds)
    return run.decline("too large for a bound in the time left; see --time");
  const SerialBlas serial;
  const auto region = how.make_region(*net, run.query.domain, reason);
  if (!region) return run.decline(reason);
  PointProver prover(run, *net, parts, *region, how.name);
  PieceSearch search(
      *net, parts, *region, [&](const std::vector<double>& x) { return prover.try_point(x); },
      run.proved_lower());
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const auto start = Clock::now();
  double reported = kInf, first = kInf;
  const auto report = [&] {
    const double upper = claim_of_cases(search.upper());
    if (!(upper < reported)) return;
    reported = upper;
    run.report({upper, Guarantee::kProved, std::string(how.name)},
               {.cases = std::make_shared<const CaseTree>(search.tree())});
  };
  const double ratio = 1 + 0.1 * (std::min(run.target_ratio, 1.01) - 1);
  for (double slice = 0.05; slice < 1e6; slice *= 1.5) {
    const auto until = std::min(end, Clock::now() + std::chrono::duration<double>(slice));
    const bool stopped =
        search.run(ratio, [&] { return run.should_stop() || Clock::now() > until; });
    report();
    if (!stopped || run.should_stop() || Clock::now() > end) break;
    // Where three seconds close next to nothing of the gap, minutes will not close much.
    if (first == kInf) first = search.upper();
    const std::chrono::duration<double> spent = Clock::now() - start;
    const double gap = first - run.proved_lower();
    if (spent.count() > 3 && first - search.upper() < 0.03 * gap) break;
  }
}

}  // namespace lipscope
