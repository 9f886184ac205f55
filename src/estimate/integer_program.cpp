// SPDX-License-Identifier: Apache-2.0
// The solver is CBC of COIN-OR (Forrest et al., https://github.com/coin-or/Cbc), a shared library
// that is used where it was there at build time.
#include "estimate/integer_program.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/checkpoint.h"

#ifdef LIPSCOPE_HAVE_CBC
#include <CbcCompareActual.hpp>
#include <CbcEventHandler.hpp>
#include <CbcHeuristic.hpp>
#include <CbcModel.hpp>
#include <CglGomory.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <CglProbing.hpp>
#include <ClpEventHandler.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>
#endif

namespace lipscope {

#ifdef LIPSCOPE_HAVE_CBC

bool has_integer_solver() { return true; }
std::string_view integer_solver_name() { return "CBC " CBC_VERSION; }

namespace {

constexpr double kNoBound = std::numeric_limits<double>::infinity();

class StopWhenAsked : public CbcEventHandler {
 public:
  explicit StopWhenAsked(const std::function<bool()>& asked) : asked_(asked) {}
  CbcAction event(CbcEvent) override { return asked_() ? stop : noAction; }
  [[nodiscard]] CbcEventHandler* clone() const override { return new StopWhenAsked(*this); }

 private:
  const std::function<bool()>& asked_;
};

// Asked in every step of the simplex method: between nodes can be a long time. The search ends by
// itself once its time is up.
class EndTimeWhenAsked : public ClpEventHandler {
 public:
  EndTimeWhenAsked(CbcModel& search, const std::function<bool()>& stop)
      : search_(search), stop_(stop) {}
  int event(Event) override {
    if (stop_()) search_.setMaximumSeconds(0);
    return -1;  // go on
  }
  [[nodiscard]] ClpEventHandler* clone() const override { return new EndTimeWhenAsked(*this); }

 private:
  CbcModel& search_;
  const std::function<bool()>& stop_;
};

void load(const IntegerProgram& program, OsiClpSolverInterface& solver) {
  CoinPackedMatrix matrix(false, 0, 0);
  matrix.setDimensions(0, static_cast<int>(program.columns.size()));
  std::vector<double> low, high, objective, row_low, row_high;
  for (const IntegerProgram::Column& column : program.columns) {
    low.push_back(column.low);
    high.push_back(column.high);
    objective.push_back(-column.objective);
  }
  for (const IntegerProgram::Row& row : program.rows) {
    std::vector<int> columns;
    std::vector<double> factors;
    for (const auto& [column, factor] : row.terms) {
      columns.push_back(column);
      factors.push_back(factor);
    }
    matrix.appendRow(static_cast<int>(columns.size()), columns.data(), factors.data());
    row_low.push_back(row.low);
    row_high.push_back(row.high);
  }
  solver.loadProblem(matrix, low.data(), high.data(), objective.data(), row_low.data(),
                     row_high.data());
  for (std::size_t i = 0; i < program.columns.size(); ++i) {
    if (program.columns[i].binary) solver.setInteger(static_cast<int>(i));
  }
}

}  // namespace

IntegerSolution solve(const IntegerProgram& program, double cutoff, double seconds,
                      const std::function<bool()>& stop) {
  OsiClpSolverInterface solver;
  solver.messageHandler()->setLogLevel(0);
  solver.setHintParam(OsiDoReducePrint, true, OsiHintTry);
  ClpSolve options;
  options.setSpecialOption(2, 1);  // Ctrl-C stays with the program
  solver.setSolveOptions(options);
  load(program, solver);
  solver.setDblParam(OsiPrimalTolerance, kIntegerTolerance);
  solver.setDblParam(OsiDualTolerance, kIntegerTolerance);
  const Unstoppable whole;  // no exception passes through the solver: it is asked to stop
  CbcModel model(solver);
  model.setLogLevel(0);
  model.setMaximumSeconds(seconds);
  model.setDblParam(CbcModel::CbcIntegerTolerance, kIntegerTolerance);
  model.setAllowableGap(kIntegerTolerance);
  model.setAllowableFractionGap(kIntegerTolerance);
  // Its objective is minus ours.
  if (cutoff > -kNoBound) model.setCutoff(-cutoff);
  StopWhenAsked handler(stop);
  model.passInEventHandler(&handler);
  EndTimeWhenAsked along(model, stop);
  dynamic_cast<OsiClpSolverInterface&>(*model.solver()).getModelPtr()->passInEventHandler(&along);
  CglProbing probing;
  probing.setUsingObjective(1);
  CglGomory gomory;
  CglMixedIntegerRounding2 rounding;
  model.addCutGenerator(&probing, -1, "probing");
  model.addCutGenerator(&gomory, -1, "gomory");
  model.addCutGenerator(&rounding, -1, "rounding");
  CbcRounding heuristic(model);
  model.addHeuristic(&heuristic);
  model.initialSolve();
  IntegerSolution found{.bound = kNoBound, .objective = -kNoBound, .point = {}};
  if (stop()) return found;
  model.branchAndBound();
  if (model.bestSolution() != nullptr) {
    found.objective = -model.getObjValue();
    found.point.assign(model.bestSolution(), model.bestSolution() + program.columns.size());
  }
  found.finished = model.isProvenOptimal() || model.isProvenInfeasible();
  if (found.finished) {
    found.bound = std::max(cutoff, found.objective);
  } else {
    found.bound = -model.getBestPossibleObjValue();
  }
  return found;
}

#else

bool has_integer_solver() { return false; }
std::string_view integer_solver_name() { return "none"; }
IntegerSolution solve(const IntegerProgram&, double, double, const std::function<bool()>&) {
  LIPSCOPE_CHECK(has_integer_solver());
  return {};
}

#endif

}  // namespace lipscope
