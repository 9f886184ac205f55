// SPDX-License-Identifier: Apache-2.0
// Linear programs with some variables of 0 or 1, and a solver for them where one is built in.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

namespace lipscope {

// Maximise the objective.
struct IntegerProgram {
  struct Column {
    double low, high, objective = 0;
    bool binary = false;
  };
  struct Term {
    int column;
    double factor;
  };
  struct Row {
    std::vector<Term> terms;
    double low, high;
  };
  std::vector<Column> columns;
  std::vector<Row> rows;

  int add(Column column) {
    columns.push_back(column);
    return static_cast<int>(columns.size()) - 1;
  }
};

// All in floating point, with the tolerances below: nothing is proved.
struct IntegerSolution {
  bool finished = false;      // else stopped: the bound is what was left open
  double bound;               // no better objective exists
  double objective;           // of the best point found; -inf without one
  std::vector<double> point;  // may be empty
};

inline constexpr double kIntegerTolerance = 1e-9;

// Whether a solver is built in, and its name.
[[nodiscard]] bool has_integer_solver();
[[nodiscard]] std::string_view integer_solver_name();

// Only objectives above `cutoff` are of interest: else the bound is the cutoff. Ends after about
// that many seconds, or when `stop`, which is asked now and then, says so.
[[nodiscard]] IntegerSolution solve(const IntegerProgram& program, double cutoff, double seconds,
                                    const std::function<bool()>& stop);

}  // namespace lipscope
