// SPDX-License-Identifier: Apache-2.0
#include "estimate/jacobian_norm.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/check.h"
#include "base/parallel.h"
#include "bounds/boxes.h"

namespace lipscope {
namespace {

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

double finite_or_zero(double value) { return std::isfinite(value) ? value : 0; }

// How a batch of pairs is cut: pieces small enough to keep their values in the cache and large
// enough to share the traffic of the weights. Little work stays on one thread, where waiting for
// others would cost more than it saves.
struct Cut {
  Index piece = 1;
  bool serial = false;
};

Cut cut(const Graph& graph, Index pairs) {
  constexpr Index kEntries = Index{1} << 17, kMostPairs = 16, kLittle = Index{1} << 20;
  Index largest = 1, touched = 0;
  for (const Value& value : graph.values()) {
    const Index entries = element_count(value.type.shape);
    touched += entries;
    if (!value.constant) largest = std::max(largest, entries);
  }
  const Index most = std::clamp<Index>(kEntries / largest, 1, kMostPairs);
  if (pairs * touched <= kLittle) return {most, true};
  return {std::min(most, (pairs + 1) / 2), false};
}

// One piece: a and b side by side in one trace.
class PairPiece {
 public:
  PairPiece(const Graph& graph, const NormPair& norms, std::span<const double> a,
            std::span<const double> b, Index count, double noise)
      : graph_(graph), norms_(norms), noise_(noise), count_(count), points_(a.begin(), a.end()) {
    points_.insert(points_.end(), b.begin(), b.end());
    for (std::size_t i = 0; i < a.size(); ++i) moved_.push_back(a[i] - b[i]);
  }

  void values(std::span<double> value) {
    const auto outputs = evaluate(graph_, scatter(graph_, points_, 2 * count_), 2 * count_);
    (void)weights(outputs[0].doubles(), value);
  }

  void gradients(std::span<double> value, std::span<double> at_a, std::span<double> at_b) {
    const Trace trace(graph_, scatter(graph_, points_, 2 * count_), 2 * count_);
    const ValueId output = graph_.outputs()[0];
    Shape shape = graph_.value(output).type.shape;
    shape.insert(shape.begin(), 2 * count_);
    std::vector<Tensor> pulled(graph_.outputs().size());
    pulled[0] = Tensor(ElementType::kFloat64, std::move(shape),
                       weights(trace.value(output).doubles(), value));
    gather(graph_, trace.vjp(pulled), 2 * count_, points_);
    const auto half = static_cast<Index>(points_.size() / 2);
    std::ranges::copy_n(points_.begin(), half, at_a.begin());
    std::ranges::copy_n(points_.begin() + half, half, at_b.begin());
  }

 private:
  // Fills in the quotients and gives u for each point of each pair.
  std::vector<double> weights(std::span<const double> y, std::span<double> value) const {
    const auto pairs = static_cast<std::size_t>(count_);
    const std::size_t rows = y.size() / (2 * pairs), size = moved_.size() / pairs;
    std::vector<double> u(y.size()), difference(rows);
    for (std::size_t p = 0; p < pairs; ++p) {
      const auto first = y.subspan(p * rows, rows), second = y.subspan((pairs + p) * rows, rows);
      for (std::size_t i = 0; i < rows; ++i) difference[i] = first[i] - second[i];
      const double away = vector_norm(std::span(moved_).subspan(p * size, size), norms_.in);
      const double noise = noise_ + std::ldexp(vector_norm(first, norms_.out), -46);
      const double change = vector_norm(difference, norms_.out) - noise;
      value[p] = away > 0 ? std::max(0.0, finite_or_zero(change / away)) : 0;
      const auto part = std::span(u).subspan(p * rows, rows);
      dual_vector(difference, norms_.out, part);
      std::ranges::copy(part, u.begin() + static_cast<Index>((pairs + p) * rows));
    }
    return u;
  }

