// SPDX-License-Identifier: Apache-2.0
// Random networks that every method for upper bounds can read: no difference quotient, enclosed by
// interval arithmetic, is above any method's bound, and certificates of the best one are accepted
// by the code that checks them. LIPSCOPE_NETWORKS=n changes how many, LIPSCOPE_SEED=n which.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "estimate/chain_for_test.h"
#include "estimate/counted_for_test.h"
#include "pieces/pieces_for_test.h"

namespace lipscope {
namespace {

int number_of(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

Graph squashed_network(Rng& rng) {
  testing_support::GraphMaker m;
  ValueId x = m.input({1, 1 + testing_support::pick(rng, 4)});
  for (const Index n : {1 + testing_support::pick(rng, 6), 1 + testing_support::pick(rng, 5)}) {
    if (n % 2 == 0) x = m.add("Relu", {x});
    x = m.add("Gemm", {x, m.weights(random_tensor(rng, {m.shape(x).back(), n}, -2, 2)),
                       m.weights(random_tensor(rng, {n}, -1, 1))});
  }
  x = m.add(testing_support::pick(rng, 2) == 0 ? "Softmax" : "LogSoftmax", {x},
            {{"axis", Index{1}}});
  const auto classes = static_cast<std::uint64_t>(m.shape(x).back());
  const Graph whole = m.finish(x);
  Selection selection;
  if (testing_support::pick(rng, 2) == 0) selection.output = testing_support::pick(rng, classes);
  return select(whole, selection).graph;
}

Graph network(Rng& rng) {
  switch (testing_support::pick(rng, 5)) {
    case 0: return testing_support::random_chain(rng);
    case 1: return testing_support::random_residual(rng);
    case 2: return squashed_network(rng);
    default: {
      std::vector<Index> widths;
      for (Index k = 1 + testing_support::pick(rng, 3); k > 0; --k)
        widths.push_back(1 + testing_support::pick(rng, 8));
      return testing_support::random_pieces(rng, 1 + testing_support::pick(rng, 6), widths,
                                            1 + testing_support::pick(rng, 4));
    }
  }
}

TEST(AllMethods, HoldForEveryNetwork) {
  static const char* kNorms[] = {"2",   "2",     "2",     "inf", "1", "2:inf",
                                 "1:2", "inf:2", "inf:1", "2:1", "3"};
  const int networks = number_of("LIPSCOPE_NETWORKS", 600), seed = number_of("LIPSCOPE_SEED", 1);
  std::map<std::string, int> bounds;
  for (int i = 0; i < networks; ++i) {
    Rng rng(static_cast<std::uint64_t>(seed + i));
    const Graph graph = network(rng);
    const Query query{&graph, parse_norms(kNorms[rng() % std::size(kNorms)]),
                      testing_support::random_domain(rng, graph)};
    const Budget budget{.time = std::chrono::duration<double>(0.005), .target_ratio = 1};
    const Answer answer = find_bracket(query, budget, counted());
    const double quotient = testing_support::largest_quotient(query, rng);
    const auto lower = answer.bracket.lower(Guarantee::kProved);
    const double reached = std::max(quotient, lower ? lower->value : 0);
    const auto compare = [&](const Answer& found) {
      for (const MethodReport& report : found.methods) {
        if (!report.bound || report.side != "upper" ||
            report.bound->guarantee != Guarantee::kProved)
          continue;
        ++bounds[report.method];
        EXPECT_LE(reached, report.bound->value)
            << report.method << "; repeat with LIPSCOPE_NETWORKS=1 LIPSCOPE_SEED=" << seed + i;
      }
    };
    compare(answer);
    // Those that others usually make superfluous, or that may find the time used up, by name.
    compare(find_bracket(
        query,
        {.target_ratio = 1,
         .methods = {"eclipse-fast", "seqlip", "loop-transform", "fast-lip", "recur-jac",
                     "linear-jacobian", "gram-l2", "local-lipsdp", "graph-jacobian"}},
        {}));
  }
  if (networks < 100) return;
  for (const char* method : {"layer-product", "eclipse-fast", "seqlip", "loop-transform", "lipsdp",
                             "exact-global", "exact-local", "fast-lip", "recur-jac",
                             "linear-jacobian", "gram-l2", "local-lipsdp", "graph-jacobian"})
    EXPECT_GT(bounds[method], networks / 20) << method;
}

}  // namespace
}  // namespace lipscope
