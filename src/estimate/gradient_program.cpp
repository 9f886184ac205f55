// SPDX-License-Identifier: Apache-2.0
#include "estimate/gradient_program.h"

#include <algorithm>
#include <cmath>

#include "base/rounding.h"

namespace lipscope {
namespace {

constexpr double kFree = kInf;

// A linear function of columns.
struct LinearForm {
  std::vector<IntegerProgram::Term> terms;
  double constant = 0;

  void add(double factor, const LinearForm& other) {
    if (factor == 0) return;
    constant += factor * other.constant;
    for (const auto& [column, f] : other.terms) terms.push_back({column, factor * f});
  }
};
using LinearForms = std::vector<LinearForm>;

LinearForm column_form(int column, double factor = 1) { return {{{column, factor}}, 0}; }

class ProgramWriter {
 public:
  ProgramWriter(const LayeredNet& net, const BoundedRegion& region, const Slopes& slopes)
      : net_(net), region_(region), slopes_(slopes), sides_(net.hidden()) {}

  GradientProgram write(const GradientTask& task) {
    write_forward();
    RowBound rows(net_, GradientNorm::kMax);
    const std::vector<Interval> gradient = rows.entries(slopes_, task.row);
    const LinearForms first = write_backward(task.row, rows.pulls());
    const DenseLayer& layer = net_.layers[0];
    const auto entry = [&](Index j) {
      LinearForm form;
      for (Index i = 0; i < layer.out; ++i)
        form.add(layer.row(i)[j], first[static_cast<std::size_t>(i)]);
      return form;
    };
    LinearForm objective;
    if (task.entry) {
      objective.add(task.entry->sign, entry(task.entry->input));
    } else {
      for (Index j = 0; j < layer.in; ++j)
        add_absolute(entry(j), gradient[static_cast<std::size_t>(j)], objective);
    }
    maximise(objective);
    return {std::move(program_), std::move(list_)};
  }

 private:
  using Row = IntegerProgram::Row;

  // low <= form <= high
  void require(LinearForm form, double low, double high) {
    const double constant = form.constant;
    program_.rows.push_back({merged(std::move(form.terms)), low - constant, high - constant});
  }

  static std::vector<IntegerProgram::Term> merged(std::vector<IntegerProgram::Term> terms) {
    std::ranges::sort(terms, {}, &IntegerProgram::Term::column);
    std::vector<IntegerProgram::Term> result;
    for (const IntegerProgram::Term& term : terms) {
      if (!result.empty() && result.back().column == term.column) {
        result.back().factor += term.factor;
      } else {
        result.push_back(term);
      }
    }
    return result;
  }

  int column_equal_to(const LinearForm& form, const Interval& range) {
    const int column = program_.add({range.lo, range.hi});
    LinearForm difference = column_form(column);
    difference.add(-1, form);
    require(std::move(difference), 0, 0);
    return column;
  }

  bool is_open_unit(std::size_t k, std::size_t i) const {
    return slopes_[k][i].lo != slopes_[k][i].hi;
  }

  void write_forward() {
    LinearForms values;
    for (std::size_t j = 0; j < region_.domain().inputs(); ++j)
      values.push_back(
          column_form(program_.add({region_.domain().low()[j], region_.domain().high()[j]})));
    for (std::size_t k = 0; k < net_.hidden(); ++k) {
      const DenseLayer& layer = net_.layers[k];
      LinearForms next(static_cast<std::size_t>(layer.out));
      sides_[k].assign(next.size(), -1);
      for (std::size_t i = 0; i < next.size(); ++i) {
        const double slope = slopes_[k][i].lo;
        if (!is_open_unit(k, i) && slope == 0) continue;
        LinearForm sum;
        sum.constant = midpoint(layer.bias[i]);
        for (std::size_t j = 0; j < values.size(); ++j)
          sum.add(layer.row(static_cast<Index>(i))[j], values[j]);
        const Interval range = region_.ranges()[k][i];
        const int z = column_equal_to(sum, range);
        if (!is_open_unit(k, i)) {
          next[i] = column_form(z, slope);
          continue;
        }
        next[i] = behind_open_unit(k, i, z, range);
      }
      values = std::move(next);
    }
  }

  // a z + (b - a) max(z, 0), with a binary that is 1 where z is positive.
  LinearForm behind_open_unit(std::size_t k, std::size_t i, int z, const Interval& range) {
    const double below = net_.layers[k].below[i], above = net_.layers[k].above[i];
    const int side = sides_[k][i] = program_.add({0, 1, 0, true});
    list_.push_back({{k, i}, side});
    const int positive = program_.add({0, std::max(range.hi, 0.0)});
    program_.rows.push_back({{{positive, 1}, {z, -1}}, 0, kFree});
    program_.rows.push_back({{{positive, 1}, {side, -range.hi}}, -kFree, 0});
    program_.rows.push_back({{{positive, 1}, {z, -1}, {side, -range.lo}}, -kFree, -range.lo});
    LinearForm form = column_form(z, below);
    form.add(above - below, column_form(positive));
    return form;
  }

