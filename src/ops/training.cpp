// SPDX-License-Identifier: Apache-2.0
#include "ops/training.h"

namespace lipscope {
namespace {

bool is_constant_number(const OnnxNode& node, Index k) {
  return node.is_constant(k) && node.constant(k).size() == 1;
}

// Before opset 7 is_test tells, from 12 on an input.
bool drops_entries(const OnnxNode& node) {
  if (node.opset() >= 12) {
    const bool training = is_constant_number(node, 2) && node.constant(2).at(0) != 0;
    return training && !(is_constant_number(node, 1) && node.constant(1).at(0) == 0);
  }
  return node.opset() < 7 && node.integer("is_test", 0) == 0 && node.real("ratio") != 0;
}

// Before opset 7 is_test tells, from 14 on training_mode, and in between the number of outputs.
bool takes_statistics(const OnnxNode& node) {
  for (Index k = 1; k < node.num_outputs(); ++k) {
    if (node.wants_output(k)) return true;
  }
  if (node.opset() < 7) return node.integer("is_test", 0) == 0;
  return node.opset() >= 14 && node.integer("training_mode", 0) != 0;
}

}  // namespace

std::string training_obstacle(const OnnxNode& node) {
  if (node.type() == "Dropout" && drops_entries(node))
    return "training mode drops random entries; export the model for inference";
  if (node.type() == "BatchNormalization" && takes_statistics(node))
    return "training mode takes the statistics of the batch; export the model for inference";
  return {};
}

}  // namespace lipscope
