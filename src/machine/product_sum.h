// SPDX-License-Identifier: Apache-2.0
// Sums of products as machines compute them: matrix products and convolutions [robustness-6].
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "machine/step.h"

namespace lipscope {

// y_i = factor * sum over the products of row i of a[first] * b[second] + offset.factor *
// c[place_i].
struct ProductSum {
  std::size_t a = 0, b = 1;  // inputs
  double factor = 1;
  std::vector<std::size_t> begin = {0};  // of the rows
  std::vector<std::uint32_t> first, second;

  struct Offset {
    std::size_t input = 2;
    double factor = 1;
    std::vector<std::uint32_t> place;  // by row
  };
  std::optional<Offset> offset = {};

  [[nodiscard]] std::size_t rows() const { return begin.size() - 1; }
};

// Made from products in any order, counted before they are placed.
class ProductSumBuilder {
 public:
  explicit ProductSumBuilder(std::size_t rows) : sum_{}, next_(rows + 1) {}
  void count(std::size_t row) { ++next_[row + 1]; }
  void start();
  void place(std::size_t row, std::uint32_t first, std::uint32_t second);
  [[nodiscard]] ProductSum& sum() { return sum_; }

 private:
  ProductSum sum_;
  std::vector<std::size_t> next_;
};

// In any order, fused or not, in blocks or not; the factor before, between or after; the offset
// inside the sum or after it.
[[nodiscard]] std::unique_ptr<const MachineStep> product_sum_step(const Machine& machine,
                                                                  ProductSum sum);

}  // namespace lipscope
