// SPDX-License-Identifier: Apache-2.0
#include "robust/logit_ranges.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/parallel.h"
#include "base/rounding.h"
#include "bounds/boxes.h"
#include "linalg/tensor/row_matrix.h"
#include "net/small.h"
#include "ops/elementwise/elementwise.h"

namespace lipscope {
namespace {

// Values of samples side by side, each within its radius of the true one: entry by entry, those of
// all samples together.
struct Rounded {
  std::vector<double> middle, radius;
};

// Zeros are left out where most weights are.
RowMatrix rows_of(const std::vector<double>& entries, Index rows, Index cols) {
  constexpr double kSparse = 0.3;
  RowMatrix all{rows, cols, entries, {}, {}, {}};
  const auto zeros = std::ranges::count(entries, 0.0);
  if (static_cast<double>(std::ssize(entries) - zeros) > kSparse * static_cast<double>(rows * cols))
    return all;
  RowMatrix some{rows, cols, {}, {}, {0}, {}};
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) {
      const double w = entries[to_size(i * cols + j)];
      if (w == 0) continue;
      some.weights.push_back(w);
      some.columns.push_back(static_cast<std::int32_t>(j));
    }
    some.begin.push_back(some.weights.size());
  }
  return some;
}

RowMatrix absolute(RowMatrix rows) {
  for (double& w : rows.weights) w = std::fabs(w);
  return rows;
}

struct LayerRows {
  const DenseLayer* layer;
  RowMatrix weights, sizes, radius;  // sizes: |W|; no radius: all are zero
};

// z = W x + b, samples side by side. The products are summed in any order.
Rounded apply_weights(const LayerRows& rows, const Rounded& x, Index count) {
  const Index n = rows.layer->out, m = rows.layer->in;
  const double g = 2 * gamma_up(to_size(m) + 8);
  Rounded z{std::vector<double>(to_size(count * n)), std::vector<double>(to_size(count * n))};
  std::vector<double> doubt(x.middle.size());
  // What a product below all normal numbers loses may meet a large weight.
  for (std::size_t i = 0; i < doubt.size(); ++i) {
    const double size = std::fabs(x.middle[i]);
    doubt[i] = x.radius[i] + g * size + (size > 0 ? 2 * kMinSubnormal : 0);
  }
  add_product(rows.weights, x.middle.data(), count, z.middle.data());
  add_product(rows.sizes, doubt.data(), count, z.radius.data());
  if (rows.radius.rows > 0) {
    for (std::size_t i = 0; i < doubt.size(); ++i) doubt[i] = x.radius[i] + std::fabs(x.middle[i]);
    add_product(rows.radius, doubt.data(), count, z.radius.data());
  }
  for (Index i = 0; i < n; ++i) {
    const Interval bias = rows.layer->bias[to_size(i)];
    const double b = midpoint(bias), off = radius_up(bias);
    for (Index s = 0; s < count; ++s) {
      const std::size_t e = to_size(i * count + s);
      const double sum = z.middle[e] + b;
      // The factor covers the rounding of the sums of positive numbers.
      const double spread = mul_up(z.radius[e], 1 + 0x1p-20);
      const double rounded = add_up(mul_up(0x1p-50, std::fabs(sum)), underflow_up(std::fabs(sum)));
      z.middle[e] = sum;
      z.radius[e] = add_up(add_up(add_up(spread, off), rounded), 0x1p-1000);
    }
  }
  return z;
}

void apply_functions(const DenseLayer& layer, Rounded& z, Index count) {
  for (Index i = 0; i < layer.out; ++i) {
    const double a = layer.below[to_size(i)], b = layer.above[to_size(i)];
    for (Index s = 0; s < count; ++s) {
      const std::size_t e = to_size(i * count + s);
      double &middle = z.middle[e], &radius = z.radius[e];
      if (!std::isnan(a)) {
        middle *= middle > 0 ? b : a;
        radius = add_up(mul_up(radius, std::max(std::fabs(a), std::fabs(b))),
                        add_up(mul_up(0x1p-52, std::fabs(middle)), 0x1p-1000));
        continue;
      }
      const Box box{Tensor::vector(std::vector<double>{sub_down(middle, radius)}),
                    Tensor::vector(std::vector<double>{add_up(middle, radius)})};
      const auto range = layer.phi[to_size(i)]->range(std::span(&box, 1));
      const Interval found =
          range ? Interval{(*range)[0].lower.doubles()[0], (*range)[0].upper.doubles()[0]}
                : kEntire;
      middle = midpoint(found);
      radius = radius_up(found);
    }
  }
}

}  // namespace

