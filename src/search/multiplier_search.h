// SPDX-License-Identifier: Apache-2.0
// Multipliers for EuclideanBound by the low-rank dual of the bound: units carry vectors instead of
// numbers and turn them inside balls [global-3]. Plain arithmetic: what it finds is proved there.
#pragma once

#include <random>

#include "pieces/euclidean_bound.h"

namespace lipscope {

class MultiplierSearch {
 public:
  static constexpr std::size_t kRank = 4;
  using Block = std::vector<double>;  // kRank numbers per entry

  MultiplierSearch(const LayeredNet& net, std::optional<Index> row);

  void restrict_to(const Slopes& slopes);
  // One accelerated step; the value is that of the dual: no multipliers can prove much less.
  double step();
  [[nodiscard]] double value() const { return value_; }
  // Raised by (1 + margin)^(2 depth), which makes up for an unfinished search.
  [[nodiscard]] Multipliers multipliers(double margin) const;
  // How much the dual makes of the unit's freedom: 0 for one without any.
  [[nodiscard]] double weight(UnitId unit) const;

  // The gradient of the value by the values before the first units: kRank numbers for each.
  [[nodiscard]] const Block& first_gradient() const { return first_gradient_; }

  // Where the search is, to go on from there on a network that is restricted further.
  [[nodiscard]] std::vector<float> save() const;
  void load(const std::vector<float>& state);

 private:
  struct Map {
    Index rows, cols;
    std::vector<double> weights;
  };
  void forward();
  void backward();
  static void apply(const Map& map, const Block& from, Block& to);
  static void apply_back(const Map& map, const Block& from, Block& to);
  static void normalise(Block& block, bool as_whole);

  std::vector<Map> maps_;
  std::vector<std::vector<double>> middle_, reach_;
  std::vector<Block> turn_, last_turn_;  // 0: the input
  std::vector<Block> before_, after_, pull_;
  Block first_gradient_;
  double value_ = 0;
  int since_restart_ = 0;
};

}  // namespace lipscope
