// SPDX-License-Identifier: Apache-2.0
// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. With l the log-probabilities (the input,
// or its log-softmax along axis 1) and c the target class at a position:
//   loss = -weight[c] l[c] per position (0 at ignored targets), its sum, or its weighted mean.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lipscope/error.h"
#include "ops/elementwise/unary.h"
#include "ops/rows/rows.h"

namespace lipscope {
namespace {

enum class LossReduction { kNone, kSum, kMean };

class LossOp final : public Op {
 public:
  struct Options {
    bool softmax, weighted, log_prob;
    LossReduction reduction;
    std::optional<Index> ignored;
  };
  LossOp(RowSplit split, ValueType loss, Options options)
      : split_(split), loss_(std::move(loss)), o_(options) {}

  std::string_view name() const override {
    return o_.softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss";
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    if (o_.log_prob) return {loss_, in[0]};
    return {loss_};
  }

  void eval(const EvalArgs& args) const override {
    for_real(args.in[0].storage, [&](auto zero) {
      using T = decltype(zero);
      for (Index b = 0; b < args.count; ++b) {
        const T* x = args.in[0].sample<T>(b);
        const Index* targets = args.in[1].sample<Index>(b);
        const T* weights = o_.weighted ? args.in[2].sample<T>(b) : nullptr;
        T* loss = args.out[0].sample<T>(b);
        double sum = 0, total = 0;
        std::vector<double> logs(static_cast<std::size_t>(split_.length));
        for (Index row = 0; row < split_.rows(); ++row) {
          const Index start = split_.start(row);
          load(x + start, logs);
          const Index c = target(targets, row);
          const double weight = weight_of(weights, c);
          const double value =
              weight == 0 ? 0 : -weight * logs[static_cast<std::size_t>(std::max<Index>(c, 0))];
          sum += value;
          total += weight;
          if (o_.reduction == LossReduction::kNone) loss[row] = static_cast<T>(value);
          if (!o_.log_prob) continue;
          T* to = args.out[1].sample<T>(b) + start;
          for (std::size_t i = 0; i < logs.size(); ++i) {
            to[static_cast<Index>(i) * split_.inner] = static_cast<T>(logs[i]);
          }
        }
        if (o_.reduction == LossReduction::kSum) *loss = static_cast<T>(sum);
        if (o_.reduction == LossReduction::kMean) *loss = static_cast<T>(sum / total);
      }
    });
  }

  // With respect to the input alone; weights are constants here.
  bool differentiable() const override { return true; }

  void jvp(const JvpArgs& args) const override {
    for (const MutView& out : args.tangent_out) {
      if (out) fill_zero(out, args.count);
    }
    refuse_moving_weights(args.tangent_in.size() > 2 && args.tangent_in[2]);
    if (!args.tangent_in[0]) return;
    for (Index b = 0; b < args.count; ++b) {
      const double total = total_weight(args.in, b);
      std::vector<double> p, v(static_cast<std::size_t>(split_.length));
      for (Index row = 0; row < split_.rows(); ++row) {
        const Index start = split_.start(row);
        probabilities(args.in[0], b, start, p);
        copy(args.tangent_in[0].sample<double>(b) + start, v);
        const double mean = o_.softmax ? dot(p, v) : 0;
        const auto [c, weight] = at(args.in, b, row);
        if (args.tangent_out[0] && weight != 0) {
          double* to = args.tangent_out[0].sample<double>(b);
          to[o_.reduction == LossReduction::kNone ? row : 0] +=
              -weight / total * (v[static_cast<std::size_t>(c)] - mean);
        }
        if (!o_.log_prob || !args.tangent_out[1]) continue;
        double* to = args.tangent_out[1].sample<double>(b) + start;
        for (Index i = 0; i < split_.length; ++i) {
          to[i * split_.inner] = v[static_cast<std::size_t>(i)] - mean;
        }
      }
    }
  }

  void vjp(const VjpArgs& args) const override {
    refuse_moving_weights(args.grad_in.size() > 2 && args.grad_in[2]);
    const MutView grad = args.grad_in[0];
    if (!grad) return;
    fill_zero(grad, args.count);
    for (Index b = 0; b < args.count; ++b) {
      const double total = total_weight(args.in, b);
      std::vector<double> p, g(static_cast<std::size_t>(split_.length));
      for (Index row = 0; row < split_.rows(); ++row) {
        const Index start = split_.start(row);
        // The gradient with respect to the log-probabilities first.
        std::fill(g.begin(), g.end(), 0.0);
        if (o_.log_prob && args.grad_out[1]) copy(args.grad_out[1].sample<double>(b) + start, g);
        const auto [c, weight] = at(args.in, b, row);
        if (args.grad_out[0] && weight != 0) {
          const double* from = args.grad_out[0].sample<double>(b);
          g[static_cast<std::size_t>(c)] -=
              weight / total * from[o_.reduction == LossReduction::kNone ? row : 0];
        }
        probabilities(args.in[0], b, start, p);
        double sum = 0;
        for (const double entry : g) sum += entry;
        double* to = grad.sample<double>(b) + start;
        for (std::size_t i = 0; i < g.size(); ++i) {
          to[static_cast<Index>(i) * split_.inner] = g[i] - (o_.softmax ? p[i] * sum : 0);
        }
      }
    }
  }