  const Graph& graph_;
  const NormPair& norms_;
  double noise_;
  Index count_;
  std::vector<double> points_, moved_;
};

// Calls body(first pair, pairs) for the pieces of a batch, on all cores.
void for_each_piece(const Graph& graph, std::size_t entries,
                    const std::function<void(Index, Index)>& body) {
  const Index count = static_cast<Index>(entries) / std::max<Index>(1, input_size(graph));
  const auto [piece, alone] = cut(graph, count);
  const auto pieces = [&, step = piece](Index first, Index last) {
    for (Index i = first; i < last; ++i) body(i * step, std::min(step, count - i * step));
  };
  if (alone) {
    return pieces(0, (count + piece - 1) / piece);
  }
  parallel_for((count + piece - 1) / piece, 1, pieces);
}

}  // namespace

double vector_norm(std::span<const double> x, const Norm& norm) {
  double largest = 0, sum = 0;
  for (const double e : x) largest = std::max(largest, std::abs(e));
  if (largest == 0 || std::isinf(norm.p()) || !std::isfinite(largest)) return largest;
  if (norm.p() == 1) {
    for (const double e : x) sum += std::abs(e);
    return sum;
  }
  if (norm.p() == 2) {
    for (const double e : x) sum += (e / largest) * (e / largest);
    return largest * std::sqrt(sum);
  }
  for (const double e : x) sum += std::pow(std::abs(e) / largest, norm.p());
  return largest * std::pow(sum, 1 / norm.p());
}

void dual_vector(std::span<const double> y, const Norm& q, std::span<double> g) {
  const double length = vector_norm(y, q);
  std::ranges::fill(g, 0.0);
  if (!(length > 0) || !std::isfinite(length)) return;
  if (std::isinf(q.p())) {
    const auto top = std::ranges::max_element(y, {}, [](double e) { return std::abs(e); });
    g[static_cast<std::size_t>(top - y.begin())] = *top > 0 ? 1 : -1;
    return;
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double share = std::abs(y[i]) / length;
    const double part = q.p() == 1 ? 1 : q.p() == 2 ? share : std::pow(share, q.p() - 1);
    g[i] = y[i] > 0 ? part : y[i] < 0 ? -part : 0;
  }
}

JacobianNorms jacobian_norms(const Graph& graph, std::span<const double> points, Index count,
                             const NormPair& norms, std::vector<double> direction, int steps,
                             std::span<const std::uint8_t> frozen) {
  const auto size = static_cast<std::size_t>(input_size(graph));
  const Trace trace(graph, scatter(graph, points, count), count);
  JacobianNorms result{std::vector<double>(static_cast<std::size_t>(count)), std::move(direction)};
  const auto sample = [&](std::span<double> all, std::size_t b) {
    return all.subspan(b * size, size);
  };
  const auto freeze = [&](std::span<double> d) {
    for (std::size_t i = 0; i < frozen.size(); ++i) d[i] = frozen[i] != 0 ? 0 : d[i];
  };
  const auto samples = static_cast<std::size_t>(count);
  for (std::size_t b = 0; b < samples; ++b) {
    const auto d = sample(result.direction, b);
    freeze(d);
    const double length = vector_norm(d, norms.in);
    for (double& e : d) e /= length > 0 ? length : 1;
  }
  std::vector<double> next = result.direction, pulled(next.size());
  for (int step = 0; step < steps; ++step) {
    const std::vector<Tensor> pushed = trace.jvp(scatter(graph, next, count));
    const auto y = pushed[0].doubles();
    const std::size_t rows = y.size() / samples;
    std::vector<Tensor> weights(pushed.size());
    weights[0] = Tensor::zeros(ElementType::kFloat64, pushed[0].shape());
    for (std::size_t b = 0; b < samples; ++b) {
      const auto part = y.subspan(b * rows, rows);
      const double value = finite_or_zero(vector_norm(part, norms.out));
      dual_vector(part, norms.out, weights[0].doubles().subspan(b * rows, rows));
      if (value < result.value[b]) continue;
      result.value[b] = value;
      std::ranges::copy(sample(next, b), sample(result.direction, b).begin());
    }
    if (step + 1 == steps) break;
    gather(graph, trace.vjp(weights), count, pulled);
    for (std::size_t b = 0; b < samples; ++b) {
      const auto z = sample(pulled, b);
      freeze(z);
      if (vector_norm(z, Norm(1)) > 0) dual_vector(z, norms.in.dual(), sample(next, b));
    }
  }
  return result;
}

PairQuotients pair_quotients(const Graph& graph, const NormPair& norms, std::span<const double> a,
                             std::span<const double> b, double noise) {
  const auto size = static_cast<std::size_t>(input_size(graph));
  PairQuotients result{std::vector<double>(a.size() / size), std::vector<double>(a.size()),
                       std::vector<double>(a.size())};
  for_each_piece(graph, a.size(), [&](Index first, Index count) {
    const auto at = static_cast<std::size_t>(first), n = static_cast<std::size_t>(count);
    PairPiece(graph, norms, a.subspan(at * size, n * size), b.subspan(at * size, n * size), count,
              noise)
        .gradients(std::span(result.value).subspan(at, n),
                   std::span(result.at_a).subspan(at * size, n * size),
                   std::span(result.at_b).subspan(at * size, n * size));
  });
  return result;
}

std::vector<double> quotient_values(const Graph& graph, const NormPair& norms,
                                    std::span<const double> a, std::span<const double> b,
                                    double noise) {
  const auto size = static_cast<std::size_t>(input_size(graph));
  std::vector<double> value(a.size() / size);
  for_each_piece(graph, a.size(), [&](Index first, Index count) {
    const auto at = static_cast<std::size_t>(first), n = static_cast<std::size_t>(count);
    PairPiece(graph, norms, a.subspan(at * size, n * size), b.subspan(at * size, n * size), count,
              noise)
        .values(std::span(value).subspan(at, n));
  });
  return value;
}

}  // namespace lipscope
