// SPDX-License-Identifier: Apache-2.0
// Norms of Jacobians as the largest norm of some vectors: one search serves all of them.
#pragma once

#include <optional>

#include "lipscope/norm.h"
#include "net/layered_net.h"

namespace lipscope {

// How a norm of the Jacobian is the largest of the norms of parts of it: its rows, its columns, all
// sums of its rows or columns with signs [pieces-8], or the whole as one part.
struct NormDecomposition {
  bool transposed = false;  // rows are those of the transposed network
  bool whole = false;       // one part, l2 to l2
  bool signs = false;       // sums of all rows, the first with sign +
  double norm = 2;          // of a row: 1, 2 or infinity
  Index count = 1;
  // The whole from l-infinity, to l1 or both, by weights and its l2 norm [pieces-12].
  bool weighted = false;
  double from = 2, to = 2;  // then

  // Whether sums of the entries of rows may be bounded by weighted l2 norms, which takes a copy of
  // the network for each.
  [[nodiscard]] bool sums_by_weights() const { return !weighted && norm == 1 && count <= 64; }

  // The sign of row i in a part with signs.
  [[nodiscard]] static double sign(Index part, Index i) {
    return i > 0 && ((part >> (i - 1)) & 1) != 0 ? -1 : 1;
  }
};
// Nothing where the norms are no such largest one.
[[nodiscard]] std::optional<NormDecomposition> decomposition_of(const NormPair& norms, Index inputs,
                                                                Index outputs);

// The same, and by weights where there would be too many parts: what a search can be made of.
[[nodiscard]] std::optional<NormDecomposition> search_decomposition_of(const NormPair& norms,
                                                                       Index inputs, Index outputs);

// The network whose outputs' gradients are the parts; `net` itself, borrowed, where it is that.
class ComponentNet {
 public:
  ComponentNet(const LayeredNet& net, const NormDecomposition& parts);
  [[nodiscard]] const LayeredNet& get() const { return own_ ? *own_ : net_; }
  // Slopes in the order of its layers.
  [[nodiscard]] Slopes slopes(Slopes of_net) const;

 private:
  const LayeredNet& net_;
  bool transposed_;
  std::optional<LayeredNet> own_;
};

}  // namespace lipscope
