// SPDX-License-Identifier: Apache-2.0
#include "estimate/jacobian_norm.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "bounds/boxes.h"

namespace lipscope {
namespace {

double norm_of(std::span<const double> x, double p) {
  double largest = 0;
  for (const double e : x) largest = std::max(largest, std::abs(e));
  if (largest == 0 || std::isinf(p) || !std::isfinite(largest)) return largest;
  double sum = 0;
  for (const double e : x) sum += std::pow(std::abs(e) / largest, p);
  return largest * std::pow(sum, 1 / p);
}

// Samples of all inputs together, to one tensor per input holding all samples.
std::vector<Tensor> scatter(const Graph& graph, std::span<const double> all, Index count) {
  const Index size = input_size(graph);
  std::vector<Tensor> inputs;
  Index at = 0;
  for (const ValueId id : graph.inputs()) {
    const ValueType& type = graph.value(id).type;
    Shape shape = type.shape;
    shape.insert(shape.begin(), count);
    Tensor tensor =
        Tensor::zeros(is_floating(type.type) ? ElementType::kFloat64 : type.type, std::move(shape));
    if (is_floating(type.type)) {
      const Index part = element_count(type.shape);
      for (Index b = 0; b < count; ++b) {
        std::copy_n(all.begin() + b * size + at, part, tensor.doubles().begin() + b * part);
      }
      at += part;
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

void gather(const Graph& graph, std::span<const Tensor> inputs, Index count,
            std::span<double> all) {
  const Index size = input_size(graph);
  Index at = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueType& type = graph.value(graph.inputs()[i]).type;
    if (!is_floating(type.type)) continue;
    const Index part = element_count(type.shape);
    for (Index b = 0; b < count; ++b) {
      std::copy_n(inputs[i].doubles().begin() + b * part, part, all.begin() + b * size + at);
    }
    at += part;
  }
}

}  // namespace

void dual_vector(std::span<const double> y, const Norm& q, std::span<double> g) {
  const double length = norm_of(y, q.p());
  if (!(length > 0) || !std::isfinite(length)) {
    std::ranges::fill(g, 0.0);
    return;
  }
  if (std::isinf(q.p())) {
    std::ranges::fill(g, 0.0);
    const auto top = std::ranges::max_element(y, {}, [](double e) { return std::abs(e); });
    g[static_cast<std::size_t>(top - y.begin())] = *top > 0 ? 1 : -1;
    return;
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double part = std::pow(std::abs(y[i]) / length, q.p() - 1);
    g[i] = y[i] > 0 ? part : y[i] < 0 ? -part : 0;
  }
}

JacobianNorms jacobian_norms(const Graph& graph, std::span<const double> points, Index count,
                             const NormPair& norms, std::vector<double> direction, int steps) {
  const auto size = static_cast<std::size_t>(input_size(graph));
  const Trace trace(graph, scatter(graph, points, count), count);
  JacobianNorms result{std::vector<double>(static_cast<std::size_t>(count)), std::move(direction)};
  const auto sample = [&](std::span<double> all, Index b) {
    return all.subspan(static_cast<std::size_t>(b) * size, size);
  };
  for (Index b = 0; b < count; ++b) {
    const auto d = sample(result.direction, b);
    const double length = norm_of(d, norms.in.p());
    for (double& e : d) e /= length > 0 ? length : 1;
  }
  std::vector<double> pulled(result.direction.size());
  for (int step = 0; step < steps; ++step) {
    std::vector<Tensor> pushed = trace.jvp(scatter(graph, result.direction, count));
    const auto y = pushed[0].doubles();
    const std::size_t rows = y.size() / static_cast<std::size_t>(count);
    std::vector<Tensor> weights(pushed.size());
    weights[0] = Tensor::zeros(ElementType::kFloat64, pushed[0].shape());
    for (std::size_t b = 0; b < static_cast<std::size_t>(count); ++b) {
      const auto part = y.subspan(b * rows, rows);
      result.value[b] = norm_of(part, norms.out.p());
      dual_vector(part, norms.out, weights[0].doubles().subspan(b * rows, rows));
    }
    if (step + 1 == steps) break;
    gather(graph, trace.vjp(weights), count, pulled);
    for (Index b = 0; b < count; ++b) {
      const auto z = sample(pulled, b);
      if (!(norm_of(z, 1) > 0)) continue;
      dual_vector(z, norms.in.dual(), sample(result.direction, b));
    }
  }
  for (double& value : result.value) value = std::isfinite(value) ? value : 0;
  return result;
}

}  // namespace lipscope
