// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/quotients.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/oracle/functions.h"

namespace oracle {
namespace {

Number norm(const std::vector<Number>& v, double p) {
  Number sum(0);
  if (std::isinf(p)) {
    for (const Number& e : v) sum = max(sum, abs(e));
    return sum;
  }
  if (p == 1) {
    for (const Number& e : v) sum = sum + abs(e);
    return sum;
  }
  for (const Number& e : v) sum = sum + pow(abs(e), Number(p));
  return p == 2 ? sqrt(sum) : pow(sum, Number(1) / Number(p));
}

double norm(const Point& v, double p) {
  double sum = 0;
  double top = 0;
  for (const double e : v) top = std::max(top, std::abs(e));
  if (std::isinf(p) || top == 0 || !std::isfinite(top)) return top;
  for (const double e : v) sum += std::pow(std::abs(e) / top, p);
  return top * std::pow(sum, 1 / p);
}

// A vector whose product with v is its norm, of norm 1 in the dual one.
Point dual(const Point& v, double p) {
  Point u(v.size(), 0);
  double top = 0;
  for (const double e : v) top = std::max(top, std::abs(e));
  if (top == 0 || !std::isfinite(top)) return u;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double size = std::abs(v[i]) / top;
    const double entry = std::isinf(p) ? (size == 1 ? 1 : 0) : p == 1 ? 1 : std::pow(size, p - 1);
    u[i] = v[i] == 0 ? 0 : std::copysign(entry, v[i]);
    if (std::isinf(p) && entry == 1) break;
  }
  return u;
}

}  // namespace

Function::Function(const onnx::ModelProto& model, std::vector<std::string> moving,
                   Evaluator::Values others, const lipscope::Selection& selection)
    : evaluator_(model), others_(std::move(others)), selection_(selection) {
  for (const std::string& name : moving) {
    for (const auto& input : model.graph().input()) {
      if (input.name() != name) continue;
      Dims dims;
      for (const auto& d : input.type().tensor_type().shape().dim()) dims.push_back(d.dim_value());
      moving_.emplace_back(name, Array(input.type().tensor_type().elem_type(), dims));
      size_ += Array::to_size(count(dims));
    }
  }
}

Evaluator::Values Function::inputs(const Point& x) const {
  Evaluator::Values values = others_;
  std::size_t next = 0;
  for (const auto& [name, shape] : moving_) {
    Array array = shape;
    for (Number& e : array.entries) e = Number(x.at(next++));
    // Whole numbers of its type are what the file takes; others stand between them.
    const auto fits = [&](const Number& e) {
      return e.is_exact() && e.exact().get_den() == 1 && compare(wrapped(array.type, e), e) == 0;
    };
    array.real = !is_floating(array.type) && !std::ranges::all_of(array.entries, fits);
    values.insert_or_assign(name, std::move(array));
  }
  return values;
}

std::vector<Number> Function::selected(const Point& x) {
  const Array all = evaluator_.outputs(inputs(x)).at(0);
  if (selection_.output) return {all.at(*selection_.output)};
  if (selection_.margin)
    return {all.at(selection_.margin->first) - all.at(selection_.margin->second)};
  return all.entries;
}

Function::Ends Function::quotient(const Point& x, const Point& y, const lipscope::NormPair& norms) {
  Ends ends{};
  evaluator_.with_precision([&] {
    const std::vector<Number> fx = selected(x), fy = selected(y);
    std::vector<Number> change, step;
    for (std::size_t i = 0; i < fx.size(); ++i) {
      if (!fx.at(i).is_finite() || !fy.at(i).is_finite()) throw Undefined("not finite");
      change.push_back(fy.at(i) - fx.at(i));
    }
    for (std::size_t i = 0; i < x.size(); ++i) step.push_back(Number(y[i]) - Number(x[i]));
    const Number q = norm(change, norms.out.p()) / norm(step, norms.in.p());
    ends.lower = mpfr_get_d(q.lower().get(), MPFR_RNDD);
    ends.upper = mpfr_get_d(q.upper().get(), MPFR_RNDU);
  });
  return ends;
}

