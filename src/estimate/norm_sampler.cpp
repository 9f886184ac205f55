// SPDX-License-Identifier: Apache-2.0
#include "estimate/norm_sampler.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "bounds/boxes.h"

namespace lipscope {
namespace {

// What an evaluation reads and writes.
Index entries_of(const Graph& graph) {
  Index touched = 0;
  for (const Value& value : graph.values()) touched += element_count(value.type.shape);
  return touched;
}

// Few enough that a draw ends in time.
Index points_for(Index touched) {
  return touched <= Index{1} << 14 ? 64 : touched <= Index{1} << 19 ? 16 : 4;
}

std::mt19937_64 generator(std::uint64_t seed, std::uint64_t number) {
  const auto half = [](std::uint64_t e, int shift) {
    return static_cast<std::uint32_t>(e >> shift);
  };
  std::seed_seq sequence{half(seed, 0), half(seed, 32), half(number, 0), half(number, 32)};
  return std::mt19937_64(sequence);
}

constexpr std::uint64_t kWarmUp = ~std::uint64_t{0};  // a number no draw has

}  // namespace

NormSampler::NormSampler(const Query& query, std::uint64_t seed)
    : query_(query),
      domain_(*query.graph, query.domain),
      seed_(seed),
      size_(static_cast<std::size_t>(input_size(*query.graph))),
      touched_(entries_of(*query.graph)),
      points_(points_for(touched_)),
      one_output_(element_count(query.graph->value(query.graph->outputs()[0]).type.shape) == 1) {}

std::string NormSampler::unsupported(const Query& query) {
  const Graph& graph = *query.graph;
  if (input_size(graph) == 0) return "no floating input";
  if (element_count(graph.value(graph.outputs()[0]).type.shape) == 0) return "empty output";
  if (std::string why = DomainSampler(graph, query.domain).unsupported(); !why.empty()) return why;
  for (const Node& node : graph.nodes()) {
    if (!node.op->differentiable()) {
      return "node '" + node.name + "': operator " + std::string(node.op->name()) +
             " has no derivative";
    }
  }
  return {};
}

void NormSampler::warm_up(const std::function<bool()>& should_stop) {
  hint_ = draw_one(kWarmUp, should_stop).direction;
}

std::vector<SampledMaximum> NormSampler::draw(std::uint64_t first, Index count,
                                              const std::function<bool()>& should_stop) const {
  std::vector<SampledMaximum> all(static_cast<std::size_t>(count));
  const auto draw_some = [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::uint64_t>(begin); i < static_cast<std::uint64_t>(end); ++i)
      all[i] = draw_one(first + i, should_stop);
  };
  // Where waiting for other threads would cost more than it saves: on this one.
  if (count * points_ * touched_ <= Index{1} << 20) {
    draw_some(0, count);
  } else {
    parallel_for(count, 1, draw_some);
  }
  return all;
}

void NormSampler::refine(std::vector<SampledMaximum>& points, int steps) const {
  std::vector<double> at, directions;
  for (const SampledMaximum& e : points) {
    at.insert(at.end(), e.point.begin(), e.point.end());
    directions.insert(directions.end(), e.direction.begin(), e.direction.end());
  }
  const JacobianNorms norms =
      jacobian_norms(*query_.graph, at, static_cast<Index>(points.size()), query_.norms,
                     std::move(directions), steps, domain_.frozen());
  for (std::size_t k = 0; k < points.size(); ++k) {
    points[k].value = norms.value[k];
    const auto from = norms.direction.begin() + static_cast<Index>(k * size_);
    points[k].direction.assign(from, from + static_cast<Index>(size_));
  }
}

// A knockout: a few steps of Boyd's iteration show which half to leave, and only the last is
// iterated to the end. With one output the second step is the end.
SampledMaximum NormSampler::draw_one(std::uint64_t number,
                                     const std::function<bool()>& should_stop) const {
  constexpr int kSteps = 4, kLastRounds = 60;
  constexpr double kSettled = 1e-12;
  if (should_stop()) return {};
  std::mt19937_64 rng = generator(seed_, number);
  std::normal_distribution<double> normal;
  std::vector<SampledMaximum> left;
  for (Index k = 0; k < points_; ++k) {
    SampledMaximum next{.point = std::vector<double>(size_), .direction = {}};
    if (!domain_.draw(rng, next.point)) return {};
    // Where Jacobians are alike the hint is nearly there; where they are not, noise leads on.
    next.direction = hint_.empty() || k % 2 == 0 ? std::vector<double>(size_) : hint_;
    const double noise = 0.3 / std::sqrt(static_cast<double>(size_));
    for (double& e : next.direction) e += noise * normal(rng);
    left.push_back(std::move(next));
  }
  for (bool last = false; !last;) {
    last = left.size() == 1 || one_output_;
    refine(left, one_output_ ? 2 : kSteps);
    std::ranges::stable_sort(left, std::ranges::greater{}, &SampledMaximum::value);
    left.resize(last ? 1 : (left.size() + 1) / 2);
    if (should_stop()) return left[0];
  }
  left[0].complete = one_output_;
  for (int round = 0; round < kLastRounds && !left[0].complete; ++round) {
    const double before = left[0].value;
    refine(left, 2 * kSteps);
    left[0].complete = round + 1 == kLastRounds || left[0].value <= before * (1 + kSettled);
    if (should_stop()) break;
  }
  return left[0];
}

}  // namespace lipscope
