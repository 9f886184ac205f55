// SPDX-License-Identifier: Apache-2.0
// Small random chains and the slow, obvious way to their constants.
#pragma once

#include <cmath>
#include <random>

#include "linalg/operator_norm.h"
#include "ops/elementwise.h"
#include "pieces/jacobian_bounder.h"
#include "pieces/signs.h"
#include "pieces/widest_point.h"
#include "tests/support/graph_maker.h"

namespace lipscope::testing_support {

inline Index pick_of(Rng& rng, std::uint64_t n) { return static_cast<Index>(rng() % n); }

// Dense layers with ReLU, LeakyReLU or Abs.
inline Graph random_pieces(Rng& rng, Index inputs, const std::vector<Index>& widths, Index outputs,
                           const std::vector<std::string>& names = {"Relu", "Relu", "LeakyRelu",
                                                                    "Abs"}) {
  GraphMaker m;
  ValueId x = m.input({1, inputs});
  for (std::size_t k = 0; k <= widths.size(); ++k) {
    const Index n = m.shape(x).back(), to = k < widths.size() ? widths[k] : outputs;
    x = m.add("Gemm", {x, m.weights(random_tensor(rng, {n, to}, -1, 1)),
                       m.weights(random_tensor(rng, {to}, -1, 1))});
    if (k < widths.size()) x = m.add(names[rng() % names.size()], {x});
  }
  return m.finish(x);
}

inline LayeredNet layered(const Graph& graph) {
  std::string reason;
  auto net = as_layered_net(graph, 1'000'000, reason);
  if (!net) throw std::runtime_error(reason);
  return *std::move(net);
}

// Values before the units, up to rounding.
inline std::vector<std::vector<double>> values_at(const LayeredNet& net, std::vector<double> x) {
  std::vector<std::vector<double>> values;
  for (std::size_t k = 0; k < net.hidden(); ++k) {
    const DenseLayer& layer = net.layers[k];
    std::vector<double> z, next;
    for (std::size_t i = 0; i < static_cast<std::size_t>(layer.out); ++i) {
      z.push_back(0.5 * (layer.bias[i].lo + layer.bias[i].hi));
      for (std::size_t j = 0; j < x.size(); ++j) z[i] += layer.row(static_cast<Index>(i))[j] * x[j];
      if (!std::isnan(layer.below[i])) {
        next.push_back(z[i] * (z[i] > 0 ? layer.above[i] : layer.below[i]));
        continue;
      }
      const Tensor at = Tensor::vector(std::vector<double>{z[i]});
      const Box box{at, at};
      next.push_back((*layer.phi[i]->range(std::span(&box, 1)))[0].lower.at(0));
    }
    values.push_back(std::move(z));
    x = std::move(next);
  }
  return values;
}

// The Jacobian for slopes that are single numbers, by rows; plain arithmetic.
inline std::vector<double> jacobian(const LayeredNet& net, const Slopes& slopes) {
  const Index n = net.inputs();
  std::vector<double> product(static_cast<std::size_t>(n * n));
  for (Index i = 0; i < n; ++i) product[static_cast<std::size_t>(i * (n + 1))] = 1;
  for (std::size_t k = 0; k < net.layers.size(); ++k) {
    const DenseLayer& layer = net.layers[k];
    std::vector<double> next(static_cast<std::size_t>(layer.out * n));
    for (Index i = 0; i < layer.out; ++i) {
      const double slope = k < slopes.size() ? slopes[k][static_cast<std::size_t>(i)].lo : 1;
      for (Index j = 0; j < layer.in; ++j) {
        for (Index c = 0; c < n; ++c)
          next[static_cast<std::size_t>(i * n + c)] +=
              slope * layer.row(i)[j] * product[static_cast<std::size_t>(j * n + c)];
      }
    }
    product = std::move(next);
  }
  return product;
}

inline NormBracket norm_of(const LayeredNet& net, const Slopes& slopes, const NormPair& norms) {
  const std::vector<double> j = jacobian(net, slopes);
  return matrix_norm({net.outputs(), net.inputs(), j.data()}, norms);
}

// The largest norm over all pieces that meet a box, by visiting every one: signs are tried unit by
// unit and kept while a linear program finds a point well inside.
class Enumeration {
 public:
  Enumeration(const LayeredNet& net, NormPair norms, std::vector<double> low,
              std::vector<double> high)
      : net_(net), norms_(norms), low_(std::move(low)), high_(std::move(high)) {}

  double largest() {
    signs_ = open_signs(net_);
    visit(0, 0);
    return largest_;
  }
  int pieces = 0;
  double thinnest = HUGE_VAL;  // the least slack of a piece that counts

 private:
  void visit(std::size_t layer, std::size_t place) {
    if (layer == net_.hidden()) {
      ++pieces;
      largest_ = std::max(largest_, norm_of(net_, slopes_of(net_, signs_), norms_).lower);
      return;
    }
    const bool last = place + 1 == signs_[layer].size();
    for (const std::int8_t sign : {std::int8_t{-1}, std::int8_t{1}}) {
      signs_[layer][place] = sign;
      const double slack = slack_so_far(layer, place);
      if (slack > 0) thinnest = std::min(thinnest, slack);
      if (slack > 1e-9) visit(last ? layer + 1 : layer, last ? 0 : place + 1);
    }
    signs_[layer][place] = 0;
  }

  double slack_so_far(std::size_t layer, std::size_t place) const {
    const std::size_t n = low_.size();
    std::vector<double> weights, offsets, before, shift;
    for (std::size_t k = 0; k <= layer; ++k) {
      const DenseLayer& from = net_.layers[k];
      std::vector<double> rows(static_cast<std::size_t>(from.out) * n), constants;
      for (std::size_t i = 0; i < static_cast<std::size_t>(from.out); ++i) {
        const double* w = from.row(static_cast<Index>(i));
        double constant = 0.5 * (from.bias[i].lo + from.bias[i].hi);
        for (std::size_t j = 0; j < static_cast<std::size_t>(from.in); ++j) {
          if (k == 0) {
            rows[i * n + j] = w[j];
            continue;
          }
          constant += w[j] * shift[j];
          for (std::size_t c = 0; c < n; ++c) rows[i * n + c] += w[j] * before[j * n + c];
        }
        constants.push_back(constant);
        if (k == layer && i > place) continue;
        for (std::size_t c = 0; c < n; ++c) weights.push_back(signs_[k][i] * rows[i * n + c]);
        offsets.push_back(signs_[k][i] * constant);
      }
      before = std::move(rows);
      shift = std::move(constants);
      if (k == layer) break;
      for (std::size_t i = 0; i < shift.size(); ++i) {
        const double slope = signs_[k][i] > 0 ? from.above[i] : from.below[i];
        shift[i] *= slope;
        for (std::size_t c = 0; c < n; ++c) before[i * n + c] *= slope;
      }
    }
    return widest_point({weights, offsets}, low_, high_, low_, true).slack;
  }

  const LayeredNet& net_;
  NormPair norms_;
  std::vector<double> low_, high_;
  Signs signs_;
  double largest_ = 0;
};

}  // namespace lipscope::testing_support
