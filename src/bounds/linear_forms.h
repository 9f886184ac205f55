// SPDX-License-Identifier: Apache-2.0
// What linear bounds are made of; for the files linear_*.cpp alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bounds/linear_bounds.h"
#include "bounds/row_cuts.h"

namespace lipscope {

// output(x) is at least below.offset + weights x and at most the same of `above`; what it may cost
// to compute with the weights in floating point is in `loss`, per unit of a weight of the output.
struct LinearBounds::Forms {
  struct Block {
    std::size_t input = 0;
    const SparseRows* below = nullptr;
    const SparseRows* above = nullptr;  // the same for an affine node
  };
  // Of a function of single entries: lines that hold as well, so that any mean does.
  struct OtherLines {
    std::vector<double> below, above;  // slopes
    std::vector<double> low, high, low_loss, high_loss;
    std::vector<double> split_loss;  // of cutting a weight in two
  };
  struct Output {
    std::vector<Block> blocks;
    std::vector<double> low, high;            // offsets
    std::vector<double> low_loss, high_loss;  // not negative
    std::optional<OtherLines> other = {};
  };
  std::vector<Output> outputs;
  std::vector<std::unique_ptr<SparseRows>> own;
  double work = 0;
};

// Functions that are at least sum over values of weights times the value, plus a constant: entry e
// of function r of a value is at [e * count + r].
struct LinearBounds::Rows {
  using Table = std::vector<std::vector<double>>;

  std::size_t count = 0;
  Table weights;                             // by value; empty: zero
  std::vector<double> constant, size, loss;  // size: of the terms of the constant
  double terms = 0;                          // of the sums
  const Table* mix = nullptr;                // by node: the share of its other lines, if any
  Table* kept = nullptr;                     // by node: where the weights of its output 0 go
  const RowCuts* cuts = nullptr;             // ranges that entries have in single functions

  Rows(std::size_t n, std::size_t values)
      : count(n), weights(values), constant(n), size(n), loss(n) {}

  // The functions have the weights `entry` on entry i of an output, whose positive and negative
  // ones are given besides: shares of them go to the other lines, on weights `to`, the rest stays.
  void add_shares(const Forms::OtherLines& other, std::size_t i, const double* entry,
                  const double* shares, double* to, std::vector<double>& positive,
                  std::vector<double>& negative);
  // Of the weights of one sign: their offsets, and what each may lose.
  void add_offsets(const std::vector<double>& side, double offset, double loss_of_one);
};

}  // namespace lipscope
