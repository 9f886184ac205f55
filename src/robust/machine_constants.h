// SPDX-License-Identifier: Apache-2.0
// Constants of a graph as a machine has them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lipscope/graph.h"
#include "machine/arithmetic.h"

namespace lipscope {

// Numbers of the file are rounded to the format; what the graph computes from them is computed in
// the format, too, by the runtime or by whoever prepared the model for it.
class MachineConstants {
 public:
  explicit MachineConstants(const Machine& machine) : machine_(machine) {}

  // How far the entries of a constant can be off; zero for integers. Throws kUnsupported where it
  // is computed by an operator whose rounding is not known; `name` is for that message.
  const std::vector<double>& errors(const Constant& constant, const std::string& name);

 private:
  void require_decided(const Folded& folded, const std::string& name);
  [[nodiscard]] std::vector<double> stored(const Constant& constant) const;
  [[nodiscard]] std::vector<double> computed(const Constant& constant, const std::string& name);

  Machine machine_;
  std::map<const Constant*, std::vector<double>> known_;
};

}  // namespace lipscope
