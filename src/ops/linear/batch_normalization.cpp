// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/batch_normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "linalg/norm/operator_norm.h"
#include "machine/batch_norm.h"
#include "ops/box.h"
#include "ops/dispatch.h"
#include "ops/elementwise/unary.h"
#include "ops/facets/wide_map.h"
#include "ops/rows/rows.h"
#include "ops/training.h"

namespace lipscope {
namespace {

// y = (x - mean) * r * scale + bias with r = 1/sqrt(variance + epsilon), per channel.
// Inputs: x, scale, bias, mean, variance.
class BatchNormalizationOp final : public Op, public WideMap, public MachineMap {
 public:
  BatchNormalizationOp(RowSplit split, double epsilon) : split_(split), epsilon_(epsilon) {}
  [[nodiscard]] double epsilon() const { return epsilon_; }

  std::string_view name() const override { return "BatchNormalization"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override { return {in[0]}; }

  void eval(const EvalArgs& args) const override {
    for_real(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      for_each_sample(args.count, args.out[0].size, [&](Index b) {
        const auto at = [&](std::size_t k, Index c) {
          return static_cast<double>(args.in[k].sample<T>(b)[c]);
        };
        over_channels([&](Index c, Index begin, Index end) {
          const T* x = args.in[0].sample<T>(b);
          T* y = args.out[0].sample<T>(b);
          const T mean = static_cast<T>(at(3, c)), bias = static_cast<T>(at(2, c));
          const T factor = static_cast<T>(at(1, c) / std::sqrt(at(4, c) + epsilon_));
          for (Index i = begin; i < end; ++i) y[i] = (x[i] - mean) * factor + bias;
        });
      });
    });
  }

  bool differentiable() const override { return true; }

  void jvp(const JvpArgs& args) const override {
    const MutView out = args.tangent_out[0];
    if (!out) return;
    for_each_sample(args.count, out.size, [&](Index b) {
      const auto tangent = [&](std::size_t k, Index c) {
        return args.tangent_in[k] ? args.tangent_in[k].sample<double>(b)[c] : 0;
      };
      over_channels([&](Index c, Index begin, Index end) {
        const Channel p = channel(args.in, b, c);
        const double factor = p.scale * p.r;
        // Multiplies x - mean, and stands alone.
        const double slope = tangent(1, c) * p.r - 0.5 * factor * p.r * p.r * tangent(4, c);
        const double shift = tangent(2, c) - factor * tangent(3, c);
        const double* x = args.in[0].sample<double>(b);
        double* dy = out.sample<double>(b);
        for (Index i = begin; i < end; ++i) {
          dy[i] = factor * tangent(0, i) + slope * (x[i] - p.mean) + shift;
        }
      });
    });
  }

  void vjp(const VjpArgs& args) const override {
    for (const MutView& grad : args.grad_in) {
      if (grad) fill_zero(grad, args.count);
    }
    const ConstView g = args.grad_out[0];
    if (!g) return;
    for_each_sample(args.count, g.size, [&](Index b) {
      over_channels([&](Index c, Index begin, Index end) {
        const Channel p = channel(args.in, b, c);
        const double factor = p.scale * p.r;
        const double *x = args.in[0].sample<double>(b), *v = g.sample<double>(b);
        if (args.grad_in[0]) {
          double* gx = args.grad_in[0].sample<double>(b);
          for (Index i = begin; i < end; ++i) gx[i] = factor * v[i];
        }
        double sum = 0, along = 0;
        for (Index i = begin; i < end; ++i) sum += v[i], along += (x[i] - p.mean) * v[i];
        const auto add = [&](std::size_t k, double value) {
          if (args.grad_in[k]) args.grad_in[k].sample<double>(b)[c] += value;
        };
        add(1, p.r * along);
        add(2, sum);
        add(3, -factor * sum);
        add(4, -0.5 * factor * p.r * p.r * along);
      });
    });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (!std::all_of(in.begin(), in.end(), holds_doubles)) return std::nullopt;
    Box out = in[0];
    over_channels([&](Index c, Index begin, Index end) {
      const Interval scale = factor(in, c), mean = entry(in[3], c), bias = entry(in[2], c);
      for (Index i = begin; i < end; ++i) {
        const Interval y = (entry(in[0], i) - mean) * scale + bias;
        out.lower.doubles()[static_cast<std::size_t>(i)] = y.lo;
        out.upper.doubles()[static_cast<std::size_t>(i)] = y.hi;
      }
    });
    return {{std::move(out)}};
  }

  // Per channel a multiple of the identity in x, and one column in each parameter.
  std::optional<Gain> gain(const GainQuery& query) const override {
    const std::span<const Box> in = query.in;
    if (!std::all_of(in.begin(), in.end(), holds_doubles)) return std::nullopt;
    Gain gain{0, "linear-8"};
    if (is_point(in[static_cast<std::size_t>(query.wrt)])) return gain;
    std::vector<std::vector<double>> sizes(static_cast<std::size_t>(split_.length));
    over_channels([&](Index c, Index begin, Index end) {
      auto& column = sizes[static_cast<std::size_t>(c)];
      const Interval scale = factor(in, c), mean = entry(in[3], c);
      const Interval r = inverse_deviation(in, c);
      for (Index i = begin; i < end; ++i) {
        const Interval x = entry(in[0], i) - mean;
        const std::array<Interval, 5> slopes{scale, x * r, point(1), scale,
                                             x * scale * r * r * point(0.5)};
        column.push_back(magnitude(slopes[static_cast<std::size_t>(query.wrt)]));
      }
    });
    std::vector<double> channels;
    for (const auto& column : sizes) {
      channels.push_back(query.wrt == 0 ? diagonal_norm_up(column, query.norms)
                                        : pnorm_up(column, query.norms.out.p()));
    }
    gain.value = diagonal_norm_up(channels, query.norms);
    return gain;
  }
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    if (query.wrt != 0) return false;
    over_channels([&](Index c, Index begin, Index end) {
      const Interval scale = factor(query.in, c);
      for (Index i = begin; i < end; ++i) visit(i, i, scale.lo, scale.hi);
    });
    return true;
  }

