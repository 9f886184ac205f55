// SPDX-License-Identifier: Apache-2.0
// Proved operator norms of convolutions whose image is continued beyond its border by its own
// values: circular, reflect and replicate padding (ONNX: Pad with mode wrap, reflect or edge, then
// a Conv without padding). Theory: [norms-12] to [norms-14] in docs/theory/norms.md.
#pragma once

#include "linalg/norm/operator_norm.h"

namespace lipscope {

// What stands at position i outside an axis [0, n): circular x[i mod n]; reflect: mirrored at the
// first and the last cell, which are not repeated (again and again for wide pads; n = 1: that
// cell); replicate: the nearest cell.
enum class PaddingMode { kCircular, kReflect, kReplicate };

// The composed map image -> padded image -> convolution. `conv.input` is the image before padding,
// `conv.pad` the cells added before each axis. Cells added behind it need no number: every window
// of `conv.output` is complete, and a padded cell that no window sees does not matter. A negative
// pad starts the first window inside the image; a Pad that crops and continues what is left is a
// map of the cropped image.
struct PaddedConv {
  ConvShape conv;
  PaddingMode mode = PaddingMode::kCircular;
};

// Contract as conv_norm. 2->2 is exact up to rounding if the padding is circular and on every axis
// the windows start equally often at each place they can start at (stride 1: as many outputs as
// inputs, or a multiple).
[[nodiscard]] NormBracket padded_conv_norm(const PaddedConv& map, const double* weights,
                                           const double* radius, const NormPair& norms,
                                           const NormEffort& effort = {});

// The position in [0, n) whose value stands at position i. n > 0.
[[nodiscard]] Index padding_source(PaddingMode mode, Index i, Index n);

}  // namespace lipscope
