// SPDX-License-Identifier: Apache-2.0
#include "graph/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/checkpoint.h"
#include "base/interval.h"
#include "graph/run_node.h"
#include "graph/settle.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

using Constants = std::span<const std::shared_ptr<const Constant>>;
constexpr Index kMostLoose = 1 << 10;
constexpr double kWorkPerFold = 1000, kWorkPerFoldedEntry = 20;  // operations

Box whole_box(const Tensor& like) {
  Box box{like, like};
  std::ranges::fill(box.lower.doubles(), -kInf);
  std::ranges::fill(box.upper.doubles(), kInf);
  return box;
}

// The integers of a range that holds one number in every entry.
std::optional<Tensor> decided(const Box& range, const ValueType& type) {
  Tensor found = Tensor::zeros(type.type, type.shape);
  const auto to = found.ints();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const double lower = range.lower.at(static_cast<Index>(i));
    const double upper = range.upper.at(static_cast<Index>(i));
    // Larger ones may stand for their neighbours.
    if (!(lower == upper && std::fabs(lower) < 0x1p53 && std::trunc(lower) == lower))
      return std::nullopt;
    to[i] = static_cast<Index>(lower);
  }
  return found;
}

// Wider than what is computed with a few roundings: than a millionth of the largest entry.
bool is_loose(const Box& box) {
  double width = 0, size = 0;
  const auto lower = box.lower.doubles(), upper = box.upper.doubles();
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if (!is_bounded({lower[i], upper[i]})) return true;
    width = std::max(width, upper[i] - lower[i]);
    size = std::max({size, std::fabs(lower[i]), std::fabs(upper[i])});
  }
  return width > 0x1p-20 * size;
}

class Folding {
 public:
  Folding(const std::shared_ptr<const Op>& op, Constants inputs,
          std::span<const ValueType> out_types)
      : op_(op), inputs_(inputs), types_(out_types) {
    double entries = 0;
    for (const auto& input : inputs) entries += static_cast<double>(input->size());
    for (const ValueType& type : out_types)
      entries += static_cast<double>(element_count(type.shape));
    checkpoint(kWorkPerFold + kWorkPerFoldedEntry * entries);
    std::vector<const Tensor*> near;
    for (const auto& input : inputs) near.push_back(&input->approximate());
    found_ = run_node(*op, near, out_types);
    std::vector<Box> boxes;
    for (const auto& input : inputs) boxes.push_back(input->box());
    range_ = op->range(boxes);
  }

  [[nodiscard]] std::shared_ptr<const Constant> output(std::size_t i) const {
    if (is_floating(types_[i].type)) return real(i);
    if (integers_are_exact()) return std::make_shared<const Constant>(found_[i], decision(i));
    auto known = range_ ? decided((*range_)[i], types_[i]) : std::nullopt;
    if (!known) {
      if (const auto exact = recomputed()) known = settled_integers((*exact)[i], types_[i]);
    }
    return known ? std::make_shared<const Constant>(std::move(*known), decision(i)) : nullptr;
  }

 private:
  // Integer arithmetic is exact; floating numbers have to be, and the operator must not round.
  [[nodiscard]] bool integers_are_exact() const {
    return std::ranges::all_of(inputs_, [&](const auto& input) {
      return !is_floating(input->type()) || (input->exact() != nullptr && op_->decides_exactly());
    });
  }

  [[nodiscard]] std::shared_ptr<const Constant> real(std::size_t i) const {
    Box box = range_ ? (*range_)[i] : whole_box(found_[i]);
    Tensor near = found_[i];
    // What depends on any number there is has no history.
    if (std::ranges::any_of(inputs_, is_free))
      return std::make_shared<const Constant>(std::move(near), std::move(box));
    bool sharp = std::ranges::all_of(inputs_, is_sharp);
    if (sharp && is_loose(box)) sharp = box.lower.size() <= kMostLoose && tighten(box, near, i);
    return std::make_shared<const Constant>(std::move(near), std::move(box), made(i, sharp));
  }
  static bool is_free(const std::shared_ptr<const Constant>& input) {
    return input->exact() == nullptr && input->folded() == nullptr;
  }
  static bool is_sharp(const std::shared_ptr<const Constant>& input) {
    return input->exact() != nullptr || input->folded()->sharp;
  }

  [[nodiscard]] std::shared_ptr<const Folded> made(std::size_t i, bool sharp = true) const {
    // Histories are walked and destroyed recursively.
    constexpr int kMostSteps = 1000;
    int steps = 1;
    for (const auto& input : inputs_) {
      if (input->folded() != nullptr) steps = std::max(steps, input->folded()->steps + 1);
    }
    if (steps > kMostSteps) {
      throw Error(
          ErrorCode::kUnsupported,
          fmt::format("a constant that takes more than {} nodes to compute; store it", kMostSteps));
    }
    return std::make_shared<const Folded>(
        Folded{op_, {inputs_.begin(), inputs_.end()}, i, steps, sharp});
  }
  // How integers came about that depend on floating numbers.
  [[nodiscard]] std::shared_ptr<const Folded> decision(std::size_t i) const {
    const bool decided_on_reals = std::ranges::any_of(inputs_, [](const auto& input) {
      return is_floating(input->type()) || input->folded() != nullptr;
    });
    return decided_on_reals ? made(i) : nullptr;
  }

  // A difference of numbers that are nearly equal, a step that rounding leaves open: intervals of
  // doubles say next to nothing, rational numbers may. Whether they do.
  bool tighten(Box& box, Tensor& near, std::size_t i) const {
    const auto exact = recomputed();
    if (!exact) return false;
    const auto lower = box.lower.doubles(), upper = box.upper.doubles(), at = near.doubles();
    bool sharp = true;
    for (std::size_t e = 0; e < lower.size(); ++e) {
      const RationalInterval& number = (*exact)[i][e];
      sharp = sharp && number.number() != nullptr;
      const Interval both = intersect(number.hull(), {lower[e], upper[e]});
      if (is_nan(both)) continue;
      lower[e] = both.lo, upper[e] = both.hi;
      if (is_bounded(both)) at[e] = midpoint(both);
    }
    return sharp || !is_loose(box);
  }

  [[nodiscard]] std::optional<std::vector<ExactTensor>> recomputed() const {
    return ExactConstants().outputs(*op_, inputs_, types_);
  }

  const std::shared_ptr<const Op>& op_;
  Constants inputs_;
  std::span<const ValueType> types_;
  std::vector<Tensor> found_;
  std::optional<std::vector<Box>> range_;
};

}  // namespace

std::vector<std::shared_ptr<const Constant>> fold(
    const std::shared_ptr<const Op>& op, std::span<const std::shared_ptr<const Constant>> inputs,
    std::span<const ValueType> out_types) {
  const Folding folding(op, inputs, out_types);
  std::vector<std::shared_ptr<const Constant>> outputs;
  for (std::size_t i = 0; i < out_types.size(); ++i) outputs.push_back(folding.output(i));
  return outputs;
}

}  // namespace lipscope
