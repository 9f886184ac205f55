// SPDX-License-Identifier: Apache-2.0
// Small random chains and the slow, obvious way to their constants.
#pragma once

#include <cmath>
#include <random>

#include "linalg/norm/operator_norm.h"
#include "net/nets_for_test.h"
#include "ops/elementwise/elementwise.h"
#include "pieces/signs.h"
#include "search/jacobian_bounder.h"
#include "search/widest_point.h"
#include "tests/support/graph_maker.h"

namespace lipscope::testing_support {

inline Index pick_of(Rng& rng, std::uint64_t n) { return static_cast<Index>(rng() % n); }

// Functions with kinks elsewhere than at zero, with parameters for single entries, of several
// entries. Relu6, HardTanh, MaxMin and MaxPool stand for the nodes that exporters make of them.
inline const std::vector<std::string> kAllKinks = {"Relu",    "LeakyRelu",   "Abs",    "Clip",
                                                   "Relu6",   "HardSigmoid", "MaxMin", "HardTanh",
                                                   "MaxPool", "Highest",     "PRelu"};

inline ValueId add_dense(GraphMaker& m, Rng& rng, ValueId x, Index to) {
  const Index n = m.shape(x).back();
  const ValueId weights = m.weights(random_tensor(rng, {n, to}, -1, 1));
  return m.add("Gemm", {x, weights, m.weights(random_tensor(rng, {to}, -1, 1))});
}

// Units behind a dense layer z of x; those of several entries get another one.
inline ValueId add_units(GraphMaker& m, Rng& rng, const std::string& name, ValueId x, ValueId z) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  const Index n = m.shape(z).back();
  const auto clip = [&](double factor, double lower, double upper) {
    const ValueId wide = m.add("Mul", {z, m.weights({}, {factor})});
    return m.add("Clip", {wide}, {{"min", lower}, {"max", upper}}, 6);
  };
  if (name == "Relu6") return clip(6, 0, 6);
  if (name == "HardTanh") return clip(2, -1, 1);
  if (name == "Clip") {
    const double lower = 0.7 * uniform(rng), upper = lower + 0.6 + 0.5 * uniform(rng);
    if (rng() % 3 == 0) return m.add("Clip", {z}, {{"min", lower}}, 6);
    return rng() % 3 == 0 ? m.add("Clip", {z}, {{"max", upper}}, 6) : clip(1, lower, upper);
  }
  if (name == "HardSigmoid") {
    const double alpha = 1 + 0.9 * uniform(rng), beta = 0.5 + 0.5 * uniform(rng);
    return m.add(name, {z}, {{"alpha", alpha}, {"beta", beta}});
  }
  if (name == "Highest") return m.add("Max", {z, m.weights(random_tensor(rng, {1, n}, -1, 1))});
  if (name == "PRelu") return m.add(name, {z, m.weights(random_tensor(rng, {n}, -1, 2))});
  if (name != "MaxMin" && name != "MaxPool") return m.add(name, {z});
  const ValueId other = add_dense(m, rng, x, n);
  const Attributes axis{{"axis", Index{1}}};
  if (name == "MaxMin")
    return m.add("Concat", {m.add("Max", {z, other}), m.add("Min", {z, other})}, axis);
  const Attributes pairs{{"kernel_shape", std::vector<Index>{2}},
                         {"strides", std::vector<Index>{2}}};
  const ValueId row = m.add("Concat", {z, other}, axis);
  const ValueId pooled = m.add(name, {m.add("Reshape", {row, m.integers({1, 1, 2 * n})})}, pairs);
  return m.add("Reshape", {pooled, m.integers({1, n})});
}

// Dense layers with ReLU, LeakyReLU or Abs, or others.
inline Graph random_pieces(Rng& rng, Index inputs, const std::vector<Index>& widths, Index outputs,
                           const std::vector<std::string>& names = {"Relu", "Relu", "LeakyRelu",
                                                                    "Abs"}) {
  GraphMaker m;
  ValueId x = m.input({1, inputs});
  for (const Index width : widths) {
    const ValueId z = add_dense(m, rng, x, width);
    x = add_units(m, rng, names[rng() % names.size()], x, z);
  }
  return m.finish(add_dense(m, rng, x, outputs));
}

inline LayeredNet layered(const Graph& graph) {
  auto net = layered_net_of(graph);
  if (!net) throw std::runtime_error(net.reason());
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
      if (!layer.form(i).curved()) {
        next.push_back(plain_value(layer.form(i), z[i]));
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

// The largest norm over all pieces that meet a box, by visiting every one: pieces are tried unit by
// unit and kept while a linear program finds a point well inside.
class Enumeration {
 public:
  Enumeration(const LayeredNet& net, NormPair norms, std::vector<double> low,
              std::vector<double> high)
      : net_(net), norms_(norms), low_(std::move(low)), high_(std::move(high)) {}

  double largest() {
    spans_ = open_spans(net_);
    visit(0, 0);
    return largest_;
  }
  int pieces = 0;
  double thinnest = HUGE_VAL;  // the least slack of a piece that counts

 private:
  void visit(std::size_t layer, std::size_t place) {
    if (layer == net_.hidden()) {
      ++pieces;
      largest_ = std::max(largest_, norm_of(net_, slopes_of(net_, spans_), norms_).lower);
      return;
    }
    const bool last = place + 1 == spans_[layer].size();
    const auto next = [&] { visit(last ? layer + 1 : layer, last ? 0 : place + 1); };
    const UnitForm form = net_.layers[layer].form(place);
    if (form.below == form.above) return next();
    const PieceSpan all = spans_[layer][place];
    for (std::size_t piece = 0; piece < form.pieces(); ++piece) {
      spans_[layer][place] = {piece, piece};
      const double slack = slack_so_far(layer, place);
      if (slack > 0) thinnest = std::min(thinnest, slack);
      if (slack > 1e-9) next();
    }
    spans_[layer][place] = all;
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
        const UnitForm form = from.form(i);
        const auto [first, past] = spans_[k][i];
        const auto side = [&](double sign, std::size_t kink) {
          for (std::size_t c = 0; c < n; ++c) weights.push_back(sign * rows[i * n + c]);
          offsets.push_back(sign * (constant - midpoint(form.kink(kink))));
        };
        if (first > 0) side(1, first - 1);
        if (past + 1 < form.pieces()) side(-1, past);
      }
      before = std::move(rows);
      shift = std::move(constants);
      if (k == layer) break;
      for (std::size_t i = 0; i < shift.size(); ++i) {
        const auto [slope, offset] = from.form(i).piece(spans_[k][i].first);
        shift[i] = slope * shift[i] + midpoint(offset);
        for (std::size_t c = 0; c < n; ++c) before[i * n + c] *= slope;
      }
    }
    return widest_point({weights, offsets}, low_, high_, low_, true).slack;
  }

  const LayeredNet& net_;
  NormPair norms_;
  std::vector<double> low_, high_;
  Spans spans_;
  double largest_ = 0;
};

}  // namespace lipscope::testing_support
