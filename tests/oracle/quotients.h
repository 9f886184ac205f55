// SPDX-License-Identifier: Apache-2.0
// Difference quotients of a graph in exact arithmetic, and a search for large ones.
#pragma once

#include "lipscope/bound.h"
#include "lipscope/select.h"
#include "tests/oracle/evaluator.h"

namespace oracle {

using Point = std::vector<double>;

// A model as a function of the entries of its moving inputs, one after another.
class Function {
 public:
  // Inputs that move, in order; the others have to be given values.
  Function(const onnx::ModelProto& model, std::vector<std::string> moving, Evaluator::Values others,
           const lipscope::Selection& selection);

  std::size_t size() const { return size_; }
  // Lower and upper end of |f(y) - f(x)| / |y - x|, as doubles rounded outwards. Throws Undecided,
  // Undefined or Missing where there is none.
  struct Ends {
    double lower, upper;
  };
  Ends quotient(const Point& x, const Point& y, const lipscope::NormPair& norms);
  // The slopes along each axis between x and x + step, by columns.
  std::vector<Point> slopes(const Point& x, const Point& steps);
  const Evaluator::Values& others() const { return others_; }

 private:
  Evaluator::Values inputs(const Point& x) const;
  // At the precision of the moment: all entries, one of them, or a difference.
  std::vector<Number> selected(const Point& x);
  Evaluator evaluator_;
  std::vector<std::pair<std::string, Array>> moving_;
  Evaluator::Values others_;
  lipscope::Selection selection_;
  std::size_t size_ = 0;
};

// Whether a point is in the domain for certain.
bool inside(const lipscope::Domain& domain, const Point& x);

// A direction in which the matrix of columns stretches much: lp in, lq out.
Point strongest_direction(const std::vector<Point>& columns, double p, double q);

}  // namespace oracle