  const MachineMap* machine_map() const override { return this; }
  std::unique_ptr<const MachineStep> machine_step(const Machine& machine,
                                                  std::size_t) const override {
    return batch_norm_step(machine, static_cast<std::size_t>(split_.length),
                           static_cast<std::size_t>(split_.inner), epsilon_);
  }

  const WideMap* wide_map() const override { return this; }
  // Of a moving x.
  bool push_wide(std::span<const WideTensor* const> in, std::span<WideTensor> out) const override {
    for (std::size_t k = 1; k < in.size(); ++k) {
      if (in[k]->moves()) return false;
    }
    out[0].resize(in[0]->value.size(), in[0]->moves());
    over_channels([&](Index c, Index begin, Index end) {
      const auto at = [&](std::size_t k) { return in[k]->value[static_cast<std::size_t>(c)]; };
      const Wide factor = inverse_sqrt(at(4) + Wide(epsilon_)) * at(1), mean = at(3), bias = at(2);
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const WideDual x = in[0]->at(i);
        out[0].set(i, {(x.value - mean) * factor + bias, x.tangent * factor});
      }
    });
    return true;
  }

 private:
  // 1 / sqrt(variance + epsilon) where that is defined.
  Interval inverse_deviation(std::span<const Box> in, Index c) const {
    const Interval r = point(1) / sqrt(entry(in[4], c) + point(epsilon_));
    return is_nan(r) ? kEntire : r;
  }
  Interval factor(std::span<const Box> in, Index c) const {
    const Interval f = entry(in[1], c) / sqrt(entry(in[4], c) + point(epsilon_));
    return is_nan(f) ? kEntire : f;
  }
  struct Channel {
    double scale, mean, r;
  };
  Channel channel(std::span<const ConstView> in, Index b, Index c) const {
    return {in[1].sample<double>(b)[c], in[3].sample<double>(b)[c],
            1 / std::sqrt(in[4].sample<double>(b)[c] + epsilon_)};
  }
  // body(channel, first entry, end) over a sample's contiguous runs of one channel.
  template <class Body>
  void over_channels(Body&& body) const {
    for (Index n = 0; n < split_.outer; ++n) {
      for (Index c = 0; c < split_.length; ++c) {
        const Index begin = (n * split_.length + c) * split_.inner;
        body(c, begin, begin + split_.inner);
      }
    }
  }

  RowSplit split_;
  double epsilon_;
};

Imported import_batch_normalization(const OnnxNode& node) {
  require_real(node);
  node.ignore({"momentum", "consumed_inputs"});
  if (const std::string why = training_obstacle(node); !why.empty()) node.unsupported(why);
  const Shape& x = node.input(0).shape;
  if (x.empty()) node.malformed("data of shape " + to_string(x));
  // A vector is a batch of single entries.
  RowSplit split = x.size() == 1 ? RowSplit{x[0], 1, 1} : RowSplit::of(x, 1, 2);
  if (node.opset() < 9 && node.integer("spatial", 1) == 0) {
    // Statistics of every entry.
    split = {split.outer, split.length * split.inner, 1};
  }
  for (const Index k : {1, 2, 3, 4}) {
    if (!is_floating(node.input(k).type) || element_count(node.input(k).shape) != split.length) {
      node.malformed(fmt::format("input {} has shape {}, expected {} entries", k,
                                 to_string(node.input(k).shape), split.length));
    }
  }
  auto op = std::make_shared<BatchNormalizationOp>(split, node.real("epsilon"));
  return {op, {0, 1, 2, 3, 4}};
}

std::vector<OpCase> batch_normalization_cases(Rng& rng) {
  const auto make = [&](Shape x, Shape c, bool fixed, Attributes attributes, int opset) {
    return OpCase{.inputs = {{random_tensor(rng, std::move(x))},
                             {random_tensor(rng, c), fixed},
                             {random_tensor(rng, c), fixed},
                             {random_tensor(rng, c), fixed},
                             {random_tensor(rng, c, 0.5, 2), fixed}},
                  .attributes = std::move(attributes),
                  .opset = opset};
  };
  return {
      make({2, 3, 4, 2}, {3}, true, {}, 15),
      make({2, 3, 2}, {3}, false, {{"epsilon", 0.1}, {"momentum", 0.5}}, 9),
      make({3, 4}, {4}, false, {{"spatial", Index{1}}, {"is_test", Index{1}}}, 6),
      make({2, 2, 3}, {2, 3}, false, {{"spatial", Index{0}}}, 7),
      make({0, 3, 2}, {3}, false, {}, 15),
  };
}

}  // namespace

// Parameters per entry (opset 8 and before, spatial = 0) do not have the shape of a channel vector,
// which is what users of this look at.
std::optional<double> batch_normalization_epsilon(const Op& op) {
  const auto* node = dynamic_cast<const BatchNormalizationOp*>(&op);
  if (node == nullptr) return std::nullopt;
  return node->epsilon();
}

std::vector<OpKind> op_batch_normalization() {
  return {{"BatchNormalization", import_batch_normalization, batch_normalization_cases}};
}

}  // namespace lipscope
