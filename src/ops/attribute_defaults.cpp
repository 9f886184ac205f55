// SPDX-License-Identifier: Apache-2.0
#include "ops/attribute_defaults.h"

#include <limits>

namespace lipscope {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

constexpr AttributeDefault kDefaults[] = {
    {"BatchNormalization", "epsilon", 1, 1e-5F},
    {"Celu", "alpha", 1, 1},
    {"Clip", "max", 6, kLargest},
    {"Clip", "min", 6, -kLargest},
    {"Dropout", "ratio", 1, 0.5F},
    {"Elu", "alpha", 1, 1},
    {"Gemm", "alpha", 1, 1},
    {"Gemm", "beta", 1, 1},
    {"GlobalLpPool", "p", 1, 2},
    {"GroupNormalization", "epsilon", 1, 1e-5F},
    {"HardSigmoid", "alpha", 1, 0.2F},
    {"HardSigmoid", "beta", 1, 0.5F},
    {"InstanceNormalization", "epsilon", 1, 1e-5F},
    {"LRN", "alpha", 1, 1e-4F},
    {"LRN", "beta", 1, 0.75F},
    {"LRN", "bias", 1, 1},
    {"LayerNormalization", "epsilon", 1, 1e-5F},
    {"LeakyRelu", "alpha", 1, 0.01F},
    {"LpPool", "p", 1, 2},
    {"Pad", "value", 1, 0},
    {"RMSNormalization", "epsilon", 1, 1e-5F},
    {"Resize", "cubic_coeff_a", 1, -0.75F},
    {"Resize", "extrapolation_value", 1, 0},
    {"Selu", "alpha", 1, 1.6732F},
    {"Selu", "alpha", 6, 1.67326319217681884765625F},
    {"Selu", "gamma", 1, 1.0507F},
    {"Selu", "gamma", 6, 1.05070102214813232421875F},
    {"Shrink", "bias", 1, 0},
    {"Shrink", "lambd", 1, 0.5F},
    {"Swish", "alpha", 1, 1},
    {"ThresholdedRelu", "alpha", 1, 1},
    {"Upsample", "extrapolation_value", 1, 0},
};

}  // namespace

std::span<const AttributeDefault> attribute_defaults() { return kDefaults; }

std::optional<double> attribute_default(std::string_view op, std::string_view attribute,
                                        int opset) {
  std::optional<double> value;
  for (const AttributeDefault& row : kDefaults) {
    if (row.op == op && row.attribute == attribute && row.since <= opset) value = double{row.value};
  }
  return value;
}

}  // namespace lipscope
