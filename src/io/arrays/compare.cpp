// SPDX-License-Identifier: Apache-2.0
#include "lipscope/compare.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "io/arrays/entries.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

// The upper half of the float32, as the reference data of the ONNX backend tests has it; others
// round to nearest. The two differ by one unit in the last of eight bits.
double cut_to_bfloat16(double value) {
  if (std::isnan(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return double{std::bit_cast<float>(bits & 0xffff0000U)};
}

}  // namespace

Comparison compare_tensors(const std::string& name, const Tensor& output, const Tensor& reference,
                           double tolerance) {
  Comparison result;
  const auto differ = [&](std::string reason) {
    if (result.agrees) result.reason = fmt::format("output '{}': {}", name, reason);
    result.agrees = false;
  };
  // numpy has no bfloat16: references hold its bits as uint16.
  if (output.type() == ElementType::kBFloat16 && reference.type() == ElementType::kUInt16) {
    return compare_tensors(name, output,
                           decode_entries(encode_entries(reference), ElementType::kBFloat16,
                                          reference.shape(), std::endian::little),
                           tolerance);
  }
  if (output.size() != reference.size()) {
    differ(fmt::format("shape {} against {}", to_string(output.shape()),
                       to_string(reference.shape())));
    result.max_error = HUGE_VAL;
    return result;
  }
  double scale = 1;
  for (Index i = 0; i < reference.size(); ++i) {
    if (std::isfinite(reference.at(i))) scale = std::max(scale, std::abs(reference.at(i)));
  }
  for (Index i = 0; i < output.size(); ++i) {
    const double got = output.at(i), expected = reference.at(i);
    const bool same = got == expected || (std::isnan(got) && std::isnan(expected));
    const double error = same ? 0 : std::abs(got - expected) / scale;
    const bool finite = std::isfinite(got) && std::isfinite(expected);
    result.max_error = finite || same ? std::max(result.max_error, error) : HUGE_VAL;
    if (same || (finite && error <= tolerance)) continue;
    differ(fmt::format("entry {} is {}, expected {}", i, got, expected));
  }
  return result;
}

Comparison compare_outputs(std::span<const std::string> names, std::span<const Tensor> outputs,
                           std::span<const NamedTensor> references, double tolerance) {
  Comparison all;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::string numbered = fmt::format("output_{}", k);
    const Tensor* reference =
        outputs.size() == 1 && references.size() == 1 ? &references[0].tensor : nullptr;
    for (const NamedTensor& array : references) {
      if (array.name == numbered || array.name == names[k]) reference = &array.tensor;
    }
    if (reference == nullptr) {
      throw Error(ErrorCode::kBadFile,
                  fmt::format("the reference holds no array '{}' or '{}'", numbered, names[k]));
    }
    Comparison one = compare_tensors(names[k], outputs[k], *reference, tolerance);
    if (all.agrees && !one.agrees) {
      all.agrees = false;
      all.reason = std::move(one.reason);
    }
    all.max_error = std::max(all.max_error, one.max_error);
  }
  return all;
}

Tensor rounded_to_type(const Tensor& tensor) {
  Tensor result = tensor.with_precision(Precision::kFloat64);
  if (tensor.type() == ElementType::kFloat16) {
    for (double& entry : result.doubles()) entry = round_to(ElementType::kFloat16, entry);
  } else if (tensor.type() == ElementType::kBFloat16) {
    for (double& entry : result.doubles()) entry = cut_to_bfloat16(entry);
  } else {
    return tensor;
  }
  return result;
}

}  // namespace lipscope