std::vector<Point> Function::slopes(const Point& x, const Point& steps) {
  std::vector<Point> columns;
  evaluator_.with_precision([&] {
    columns.clear();
    const std::vector<Number> fx = selected(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      Point moved = x, column;
      moved[i] += steps[i];
      const Number change = Number(moved[i]) - Number(x[i]);
      const bool moves = moved[i] != x[i];
      const std::vector<Number> fy = moves ? selected(moved) : fx;
      for (std::size_t k = 0; k < fx.size(); ++k) {
        const Number slope = moves ? (fy.at(k) - fx.at(k)) / change : Number(0);
        column.push_back(slope.is_finite() ? slope.middle() : 0);
      }
      columns.push_back(std::move(column));
    }
  });
  return columns;
}

bool inside(const lipscope::Domain& domain, const Point& x) {
  for (std::size_t i = 0; i < x.size() && domain.box; ++i) {
    if (!(x[i] >= domain.box->lower.doubles()[i] && x[i] <= domain.box->upper.doubles()[i])) {
      return false;
    }
  }
  if (!domain.ball) return true;
  std::vector<Number> offset;
  for (std::size_t i = 0; i < x.size(); ++i) {
    offset.push_back(Number(x[i]) - Number(domain.ball->center.doubles()[i]));
  }
  const double p = domain.ball->norm.p();
  const Number radius(domain.ball->radius);
  if (std::isinf(p)) return compare(norm(offset, p), radius) <= 0;
  // Powers of the norm, exactly.
  Number sum(0);
  for (const Number& e : offset) sum = sum + pow(abs(e), Number(p));
  return compare(sum, pow(radius, Number(p))) <= 0;
}

Point strongest_direction(const std::vector<Point>& columns, double p, double q) {
  const std::size_t n = columns.size(), m = n > 0 ? columns[0].size() : 0;
  const auto product = [&](const Point& d) {
    Point y(m, 0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < m; ++k) y[k] += columns[i][k] * d[i];
    }
    return y;
  };
  const double dual_p = p == 1 ? HUGE_VAL : std::isinf(p) ? 1 : p / (p - 1);
  Point best(n, 0);
  double best_value = -1;
  const auto climb = [&](Point d) {
    constexpr int kSteps = 12;
    for (int step = 0; step < kSteps; ++step) {
      const double size = norm(d, p);
      if (!(size > 0)) return;
      const Point y = product(d);
      const double value = norm(y, q) / size;
      if (value > best_value) {
        best_value = value;
        best = d;
      }
      const Point u = dual(y, q);
      Point back(n, 0);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < m; ++k) back[i] += columns[i][k] * u[k];
      }
      d = dual(back, dual_p);
    }
  };
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return norm(columns[i], q) > norm(columns[j], q);
  });
  constexpr std::size_t kStarts = 5;
  for (std::size_t k = 0; k < std::min(n, kStarts); ++k) {
    Point unit(n, 0);
    unit[order[k]] = 1;
    climb(unit);
  }
  for (std::size_t k = 0; k < std::min(m, kStarts); ++k) {
    Point row(n, 0);
    for (std::size_t i = 0; i < n; ++i) row[i] = columns[i][k];
    climb(dual(row, dual_p));
  }
  constexpr std::size_t kAllSigns = 6;
  for (std::size_t signs = 0; n <= kAllSigns && signs < (std::size_t{1} << n); ++signs) {
    Point d(n, 1);
    for (std::size_t i = 0; i < n; ++i) d[i] = ((signs >> i) & 1) != 0 ? -1 : 1;
    climb(d);
  }
  const double size = norm(best, HUGE_VAL);
  for (double& e : best) e = size > 0 ? e / size : 0;
  return best;
}

}  // namespace oracle
