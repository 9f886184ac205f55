// SPDX-License-Identifier: Apache-2.0
#include "graph/settle.h"

#include "base/checkpoint.h"

namespace lipscope {
namespace {

ExactTensor exact_entries(const Tensor& tensor) {
  ExactTensor entries;
  entries.reserve(static_cast<std::size_t>(tensor.size()));
  if (is_floating(tensor.type())) {
    for (const double x : tensor.doubles()) entries.emplace_back(x);
  } else {
    const bool wide = tensor.type() == ElementType::kUInt64;
    for (const Index x : tensor.ints()) {
      entries.emplace_back(Rational(wide ? BigInteger::from_unsigned(static_cast<std::uint64_t>(x))
                                         : BigInteger(x)));
    }
  }
  return entries;
}

ExactTensor box_entries(const Box& box) {
  ExactTensor entries;
  for (Index i = 0; i < box.lower.size(); ++i)
    entries.emplace_back(Interval{box.lower.at(i), box.upper.at(i)});
  return entries;
}

// Known to an operator that speaks of intervals of doubles.
Box outward_box(const ExactTensor& entries, const Constant& like) {
  if (!is_floating(like.type())) return like.box();
  Box box = like.box();
  const auto lower = box.lower.doubles(), upper = box.upper.doubles();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Interval hull = intersect(entries[i].hull(), {lower[i], upper[i]});
    if (!is_nan(hull)) lower[i] = hull.lo, upper[i] = hull.hi;
  }
  return box;
}

}  // namespace

ExactTensor ExactConstants::at(const Constant& constant) {
  if (const Tensor* exact = constant.exact()) return exact_entries(*exact);
  if (const auto found = known_.find(&constant); found != known_.end()) return found->second;
  ExactTensor entries;
  if (const Folded* folded = constant.folded()) {
    std::vector<ValueType> types;
    for (const auto& input : folded->inputs) types.push_back({input->type(), input->shape()});
    if (auto found = outputs(*folded->op, folded->inputs, folded->op->infer(types)))
      entries = std::move((*found)[folded->output]);
  }
  if (entries.empty()) entries = box_entries(constant.box());
  return known_[&constant] = std::move(entries);
}

std::optional<std::vector<ExactTensor>> ExactConstants::outputs(
    const Op& op, std::span<const std::shared_ptr<const Constant>> inputs,
    std::span<const ValueType> out_types) {
  for (const auto& input : inputs) left_ -= input->size();
  for (const ValueType& type : out_types) left_ -= element_count(type.shape);
  if (left_ < 0) return std::nullopt;
  checkpoint(1000);
  std::vector<ExactTensor> in;
  for (const auto& input : inputs) in.push_back(at(*input));
  std::vector<ExactTensor> out(out_types.size());
  if (const ExactMap* map = op.exact_map()) {
    std::vector<const ExactTensor*> args;
    for (const ExactTensor& x : in) args.push_back(&x);
    if (map->push_exact(args, out)) return out;
  }
  std::vector<Box> boxes;
  for (std::size_t k = 0; k < inputs.size(); ++k) boxes.push_back(outward_box(in[k], *inputs[k]));
  const auto range = op.range(boxes);
  if (!range) return std::nullopt;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = box_entries((*range)[i]);
  return out;
}

std::optional<Tensor> settled(const Constant& constant) {
  if (const Tensor* exact = constant.exact()) return *exact;
  ExactConstants constants;
  const ExactTensor entries = constants.at(constant);
  Tensor found = Tensor::zeros(constant.type(), constant.shape());
  const auto to = found.doubles();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Interval hull = entries[i].hull();
    if (!(hull.lo == hull.hi)) return std::nullopt;
    to[i] = hull.lo;
  }
  return found;
}

std::optional<Tensor> settled_integers(const ExactTensor& exact, const ValueType& type) {
  Tensor found = Tensor::zeros(type.type, type.shape);
  const auto to = found.ints();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const Rational* number = exact[i].number();
    if (number == nullptr || !number->is_integer()) return std::nullopt;
    to[i] = wrap_integer(type.type, static_cast<Index>(number->floor().low_bits()));
  }
  return found;
}

}  // namespace lipscope
