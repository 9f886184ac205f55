// SPDX-License-Identifier: Apache-2.0
#include "robust/pair_constants.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/rounding.h"
#include "lipscope/select.h"

namespace lipscope {
namespace {

constexpr Index kMostPairs = 300;

// Cheapest first; a row is left out where the one before it gave the best there is.
const std::vector<std::vector<std::string>> kMethodRounds = {
    {"layer-product", "dag", "lipsdp"}, {"seqlip", "loop-transform", "eclipse-fast"}};
// Searches over pieces close the gap for networks of some dozen units.
const std::vector<std::string> kSearch = {"exact-global"};
constexpr Index kSmallModel = 3000;  // parameters

Bound best_proved(const Query& query, std::chrono::duration<double> time,
                  const RunContext& context) {
  const double start = context.clock->now();
  Bound best{kInf, Guarantee::kProved, "none"};
  const auto run = [&](const std::vector<std::string>& methods) {
    // The first methods take no notice of the time.
    const auto left = time - std::chrono::duration<double>(context.clock->now() - start);
    const Budget budget{
        .time = std::max<std::chrono::duration<double>>(std::chrono::duration<double>(1e-3), left),
        .methods = methods};
    const auto found = find_bracket(query, budget, context).bracket.upper(Guarantee::kProved);
    if (found && found->value < best.value) best = *found;
  };
  run(kMethodRounds[0]);
  if (best.method != "lipsdp") run(kMethodRounds[1]);
  if (query.graph->parameter_count() <= kSmallModel) run(kSearch);
  return best;
}

// |f_i - f_j| <= 2^(1/q*) |f|_q: the factors are sqrt 2 for l2 and 2 for l-infinity.
Bound by_all_logits(const Graph& graph, const Norm& norm, std::chrono::duration<double> time,
                    const RunContext& context) {
  Bound two = best_proved({&graph, {norm, Norm(2)}, {}}, time / 2, context);
  two.value = mul_up(two.value, sqrt_up(2));
  Bound most = best_proved({&graph, {norm, Norm::infinity()}, {}}, time / 2, context);
  most.value = mul_up(most.value, 2);
  return two.value <= most.value ? two : most;
}

}  // namespace

const Bound& PairConstants::at(Index i, Index j) const {
  const Index low = std::min(i, j), high = std::max(i, j);
  LIPSCOPE_CHECK(low >= 0 && low < high && high < classes);
  return upper[static_cast<std::size_t>(low * (2 * classes - low - 1) / 2 + high - low - 1)];
}

PairConstants pair_constants(const Graph& graph, const Norm& norm,
                             std::chrono::duration<double> time, const RunContext& context) {
  const double start = context.clock->now();
  PairConstants found;
  found.classes = element_count(graph.value(graph.outputs()[0]).type.shape);
  const Index pairs = found.classes * (found.classes - 1) / 2;
  if (pairs > kMostPairs) {
    found.upper.assign(static_cast<std::size_t>(pairs), by_all_logits(graph, norm, time, context));
    return found;
  }
  std::optional<Bound> rest;  // of pairs that come too late
  for (Index i = 0; i < found.classes; ++i) {
    for (Index j = i + 1; j < found.classes; ++j) {
      if (!found.upper.empty() && context.clock->now() - start > time.count()) {
        if (!rest) rest = by_all_logits(graph, norm, {}, context);
        found.upper.push_back(*rest);
        continue;
      }
      Selection row;
      row.margin = {i, j};
      const Selected pair = select(graph, row);
      const std::chrono::duration<double> used(context.clock->now() - start);
      const auto share = (time - used) / static_cast<double>(pairs - std::ssize(found.upper));
      found.upper.push_back(best_proved({&pair.graph, {norm, norm}, {}}, share, context));
    }
  }
  return found;
}

}  // namespace lipscope
