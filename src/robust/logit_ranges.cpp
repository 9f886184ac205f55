// SPDX-License-Identifier: Apache-2.0
#include "robust/logit_ranges.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "base/rounding.h"
#include "bounds/boxes.h"
#include "linalg/blas.h"
#include "ops/elementwise.h"
#include "pieces/small.h"

namespace lipscope {
namespace {

// Values of `count` samples side by side, each within its radius of the true one.
struct Rounded {
  std::vector<double> middle, radius;
};

std::vector<double> absolute(const std::vector<double>& entries) {
  std::vector<double> result(entries.size());
  std::ranges::transform(entries, result.begin(), [](double w) { return std::fabs(w); });
  return result;
}

// z = W x + b. The products are summed in any order.
Rounded apply_weights(const DenseLayer& layer, const std::vector<double>& sizes, const Rounded& x,
                      Index count) {
  const Index n = layer.out, m = layer.in;
  const double g = 2 * gamma_up(at(m) + 8);
  Rounded z{std::vector<double>(at(count * n)), std::vector<double>(at(count * n))};
  std::vector<double> doubt(x.middle.size());
  // What a product below all normal numbers loses may meet a large weight.
  for (std::size_t i = 0; i < doubt.size(); ++i) {
    const double size = std::fabs(x.middle[i]);
    doubt[i] = x.radius[i] + g * size + (size > 0 ? 2 * kMinSubnormal : 0);
  }
  gemm(count, n, m, 1.0, {x.middle.data(), m}, {layer.weights.data(), m, true}, 0.0,
       z.middle.data(), n);
  gemm(count, n, m, 1.0, {doubt.data(), m}, {sizes.data(), m, true}, 0.0, z.radius.data(), n);
  if (!layer.radius.empty()) {
    for (std::size_t i = 0; i < doubt.size(); ++i) doubt[i] = x.radius[i] + std::fabs(x.middle[i]);
    gemm(count, n, m, 1.0, {doubt.data(), m}, {layer.radius.data(), m, true}, 1.0, z.radius.data(),
         n);
  }
  for (Index s = 0; s < count; ++s) {
    for (Index i = 0; i < n; ++i) {
      const std::size_t e = at(s * n + i);
      const Interval bias = layer.bias[at(i)];
      const double b = midpoint(bias);
      const double sum = z.middle[e] + b;
      // The factor covers the rounding of the sums of positive numbers.
      const double spread = mul_up(z.radius[e], 1 + 0x1p-20);
      const double rounded = add_up(mul_up(0x1p-50, std::fabs(sum)), underflow_up(std::fabs(sum)));
      z.middle[e] = sum;
      z.radius[e] = add_up(add_up(add_up(spread, radius_up(bias)), rounded), 0x1p-1000);
    }
  }
  return z;
}

void apply_functions(const DenseLayer& layer, Rounded& z, Index count) {
  const Index n = layer.out;
  for (Index s = 0; s < count; ++s) {
    for (Index i = 0; i < n; ++i) {
      const std::size_t e = at(s * n + i), u = at(i);
      const double a = layer.below[u], b = layer.above[u];
      double &middle = z.middle[e], &radius = z.radius[e];
      if (!std::isnan(a)) {
        middle *= middle > 0 ? b : a;
        radius = add_up(mul_up(radius, std::max(std::fabs(a), std::fabs(b))),
                        add_up(mul_up(0x1p-52, std::fabs(middle)), 0x1p-1000));
        continue;
      }
      const Box box{Tensor::vector(std::vector<double>{sub_down(middle, radius)}),
                    Tensor::vector(std::vector<double>{add_up(middle, radius)})};
      const auto range = layer.phi[u]->range(std::span(&box, 1));
      const Interval found =
          range ? Interval{(*range)[0].lower.doubles()[0], (*range)[0].upper.doubles()[0]}
                : kEntire;
      middle = midpoint(found);
      radius = radius_up(found);
    }
  }
}

class LayeredRun {
 public:
  explicit LayeredRun(const LayeredNet& net) : net_(net) {
    for (const DenseLayer& layer : net.layers) sizes_.push_back(absolute(layer.weights));
  }

  void run(std::span<const double> points, Interval* logits) const {
    const Index count = std::ssize(points) / net_.inputs();
    Rounded x{{points.begin(), points.end()}, std::vector<double>(points.size())};
    for (std::size_t k = 0; k < net_.layers.size(); ++k) {
      x = apply_weights(net_.layers[k], sizes_[k], x, count);
      if (k < net_.hidden()) apply_functions(net_.layers[k], x, count);
    }
    for (std::size_t e = 0; e < x.middle.size(); ++e) {
      const Interval found{sub_down(x.middle[e], x.radius[e]), add_up(x.middle[e], x.radius[e])};
      logits[e] = is_bounded(found) ? found : kEntire;
    }
  }

 private:
  const LayeredNet& net_;
  std::vector<std::vector<double>> sizes_;  // |W|
};

void run_intervals(const Graph& graph, std::span<const double> sample, Interval* logits) {
  std::vector<Box> inputs;
  for (const Tensor& tensor : split_inputs(graph, sample)) inputs.push_back({tensor, tensor});
  ValueBoxes boxes(graph, inputs);
  const Box& box = boxes.at(graph.outputs()[0]);
  for (std::size_t i = 0; i < box.lower.doubles().size(); ++i)
    logits[i] = {box.lower.doubles()[i], box.upper.doubles()[i]};
}

}  // namespace

std::vector<Interval> logit_ranges(const Graph& graph, const LayeredNet* net,
                                   std::span<const double> points) {
  const Index size = input_size(graph), count = std::ssize(points) / size;
  const Index classes = element_count(graph.value(graph.outputs()[0]).type.shape);
  std::vector<Interval> logits(at(count * classes));
  if (net == nullptr) {
    parallel_for(count, 1, [&](Index first, Index last) {
      for (Index s = first; s < last; ++s)
        run_intervals(graph, points.subspan(at(s * size), at(size)), &logits[at(s * classes)]);
    });
    return logits;
  }
  const LayeredRun run(*net);
  constexpr Index kPiece = 128;
  parallel_for((count + kPiece - 1) / kPiece, 1, [&](Index first, Index last) {
    for (Index p = first; p < last; ++p) {
      const Index begin = p * kPiece, samples = std::min(kPiece, count - begin);
      run.run(points.subspan(at(begin * size), at(samples * size)), &logits[at(begin * classes)]);
    }
  });
  return logits;
}

}  // namespace lipscope
