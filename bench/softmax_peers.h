// SPDX-License-Identifier: Apache-2.0
// The softmax of other libraries, for bench_softmax. Each is there only if it was installed.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

struct SoftmaxPeer {
  std::string name;
  // Prepares rows x length floats from x to y; the result runs it.
  std::function<std::function<void()>(const float* x, float* y, std::size_t rows,
                                      std::size_t length)>
      prepare;
};

std::vector<SoftmaxPeer> softmax_peers();
