// SPDX-License-Identifier: Apache-2.0
#include "ops/windows/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/room.h"

namespace lipscope {
namespace {

// Keeps every product below far away from overflow.
constexpr Index kLargestSide = Index{1} << 30;

std::vector<Index> read_window_list(const OnnxNode& node, std::string_view name, std::size_t length,
                                    Index smallest, Index fallback) {
  const auto given = node.integers(name);
  if (!given || (given->empty() && length > 0)) return std::vector<Index>(length, fallback);
  if (given->size() != length) {
    node.malformed(fmt::format("{} has {} entries, expected {}", name, given->size(), length));
  }
  for (const Index v : *given) {
    if (v < smallest || v > kLargestSide) node.malformed(fmt::format("{} holds {}", name, v));
  }
  return *given;
}

AutoPad read_auto_pad(const OnnxNode& node) {
  const std::string text = node.text("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::kNotSet;
  if (text == "VALID") return AutoPad::kValid;
  if (text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (text == "SAME_LOWER") return AutoPad::kSameLower;
  node.malformed("auto_pad is '" + text + "'");
}

// Pads and output size of one axis.
void place(const OnnxNode& node, Window& w, std::size_t a, AutoPad auto_pad, bool ceil_mode) {
  const Index in = w.input[a], stride = w.stride[a], extent = w.extent(a);
  if (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower) {
    w.output[a] = (in + stride - 1) / stride;
    const Index total = std::max<Index>(0, (w.output[a] - 1) * stride + extent - in);
    const Index less = total / 2;
    w.pad_begin[a] = auto_pad == AutoPad::kSameUpper ? less : total - less;
    w.pad_end[a] = total - w.pad_begin[a];
    return;
  }
  if (auto_pad == AutoPad::kValid) w.pad_begin[a] = w.pad_end[a] = 0;
  const Index room = in + w.pad_begin[a] + w.pad_end[a] - extent;
  if (room < 0) {
    node.malformed(fmt::format("a window of {} entries does not fit into {} padded by {} and {}",
                               extent, in, w.pad_begin[a], w.pad_end[a]));
  }
  w.output[a] = room / stride + 1;
  if (ceil_mode && auto_pad == AutoPad::kNotSet) {
    w.output[a] = (room + stride - 1) / stride + 1;
    if ((w.output[a] - 1) * stride >= in + w.pad_begin[a]) --w.output[a];
  }
}

}  // namespace

Window read_window_attributes(const OnnxNode& node, std::size_t rank, std::vector<Index> kernel,
                              AutoPad& auto_pad) {
  Window w;
  if (kernel.empty() && rank > 0) {
    if (!node.has("kernel_shape")) node.malformed("kernel_shape is missing");
    w.kernel = read_window_list(node, "kernel_shape", rank, 1, 1);
  } else {
    w.kernel = std::move(kernel);
    if (w.kernel.size() != rank) node.malformed("the kernel's rank differs from the input's");
    for (const Index k : w.kernel) {
      if (k < 1 || k > kLargestSide) node.malformed(fmt::format("the kernel has a side of {}", k));
    }
    const auto given = node.integers("kernel_shape");
    if (given && !given->empty() && *given != w.kernel) {
      node.malformed("kernel_shape disagrees with the weights");
    }
  }
  w.stride = read_window_list(node, "strides", rank, 1, 1);
  w.dilation = read_window_list(node, "dilations", rank, 1, 1);
  const std::vector<Index> pads = read_window_list(node, "pads", 2 * rank, 0, 0);
  auto_pad = read_auto_pad(node);
  if (auto_pad == AutoPad::kNotSet) {
    const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
    w.pad_begin.assign(pads.begin(), middle);
    w.pad_end.assign(middle, pads.end());
  } else if (std::any_of(pads.begin(), pads.end(), [](Index p) { return p != 0; })) {
    node.malformed("pads and auto_pad are both given");
  }
  return w;
}

Window read_window(const OnnxNode& node, std::span<const Index> spatial_input,
                   std::vector<Index> kernel, bool ceil_mode) {
  AutoPad auto_pad = AutoPad::kNotSet;
  const std::size_t rank = spatial_input.size();
  Window w = read_window_attributes(node, rank, std::move(kernel), auto_pad);
  w.input.assign(spatial_input.begin(), spatial_input.end());
  w.output.assign(rank, 0);
  w.pad_begin.resize(rank);
  w.pad_end.resize(rank);
  for (std::size_t a = 0; a < rank; ++a) {
    if (w.input[a] > kLargestSide) node.malformed("the input is too large");
    place(node, w, a, auto_pad, ceil_mode);
  }
  require_room(w.output);
  return w;
}

}  // namespace lipscope
