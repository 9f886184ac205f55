// SPDX-License-Identifier: Apache-2.0
// Sliding windows of convolutions and pools: reads kernel_shape, strides, dilations, pads and
// auto_pad of a node and computes the output size.
//
// Output position o of an axis looks at the input positions
//   o * stride - pad_begin + k * dilation,   k = 0 .. kernel-1,
// those outside [0, input) being padding.
#pragma once

#include <span>
#include <vector>

#include "ops/onnx_node.h"

namespace lipscope {

// One entry per spatial axis in every field.
struct Window {
  std::vector<Index> kernel, stride, dilation, pad_begin, pad_end, input, output;

  [[nodiscard]] std::size_t rank() const noexcept { return kernel.size(); }
  // Input positions from the first to the last one a window looks at, along an axis.
  [[nodiscard]] Index extent(std::size_t axis) const {
    return (kernel[axis] - 1) * dilation[axis] + 1;
  }
};

enum class AutoPad { kNotSet, kValid, kSameUpper, kSameLower };

// The attributes alone: `input` and `output` stay empty, and so do the pads unless auto_pad is
// NOTSET. `kernel` is what the weights say, or empty (pools) when only kernel_shape tells. This is
// what a transposed convolution needs, whose output size has another formula.
[[nodiscard]] Window read_window_attributes(const OnnxNode& node, std::size_t rank,
                                            std::vector<Index> kernel, AutoPad& auto_pad);

// Everything, for convolutions and pools. A window that would start in the padding behind the input
// is dropped in ceil mode. A window that fits nowhere is malformed.
[[nodiscard]] Window read_window(const OnnxNode& node, std::span<const Index> spatial_input,
                                 std::vector<Index> kernel, bool ceil_mode = false);

}  // namespace lipscope