  // The derivatives of the output by the values before the first units.
  LinearForms write_backward(Index row, const std::vector<std::vector<Interval>>& pulls) {
    const std::size_t hidden = net_.hidden();
    LinearForms before;  // by the values before the units of the layer above
    for (std::size_t k = hidden; k-- > 0;) {
      const DenseLayer& through = net_.layers[k + 1];
      LinearForms here(static_cast<std::size_t>(through.in));
      for (std::size_t i = 0; i < here.size(); ++i) {
        if (!is_open_unit(k, i) && slopes_[k][i].lo == 0) continue;
        LinearForm pull;
        if (k + 1 == hidden) {
          pull.constant = through.row(row)[i];
        } else {
          for (Index j = 0; j < through.out; ++j)
            pull.add(through.row(j)[i], before[static_cast<std::size_t>(j)]);
        }
        here[i] = times_slope(k, i, std::move(pull), pulls[k][i]);
      }
      before = std::move(here);
    }
    return before;
  }

  LinearForm times_slope(std::size_t k, std::size_t i, LinearForm pull, const Interval& range) {
    LinearForm result;
    if (!is_open_unit(k, i)) {
      result.add(slopes_[k][i].lo, pull);
      return result;
    }
    const double below = net_.layers[k].below[i], above = net_.layers[k].above[i];
    const int side = sides_[k][i];
    if (pull.terms.empty()) {
      result.constant = below * pull.constant;
      result.add((above - below) * pull.constant, column_form(side));
      return result;
    }
    // p = side * y by the planes of McCormick.
    const int y = column_equal_to(pull, range);
    const int p = program_.add({std::min(range.lo, 0.0), std::max(range.hi, 0.0)});
    program_.rows.push_back({{{p, 1}, {side, -range.hi}}, -kFree, 0});
    program_.rows.push_back({{{p, 1}, {side, -range.lo}}, 0, kFree});
    program_.rows.push_back({{{p, 1}, {y, -1}, {side, -range.lo}}, -kFree, -range.lo});
    program_.rows.push_back({{{p, 1}, {y, -1}, {side, -range.hi}}, -range.hi, kFree});
    result.add(below, column_form(y));
    result.add(above - below, column_form(p));
    return result;
  }

  // objective += |entry|
  void add_absolute(LinearForm entry, const Interval& range, LinearForm& objective) {
    if (range.lo >= 0) return objective.add(1, entry);
    if (range.hi <= 0) return objective.add(-1, entry);
    const int sign = program_.add({0, 1, 0, true});  // 1 where the entry counts as positive
    const int size = program_.add({0, magnitude(range)});
    LinearForm positive = column_form(size), negative = column_form(size);
    positive.add(-1, entry);
    positive.add(-2 * range.lo, column_form(sign));
    require(std::move(positive), -kFree, -2 * range.lo);
    negative.add(1, entry);
    negative.add(-2 * range.hi, column_form(sign));
    require(std::move(negative), -kFree, 0);
    objective.add(1, column_form(size));
  }

  // One column for the constant part, so that objectives are whole.
  void maximise(const LinearForm& objective) {
    for (const auto& [column, factor] : objective.terms)
      program_.columns[static_cast<std::size_t>(column)].objective += factor;
    program_.add({1, 1, objective.constant});
  }

  const LayeredNet& net_;
  const BoundedRegion& region_;
  const Slopes& slopes_;
  IntegerProgram program_;
  std::vector<std::vector<int>> sides_;  // columns; -1: none
  std::vector<GradientProgram::Side> list_;
};

}  // namespace

std::vector<GradientTask> gradient_tasks(const LayeredNet& net, const Slopes& slopes,
                                         GradientNorm norm) {
  std::vector<GradientTask> tasks;
  RowBound rows(net, norm);
  for (Index row = 0; row < net.outputs(); ++row) {
    if (norm == GradientNorm::kOne) {
      std::vector<float> signs;
      tasks.push_back({.row = row, .limit = rows.upper_bound(slopes, row, signs)});
      continue;
    }
    const std::vector<Interval> entries = rows.entries(slopes, row);
    for (std::size_t j = 0; j < entries.size(); ++j) {
      const auto input = static_cast<Index>(j);
      tasks.push_back({row, GradientTask::Entry{input, 1}, entries[j].hi});
      tasks.push_back({row, GradientTask::Entry{input, -1}, -entries[j].lo});
    }
  }
  std::ranges::sort(tasks, std::greater<>(), &GradientTask::limit);
  return tasks;
}

GradientProgram gradient_program(const LayeredNet& net, const BoundedRegion& region,
                                 const Slopes& slopes, const GradientTask& task) {
  return ProgramWriter(net, region, slopes).write(task);
}

}  // namespace lipscope