 private:
  static void refuse_moving_weights(bool moving) {
    if (moving) {
      throw Error(ErrorCode::kUnsupported,
                  "a loss has no derivative with respect to its weights here");
    }
  }

  // The class at a row, or -1 where it is ignored.
  [[nodiscard]] Index target(const Index* targets, Index row) const {
    const Index c = targets[row];
    if (o_.ignored && c == *o_.ignored) return -1;
    if (c < 0 || c >= split_.length) {
      throw Error(ErrorCode::kShape,
                  fmt::format("{}: target {} of {} classes", name(), c, split_.length));
    }
    return c;
  }
  template <class T>
  static double weight_of(const T* weights, Index c) {
    if (c < 0) return 0;
    return weights != nullptr ? static_cast<double>(weights[c]) : 1;
  }
  [[nodiscard]] std::pair<Index, double> at(std::span<const ConstView> in, Index b,
                                            Index row) const {
    const Index c = target(in[1].sample<Index>(b), row);
    return {c, weight_of(o_.weighted ? in[2].sample<double>(b) : nullptr, c)};
  }
  // What the sum of losses is divided by.
  [[nodiscard]] double total_weight(std::span<const ConstView> in, Index b) const {
    if (o_.reduction != LossReduction::kMean) return 1;
    double total = 0;
    for (Index row = 0; row < split_.rows(); ++row) total += at(in, b, row).second;
    return total;
  }

  template <class T>
  void copy(const T* from, std::vector<double>& row) const {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<double>(from[static_cast<Index>(i) * split_.inner]);
    }
  }
  // A row of log-probabilities.
  template <class T>
  void load(const T* from, std::vector<double>& row) const {
    copy(from, row);
    if (o_.softmax) log_softmax(row);
  }
  void probabilities(const ConstView& x, Index b, Index start, std::vector<double>& p) const {
    p.resize(static_cast<std::size_t>(split_.length));
    load(x.sample<double>(b) + start, p);
    for (double& entry : p) entry = std::exp(entry);
  }

  RowSplit split_;
  ValueType loss_;
  Options o_;
};

Imported import_loss(const OnnxNode& node) {
  require_real(node);
  const ValueType &x = node.input(0), &targets = node.input(1);
  Shape expected = x.shape;
  if (expected.size() < 2) node.malformed("data of shape " + to_string(x.shape));
  expected.erase(expected.begin() + 1);
  if (is_floating(targets.type) || targets.shape != expected) {
    node.malformed(fmt::format("targets of shape {} for data of shape {}", to_string(targets.shape),
                               to_string(x.shape)));
  }
  const std::string reduction = node.text("reduction", "mean");
  LossOp::Options options{.softmax = node.type() == "SoftmaxCrossEntropyLoss",
                          .weighted = node.has_input(2),
                          .log_prob = node.wants_output(1),
                          .reduction = reduction == "none"  ? LossReduction::kNone
                                       : reduction == "sum" ? LossReduction::kSum
                                                            : LossReduction::kMean,
                          .ignored = {}};
  if (reduction != "none" && reduction != "sum" && reduction != "mean") {
    node.malformed("reduction '" + reduction + "'");
  }
  if (node.has("ignore_index")) options.ignored = node.integer("ignore_index");
  if (options.weighted &&
      (node.input(2).shape != Shape{x.shape[1]} || !is_floating(node.input(2).type))) {
    node.malformed("weights of shape " + to_string(node.input(2).shape));
  }
  ValueType loss{x.type, options.reduction == LossReduction::kNone ? expected : Shape{}};
  auto op = std::make_shared<LossOp>(RowSplit::of(x.shape, 1, 2), std::move(loss), options);
  return {op, options.weighted ? std::vector<Index>{0, 1, 2} : std::vector<Index>{0, 1}};
}

std::vector<OpCase> loss_cases(Rng& rng) {
  const auto text = [](const char* value) { return std::string(value); };
  const OpCase::Input weights{random_tensor(rng, {3}, 0.5, 2), true};
  return {
      {.inputs = {{random_tensor(rng, {4, 3})}, {Tensor::integers({4}, {0, 2, 1, 2})}}},
      {.inputs = {{random_tensor(rng, {2, 3, 2})},
                  {Tensor::integers({2, 2}, {0, 2, 1, 2})},
                  weights},
       .attributes = {{"reduction", text("none")}}},
      {.inputs = {{random_tensor(rng, {2, 3, 2})},
                  {Tensor::integers({2, 2}, {0, 2, -1, 2})},
                  weights},
       .attributes = {{"reduction", text("mean")}, {"ignore_index", Index{-1}}}},
      {.inputs = {{random_tensor(rng, {2, 3})}, {Tensor::integers({2}, {1, 1})}},
       .attributes = {{"reduction", text("sum")}}},
  };
}

}  // namespace

std::vector<OpKind> op_losses() {
  return {{"NegativeLogLikelihoodLoss", import_loss, loss_cases},
          {"SoftmaxCrossEntropyLoss", import_loss, loss_cases}};
}

}  // namespace lipscope
