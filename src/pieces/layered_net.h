// SPDX-License-Identifier: Apache-2.0
// A network as a chain of dense layers, made for searches that look at it many thousand times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/interval.h"
#include "lipscope/proof.h"
#include "lipscope/query.h"
#include "pieces/unit_form.h"

namespace lipscope {

struct SdpNetwork;

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

// Weights of the largest chain that is made for proofs by cases, by those who find them and by
// those who check them.
inline constexpr Index kMostPieceWeights = 20'000'000;

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

// The same function everywhere. Nothing, and `reason` set, for a graph of another form or one whose
// chain would have more than `most` weights. Borrows the graph's operators.
[[nodiscard]] std::optional<LayeredNet> as_layered_net(const Graph& graph, Index most,
                                                       std::string& reason);
// Its two steps.
[[nodiscard]] std::optional<SdpNetwork> network_with_biases(const Graph& graph,
                                                            std::string& reason);
[[nodiscard]] std::optional<LayeredNet> as_layered_net(const SdpNetwork& net, Index most,
                                                       std::string& reason);

// The network whose Jacobians are the transposed ones; it has no biases.
[[nodiscard]] LayeredNet transposed(const LayeredNet& net);

}  // namespace lipscope
