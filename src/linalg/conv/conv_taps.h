// SPDX-License-Identifier: Apache-2.0
// Which (position, tap) pairs meet each output (or input) position of a zero-padded convolution.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "linalg/conv/convolution.h"

namespace lipscope {

class TapLists {
 public:
  // from_output: for an output position the input positions it reads, with the tap; otherwise for
  // an input position the outputs that read it.
  TapLists(const ConvShape& shape, bool from_output) {
    for (std::size_t a = 0; a < 3; ++a) {
      const Index input = shape.input[a], output = shape.output[a];
      size_[a] = from_output ? output : input;
      other_[a] = from_output ? input : output;
      kernel_[a] = shape.kernel[a];
      lists_[a].resize(static_cast<std::size_t>(size_[a]));
      for (Index o = 0; o < output; ++o) {
        for (Index k = 0; k < shape.kernel[a]; ++k) {
          const Index i = o * shape.stride[a] - shape.pad[a] + k * shape.dilation[a];
          if (i < 0 || i >= input) continue;
          lists_[a][from_output ? o : i].push_back({from_output ? i : o, k});
        }
      }
    }
  }
  [[nodiscard]] Index positions() const { return size_[0] * size_[1] * size_[2]; }
  // Most pairs any position has.
  [[nodiscard]] Index most() const {
    Index product = 1;
    for (const auto& axis : lists_) {
      std::size_t longest = 0;
      for (const auto& list : axis) longest = longest > list.size() ? longest : list.size();
      product *= static_cast<Index>(longest);
    }
    return product;
  }
  // Positions with the same taps, as products of such classes of each axis. There are few, however
  // many positions: the taps of an axis change near its ends only.
  struct Classes {
    std::array<std::vector<Index>, 3> of_axis, examples;
    [[nodiscard]] Index count() const {
      return std::ssize(examples[0]) * std::ssize(examples[1]) * std::ssize(examples[2]);
    }
  };
  [[nodiscard]] Classes classes() const {
    Classes found;
    for (std::size_t a = 0; a < 3; ++a) {
      std::map<std::vector<Index>, Index> known;
      for (std::size_t at = 0; at < lists_[a].size(); ++at) {
        std::vector<Index> taps;
        for (const Pair& pair : lists_[a][at]) taps.push_back(pair.tap);
        const auto [kind, is_new] = known.emplace(std::move(taps), std::ssize(found.examples[a]));
        if (is_new) found.examples[a].push_back(static_cast<Index>(at));
        found.of_axis[a].push_back(kind->second);
      }
    }
    return found;
  }
  // A position of the class.
  [[nodiscard]] Index example(const Classes& classes, Index kind) const {
    const auto& [e0, e1, e2] = classes.examples;
    const Index n1 = std::ssize(e1), n2 = std::ssize(e2);
    return (e0[kind / n2 / n1] * size_[1] + e1[kind / n2 % n1]) * size_[2] + e2[kind % n2];
  }
  // body(class) of every position in turn.
  template <class Body>
  void for_each_class(const Classes& classes, Body&& body) const {
    const Index n1 = std::ssize(classes.examples[1]), n2 = std::ssize(classes.examples[2]);
    for (const Index c0 : classes.of_axis[0]) {
      for (const Index c1 : classes.of_axis[1]) {
        for (const Index c2 : classes.of_axis[2]) body((c0 * n1 + c1) * n2 + c2);
      }
    }
  }
  // body(other position, tap), both flattened.
  template <class Body>
  void for_each(Index at, Body&& body) const {
    const Index a2 = at % size_[2], a1 = at / size_[2] % size_[1], a0 = at / size_[2] / size_[1];
    for (const Pair& p0 : lists_[0][a0]) {
      for (const Pair& p1 : lists_[1][a1]) {
        for (const Pair& p2 : lists_[2][a2]) {
          body((p0.other * other_[1] + p1.other) * other_[2] + p2.other,
               (p0.tap * kernel_[1] + p1.tap) * kernel_[2] + p2.tap);
        }
      }
    }
  }

 private:
  struct Pair {
    Index other, tap;
  };
  std::array<Index, 3> size_{}, other_{}, kernel_{};
  std::array<std::vector<std::vector<Pair>>, 3> lists_;
};

}  // namespace lipscope
