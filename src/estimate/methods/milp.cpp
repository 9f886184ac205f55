// SPDX-License-Identifier: Apache-2.0
// milp: the constant of a small piecewise linear network by a program with integer variables, for
// comparison with exact-local.
//
// Needs      CBC at build time; a box or l-infinity ball; dense, convolutional or residual layers
//            with units of one kink at zero; l-infinity or l1 to l-infinity (or one output). Runs
//            only when asked for by name.
// Gives      an estimate: the solver works in floating point with tolerances. When it ends, the
//            constant up to these; when it is stopped, what it could not exclude. The note says
//            which. Its best point is a proved lower bound where the quotient there is.
// Cost       branch and cut over all units of both signs and all entries of the gradient of both
//            signs: about fifteen units take seconds, thirty rarely end.
// Certifies  nothing but the lower bound.
// Theory     docs/theory/local.md [local-12].
#include <fmt/format.h>

#include "estimate/gradient_program.h"
#include "estimate/piece_run.h"
#include "estimate/point_prover.h"
#include "search/bounded_search.h"

namespace lipscope {
namespace {

std::string milp_unsupported(const Query& query) {
  if (!has_integer_solver()) return "not built in: CBC was not there at build time";
  if (query.domain.everywhere()) return "the domain is the whole space";
  if (query.domain.ball && query.domain.ball->norm.p() != kInf)
    return "it is about boxes and l-infinity balls";
  const Index outputs = element_count(query.graph->value(query.graph->outputs()[0]).type.shape);
  const double p = query.norms.in.p();
  if ((p != 1 && p != kInf) || (outputs != 1 && query.norms.out.p() != kInf))
    return "it is about l-infinity or l1 to l-infinity";
  return {};
}

void run_milp(const MethodRun& run) {
  constexpr Index kMostWeights = 1'000'000;
  const Expected<LocalNet> chain = small_chain(run.problem, kMostWeights);
  if (!chain) return run.decline(chain.reason());
  const LayeredNet* net = chain->net.get();
  if (!net->kinks_at_zero()) return run.decline("units without a kink at zero alone");
  const NormDecomposition parts = *decomposition_of(run.query.norms, net->inputs(), net->outputs());
  BoundedSearch region(*net, run.query.domain);
  if (!region.usable()) return run.decline("values that are not bounded on the domain");
  const Slopes slopes = region.confirm({}, {}).slopes;
  PointProver prover(run, *net, parts, region, "milp");
  // Only this method's own time limit counts: a bracket that is tight already is no reason to stop.
  const auto stop = [&] { return run.passed(run.deadline); };
  double best = 0, bound = 0;
  bool finished = true;
  for (const GradientTask& task :
       gradient_tasks(*net, slopes, parts.norm == 1 ? GradientNorm::kOne : GradientNorm::kMax)) {
    if (task.limit <= best) break;  // and so are all that follow
    if (stop()) {
      finished = false;
      bound = std::max(bound, task.limit);
      break;
    }
    const GradientProgram largest = gradient_program(*net, region, slopes, task);
    const IntegerSolution found = solve(largest.program, best, run.seconds_left(), stop);
    finished = finished && found.finished;
    bound = std::max(bound, std::min(found.bound, task.limit));
    if (!(found.objective > best)) continue;
    best = found.objective;
    // The solver's point is a corner of its piece.
    Path sides;
    for (const auto& [unit, column] : largest.sides)
      sides.push_back({unit, 0, found.point[static_cast<std::size_t>(column)] > 0.5});
    BoundedSearch piece(region);
    const auto view = piece.examine(sides, {});
    if (!view.empty && !view.point.empty()) (void)prover.try_point(view.point);
  }
  run.report({bound, Guarantee::kEstimate, "milp"},
             {.note = finished ? fmt::format("{} ended, tolerances {}", integer_solver_name(),
                                             kIntegerTolerance)
                               : fmt::format("{} was stopped: not below {}, not above the value, "
                                             "tolerances {}",
                                             integer_solver_name(), best, kIntegerTolerance)});
}

}  // namespace

std::vector<Method> method_milp() {
  return {{.info = {.id = "milp",
                    .side = "upper",
                    .summary = has_integer_solver()
                                   ? "mixed-integer program, for comparison; only by name"
                                   : "mixed-integer program (not built in: needs CBC)",
                    .theory = "local-12",
                    .guarantee = Guarantee::kEstimate},
           .unsupported = milp_unsupported,
           .run = run_milp,
           .only_by_name = true}};
}

}  // namespace lipscope
