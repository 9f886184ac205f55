// SPDX-License-Identifier: Apache-2.0
#include "robust/machine_constants.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/error.h"
#include "ops/box.h"
#include "ops/machine_map.h"

namespace lipscope {
namespace {

bool comes_from_numbers(const Folded& folded) {
  return std::ranges::any_of(folded.inputs,
                             [](const Value& v) { return is_floating(v.type.type); });
}

}  // namespace

const std::vector<double>& MachineConstants::errors(const Value& value) {
  const auto known = known_.find(value.constant.get());
  if (known != known_.end()) return known->second;
  std::vector<double> found;
  if (!is_floating(value.type.type)) {
    found.assign(static_cast<std::size_t>(value.constant->size()), 0.0);
  } else if (value.folded && comes_from_numbers(*value.folded)) {
    found = computed(value);
  } else {
    found = stored(value);
  }
  return known_.emplace(value.constant.get(), std::move(found)).first->second;
}

std::vector<double> MachineConstants::stored(const Value& value) const {
  const Box box = constant_box(value);
  std::vector<double> found;
  for (Index i = 0; i < box.lower.size(); ++i)
    found.push_back(machine_.stored(entry(box, i)).error);
  return found;
}

std::vector<double> MachineConstants::computed(const Value& value) {
  const Folded& folded = *value.folded;
  const auto* map = dynamic_cast<const MachineMap*>(folded.op.get());
  const auto step = map != nullptr ? map->machine_step(machine_, folded.output) : nullptr;
  if (step == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("constant '{}': no bound of its rounding is known, because operator {} "
                            "computes it; leave out --inference, or store its numbers in the model",
                            value.name, folded.op->name()));
  }
  std::vector<Box> boxes;
  for (const Value& input : folded.inputs) {
    boxes.push_back(is_floating(input.type.type) ? constant_box(input) : Box{});
  }
  std::vector<ComputedView> views(boxes.size());
  for (std::size_t k = 0; k < boxes.size(); ++k) {
    if (!is_floating(folded.inputs[k].type.type)) continue;
    views[k] = {boxes[k].lower.doubles(), boxes[k].upper.doubles(), errors(folded.inputs[k])};
  }
  const Box real = constant_box(value);
  std::vector<double> found(static_cast<std::size_t>(value.constant->size()), kInf);
  step->run(views, {real.lower.doubles(), real.upper.doubles(), {}}, found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Computed here{entry(real, static_cast<Index>(i)), found[i]};
    if (!(here.size() <= machine_.values().most)) found[i] = kInf;
  }
  return found;
}

}  // namespace lipscope
