// SPDX-License-Identifier: Apache-2.0
// Constants computed again from how they were made, in rational arithmetic.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/exact_map.h"
#include "lipscope/constant.h"

namespace lipscope {

class ExactConstants {
 public:
  // The outputs of an operator at constants; where the operator does not tell, what its range
  // holds. Nothing where that would take too long.
  [[nodiscard]] std::optional<std::vector<ExactTensor>> outputs(
      const Op& op, std::span<const std::shared_ptr<const Constant>> inputs,
      std::span<const ValueType> out_types);
  [[nodiscard]] ExactTensor at(const Constant& constant);

 private:
  // Entries that may still be computed, and nodes in a row.
  Index left_ = Index{1} << 17;
  int deeper_ = 500;
  std::map<const Constant*, ExactTensor> known_;
};

// The numbers themselves, where they are numbers that a tensor can hold.
[[nodiscard]] std::optional<Tensor> settled(const Constant& constant);
// The same of integers found by an operator; they wrap around as their type does.
[[nodiscard]] std::optional<Tensor> settled_integers(const ExactTensor& exact,
                                                     const ValueType& type);

}  // namespace lipscope
