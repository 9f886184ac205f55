// SPDX-License-Identifier: Apache-2.0
#include "robust/machine_constants.h"

#include <fmt/format.h>

#include <algorithm>

#include "lipscope/error.h"
#include "ops/box.h"
#include "ops/facets/machine_map.h"

namespace lipscope {
namespace {

bool comes_from_numbers(const Folded& folded) {
  return std::ranges::any_of(folded.inputs,
                             [](const auto& input) { return is_floating(input->type()); });
}

}  // namespace

const std::vector<double>& MachineConstants::errors(const Constant& constant,
                                                    const std::string& name) {
  const auto known = known_.find(&constant);
  if (known != known_.end()) return known->second;
  std::vector<double> found;
  if (const Folded* folded = constant.folded()) {
    for (const auto& input : folded->inputs) {
      if (!is_floating(input->type())) (void)errors(*input, name);
    }
  }
  if (!is_floating(constant.type())) {
    if (constant.folded() != nullptr) require_decided(*constant.folded(), name);
    found.assign(static_cast<std::size_t>(constant.size()), 0.0);
  } else if (constant.folded() != nullptr && comes_from_numbers(*constant.folded())) {
    found = computed(constant, name);
  } else {
    found = stored(constant);
  }
  return known_.emplace(&constant, std::move(found)).first->second;
}

// Integers that depend on floating numbers are what they are in real arithmetic if these are exact.
void MachineConstants::require_decided(const Folded& folded, const std::string& name) {
  for (const auto& input : folded.inputs) {
    const std::vector<double>& off = errors(*input, name);
    if (std::ranges::all_of(off, [](double e) { return e == 0; })) continue;
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("constant '{}': operator {} makes whole numbers of numbers that the "
                    "format rounds; leave out --inference, or store its numbers in the model",
                    name, folded.op->name()));
  }
}

std::vector<double> MachineConstants::stored(const Constant& constant) const {
  const Box box = constant.box();
  std::vector<double> found;
  for (Index i = 0; i < box.lower.size(); ++i)
    found.push_back(machine_.stored(entry(box, i)).error);
  return found;
}

std::vector<double> MachineConstants::computed(const Constant& constant, const std::string& name) {
  const Folded& folded = *constant.folded();
  const MachineMap* map = folded.op->machine_map();
  const auto step = map != nullptr ? map->machine_step(machine_, folded.output) : nullptr;
  if (step == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("constant '{}': no bound of its rounding is known, because operator {} "
                            "computes it; leave out --inference, or store its numbers in the model",
                            name, folded.op->name()));
  }
  std::vector<Box> boxes;
  for (const auto& input : folded.inputs)
    boxes.push_back(is_floating(input->type()) ? input->box() : Box{});
  std::vector<ComputedView> views(boxes.size());
  for (std::size_t k = 0; k < boxes.size(); ++k) {
    if (!is_floating(folded.inputs[k]->type())) continue;
    views[k] = {boxes[k].lower.doubles(), boxes[k].upper.doubles(),
                errors(*folded.inputs[k], name)};
  }
  const Box real = constant.box();
  std::vector<double> found(static_cast<std::size_t>(constant.size()), kInf);
  step->run(views, {real.lower.doubles(), real.upper.doubles(), {}}, found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Computed here{entry(real, static_cast<Index>(i)), found[i]};
    if (!(here.size() <= machine_.values().most)) found[i] = kInf;
  }
  return found;
}

}  // namespace lipscope
