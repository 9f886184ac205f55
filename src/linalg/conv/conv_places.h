// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "linalg/conv/conv_taps.h"

namespace lipscope {

// put(output entry, input entry, weight) for every entry of the matrix of a convolution of one
// image that a weight stands in. No place comes twice.
template <class Put>
void for_each_conv_place(const ConvShape& s, const Put& put) {
  const TapLists taps(s, true);
  const Index ins = s.in_channels / s.groups, outs = s.out_channels / s.groups;
  const Index positions = s.output_size(), cells = s.input_size(), kernel = s.kernel_size();
  for (Index o = 0; o < s.out_channels; ++o) {
    const Index first = o / outs * ins;
    for (Index at = 0; at < positions; ++at) {
      taps.for_each(at, [&](Index cell, Index tap) {
        for (Index c = 0; c < ins; ++c)
          put(o * positions + at, (first + c) * cells + cell, (o * ins + c) * kernel + tap);
      });
    }
  }
}

}  // namespace lipscope
