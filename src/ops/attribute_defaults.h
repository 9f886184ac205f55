// SPDX-License-Identifier: Apache-2.0
// What an omitted floating attribute means. ONNX stores defaults as it stores attributes, in
// float32: the 1e-05 of a schema is float32(1e-05), and a proof is about that number.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace lipscope {

// Of the opsets from `since` on, until a later row of the same operator and attribute.
struct AttributeDefault {
  std::string_view op, attribute;
  int since;
  float value;
};

// One row for each floating attribute that has a default and that an importer reads. A test
// compares it with the schemas of the ONNX library.
[[nodiscard]] std::span<const AttributeDefault> attribute_defaults();
[[nodiscard]] std::optional<double> attribute_default(std::string_view op,
                                                      std::string_view attribute, int opset);

// What the function of MeanVarianceNormalization adds to the deviation.
inline constexpr float kMeanVarianceEpsilon = 1e-9F;

}  // namespace lipscope
