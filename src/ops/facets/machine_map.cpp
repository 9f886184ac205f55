// SPDX-License-Identifier: Apache-2.0
#include "ops/facets/machine_map.h"

#include <algorithm>

namespace lipscope {
namespace {

class CopyStep final : public MachineStep {
 public:
  CopyStep(const Machine& machine, Copies copies, double fill)
      : copies_(std::move(copies)), fill_(machine.stored(fill).error) {}

  void run(std::span<const ComputedView> in, const ComputedView&,
           std::span<double> error) const override {
    std::fill(error.begin(), error.end(), fill_);
    copies_([&](Index to, Index input, Index from) {
      error[static_cast<std::size_t>(to)] =
          in[static_cast<std::size_t>(input)].error[static_cast<std::size_t>(from)];
    });
  }

 private:
  Copies copies_;
  double fill_;
};

class SelectionStep final : public MachineStep {
 public:
  explicit SelectionStep(Copies candidates) : candidates_(std::move(candidates)) {}

  void run(std::span<const ComputedView> in, const ComputedView&,
           std::span<double> error) const override {
    std::fill(error.begin(), error.end(), 0.0);
    candidates_([&](Index to, Index input, Index from) {
      double& worst = error[static_cast<std::size_t>(to)];
      worst = std::max(worst,
                       in[static_cast<std::size_t>(input)].error[static_cast<std::size_t>(from)]);
    });
  }

 private:
  Copies candidates_;
};

}  // namespace

std::unique_ptr<const MachineStep> copy_step(const Machine& machine, Copies copies, double fill) {
  return std::make_unique<CopyStep>(machine, std::move(copies), fill);
}

std::unique_ptr<const MachineStep> selection_step(Copies candidates) {
  return std::make_unique<SelectionStep>(std::move(candidates));
}

}  // namespace lipscope