class LogitRanges::Layers {
 public:
  explicit Layers(const LayeredNet& net) : net_(net) {
    for (const DenseLayer& layer : net.layers) {
      RowMatrix weights = rows_of(layer.weights, layer.out, layer.in);
      RowMatrix sizes = absolute(weights);
      rows_.push_back(
          {&layer, std::move(weights), std::move(sizes),
           layer.radius.empty() ? RowMatrix{} : rows_of(layer.radius, layer.out, layer.in)});
    }
  }

  // `count`: samples to compute with, zeros behind those that are given.
  void run(std::span<const double> points, Index count, Interval* logits) const {
    const Index m = net_.inputs(), n = net_.outputs(), given = std::ssize(points) / m;
    Rounded x{std::vector<double>(to_size(m * count)), std::vector<double>(to_size(m * count))};
    for (Index s = 0; s < given; ++s) {
      for (Index i = 0; i < m; ++i) x.middle[to_size(i * count + s)] = points[to_size(s * m + i)];
    }
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      x = apply_weights(rows_[k], x, count);
      if (k < net_.hidden()) apply_functions(net_.layers[k], x, count);
    }
    for (Index s = 0; s < given; ++s) {
      for (Index i = 0; i < n; ++i) {
        const std::size_t e = to_size(i * count + s);
        const Interval found{sub_down(x.middle[e], x.radius[e]), add_up(x.middle[e], x.radius[e])};
        logits[s * n + i] = is_bounded(found) ? found : kEntire;
      }
    }
  }

 private:
  const LayeredNet& net_;
  std::vector<LayerRows> rows_;
};

namespace {

void run_intervals(const Graph& graph, std::span<const double> sample, Interval* logits) {
  std::vector<Box> inputs;
  for (const Tensor& tensor : split_inputs(graph, sample)) inputs.push_back({tensor, tensor});
  ValueBoxes boxes(graph, inputs);
  const Box& box = boxes.at(graph.outputs()[0]);
  for (std::size_t i = 0; i < box.lower.doubles().size(); ++i)
    logits[i] = {box.lower.doubles()[i], box.upper.doubles()[i]};
}

}  // namespace

LogitRanges::LogitRanges(const Graph& graph, const LayeredNet* net)
    : graph_(graph), layers_(net != nullptr ? std::make_unique<const Layers>(*net) : nullptr) {}
LogitRanges::~LogitRanges() = default;

std::vector<Interval> LogitRanges::of(std::span<const double> points) const {
  return run(points, false, {}).logits;
}

// A BLAS may add in another order where matrices have another size.
LogitRanges::Known LogitRanges::of_each(std::span<const double> points,
                                        const std::function<bool()>& stop) const {
  return run(points, true, stop);
}

LogitRanges::Known LogitRanges::run(std::span<const double> points, bool padded,
                                    const std::function<bool()>& stop) const {
  const Index size = input_size(graph_), count = std::ssize(points) / size;
  const Index classes = element_count(graph_.value(graph_.outputs()[0]).type.shape);
  const Index piece = layers_ ? 64 : 1, pieces = (count + piece - 1) / piece;
  std::vector<Interval> logits(to_size(count * classes), kEntire);
  std::vector<char> done(to_size(pieces), 0);
  std::atomic<Index> next = 0;  // in order, whoever does it: what is known has no holes
  parallel_for(pieces, 1, [&](Index first, Index last) {
    for (Index k = first; k < last; ++k) {
      if (stop && stop()) return;
      const Index p = next++, begin = p * piece, samples = std::min(piece, count - begin);
      const auto some = points.subspan(to_size(begin * size), to_size(samples * size));
      Interval* to = &logits[to_size(begin * classes)];
      layers_ ? layers_->run(some, padded ? piece : samples, to) : run_intervals(graph_, some, to);
      done[to_size(p)] = 1;
    }
  });
  const Index known = std::min(count, piece * (std::ranges::find(done, 0) - done.begin()));
  std::fill(logits.begin() + known * classes, logits.end(), kEntire);
  return {std::move(logits), to_size(known)};
}

}  // namespace lipscope
