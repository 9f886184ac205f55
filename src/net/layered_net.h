// SPDX-License-Identifier: Apache-2.0
// A network as a chain of dense layers, made for searches that look at it many thousand times.
#pragma once

#include <memory>
#include <vector>

#include "base/expected.h"
#include "base/interval.h"
#include "lipscope/proof.h"
#include "net/limits.h"
#include "net/unit_form.h"

namespace lipscope {

struct UnitNetwork;

// z = W x + b, then one function per entry. Entries of earlier layers that later ones need pass
// through as units of slope 1.
struct DenseLayer {
  Index in = 0, out = 0;
  std::vector<double> weights, radius;  // out x in; the true weight is within the radius (empty: 0)
  std::vector<Interval> bias;
  // Slopes below and above zero; both NaN for a unit of another form. All empty for the last layer.
  std::vector<double> below, above;
  std::vector<Interval> slopes;         // everywhere
  std::vector<const Elementwise*> phi;  // null where the slopes say all
  // Of units of another form; empty where there are none.
  std::vector<std::shared_ptr<const LinearPieces>> linear = {};

  [[nodiscard]] UnitForm form(std::size_t i) const {
    return {below[i], above[i], slopes[i], phi[i], linear.empty() ? nullptr : linear[i]};
  }
  void add_unit(const UnitForm& form);
  [[nodiscard]] const double* row(Index i) const { return weights.data() + i * in; }
  [[nodiscard]] const double* radius_row(Index i) const {
    return radius.empty() ? nullptr : radius.data() + i * in;
  }
};

struct LayeredNet {
  std::vector<DenseLayer> layers;

  [[nodiscard]] Index inputs() const { return layers.front().in; }
  [[nodiscard]] Index outputs() const { return layers.back().out; }
  [[nodiscard]] std::size_t hidden() const { return layers.size() - 1; }
  [[nodiscard]] Index size() const;  // weights
  // No unit has curves; and each is linear on both sides of zero.
  [[nodiscard]] bool piecewise_linear() const;
  [[nodiscard]] bool kinks_at_zero() const;
};

// One interval per unit, by layer: where its slope lies.
using Slopes = std::vector<std::vector<Interval>>;

// The same function everywhere, of a network read with biases. Nothing where a bias is not finite
// or the chain would have more than `most` weights. Borrows the graph's operators.
[[nodiscard]] Expected<LayeredNet> as_layered_net(const UnitNetwork& net,
                                                  Index most = kMostChainWeights);
// Weights it has or would have.
[[nodiscard]] Index chain_size(const UnitNetwork& net);
[[nodiscard]] Reason too_large_a_chain(Index most);

// The network whose Jacobians are the transposed ones; it has no biases.
[[nodiscard]] LayeredNet transposed(const LayeredNet& net);

}  // namespace lipscope
