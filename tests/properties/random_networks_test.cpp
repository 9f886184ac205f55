// SPDX-License-Identifier: Apache-2.0
// Thousands of random networks: no difference quotient and no Jacobian norm above the proved upper
// bound, no proved lower bound above it. Zero tolerance: quotients are themselves proved (interval
// evaluation), so the comparison is exact. LIPSCOPE_NETWORKS=n changes how many, LIPSCOPE_SEED=n
// which.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "bounds/boxes.h"
#include "estimate/composition.h"
#include "estimate/jacobian_norm.h"
#include "estimate/quotient.h"
#include "passes/merge_affine.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;

class RandomNetwork {
 public:
  explicit RandomNetwork(std::uint64_t seed) : rng_(seed) {}

  Graph make() {
    const bool image = pick(2) == 0;
    ValueId x =
        image ? m_.input({1, 1 + pick(3), 3 + pick(4), 3 + pick(4)}) : m_.input({1, 1 + pick(6)});
    const Index depth = 1 + pick(4);
    for (Index i = 0; i < depth; ++i) {
      x = m_.shape(x).size() == 4 ? image_layer(x) : vector_layer(x);
      if (pick(3) > 0) x = activation(x);
    }
    return m_.finish(x);
  }

 private:
  Index pick(Index n) { return static_cast<Index>(rng_() % static_cast<std::uint64_t>(n)); }
  ValueId random(Shape shape, double low = -1, double high = 1) {
    return m_.weights(random_tensor(rng_, std::move(shape), low, high));
  }

  ValueId activation(ValueId x) {
    static const char* kNames[] = {"Relu",        "LeakyRelu", "Sigmoid",  "Tanh", "Elu",
                                   "Selu",        "Softplus",  "Softsign", "Gelu", "HardSwish",
                                   "HardSigmoid", "Mish",      "Celu",     "Abs",  "Sin",
                                   "Cos",         "Atan",      "Erf",      "Neg",  "Silu"};
    return m_.add(kNames[pick(std::size(kNames))], {x}, {}, 20);
  }

  ValueId dense(ValueId x) {
    const Index n = m_.shape(x).back(), k = 1 + pick(6);
    return m_.add("Gemm", {x, random({n, k}), random({k})});
  }

  ValueId vector_layer(ValueId x) {
    const Index n = m_.shape(x).back();
    switch (pick(9)) {
      case 7: {
        const ValueId y = dense(m_.add("Div", {x, random({n}, 0.5, 2)}));
        return m_.add("Add", {m_.add("MatMul", {y, random({m_.shape(y).back(), 3})}), random({3})});
      }
      case 0: return m_.add("Add", {x, m_.add("MatMul", {x, random({n, n})})});
      case 1: return m_.add("Concat", {x, dense(x)}, {{"axis", Index{1}}});
      case 2:
        return n > 1 ? m_.add("LayerNormalization", {x, random({n}), random({n})},
                              {{"epsilon", 0.1}}, 17)
                     : dense(x);
      case 3: return n > 1 ? m_.add("Softmax", {x}, {{"axis", Index{1}}}) : dense(x);
      case 4: return m_.add("Add", {x, activation(m_.add("MatMul", {x, random({n, n})}))});
      case 5: return m_.add("Mul", {m_.add("Tanh", {x}), m_.add("Sigmoid", {x})});
      default: return dense(x);
    }
  }

  ValueId image_layer(ValueId x) {
    const Shape s = m_.shape(x);
    switch (pick(s[2] > 1 && s[3] > 1 ? 10 : 9) + (s[2] > 1 && s[3] > 1 ? 0 : 1)) {
      case 0:
        return m_.add("MaxPool", {x},
                      {{"kernel_shape", std::vector<Index>{2, 2}},
                       {"strides", std::vector<Index>{1 + pick(2), 1 + pick(2)}}});
      case 1:
        return m_.add("AveragePool", {x},
                      {{"kernel_shape", std::vector<Index>{3, 2}},
                       {"pads", std::vector<Index>{1, 1, 1, 0}},
                       {"count_include_pad", pick(2)}});
      case 2: return m_.add("GlobalAveragePool", {x});
      case 3:
        return m_.add("BatchNormalization",
                      {x, random({s[1]}), random({s[1]}), random({s[1]}), random({s[1]}, 0.1, 2)});
      case 4: return m_.add("Flatten", {x});
      case 5: {
        static const char* kModes[] = {"constant", "reflect", "edge", "wrap"};
        const ValueId padded = m_.add("Pad", {x, m_.integers({0, 0, 1, pick(2), 0, 0, pick(2), 1})},
                                      {{"mode", std::string(kModes[pick(4)])}}, 19);
        if (pick(2) == 0) return padded;
        return m_.add("Conv", {padded, random({2, s[1], 2, 2}), random({2})},
                      {{"strides", std::vector<Index>{1 + pick(2), 1}}});
      }
      case 7: {
        const ValueId y = m_.add("Mul", {x, random({1, s[1], 1, 1})});
        return m_.add("Conv", {y, random({2, s[1], 1, 1}), random({2})});
      }
      default: {
        const Index out = 1 + pick(3), k = std::min<Index>(1 + pick(3), std::min(s[2], s[3]));
        const Index pad = pick(2);
        return m_.add("Conv", {x, random({out, s[1], k, k}), random({out})},
                      {{"pads", std::vector<Index>{pad, pad, pick(2), pad}},
                       {"strides", std::vector<Index>{1 + pick(2), 1 + pick(2)}},
                       {"dilations", std::vector<Index>{1, 1}}});
      }
    }
  }

  GraphMaker m_;
  Rng rng_;
};

NormPair random_norms(Rng& rng) {
  static const double kOrders[] = {1, 1.5, 2, 2, 2, 3, HUGE_VAL};
  const double p = kOrders[rng() % 7];
  const double q = rng() % 3 == 0 ? kOrders[rng() % 7] : p;
  return {Norm(p), Norm(q)};
}

std::vector<double> random_point(Rng& rng, const Domain& domain, std::size_t size) {
  std::vector<double> x(size);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (std::size_t i = 0; i < size; ++i) {
    x[i] = domain.box
               ? domain.box->lower.doubles()[i] + uniform(rng) * (domain.box->upper.doubles()[i] -
                                                                  domain.box->lower.doubles()[i])
               : 2 * normal(rng);
    if (domain.box)
      x[i] = std::clamp(x[i], domain.box->lower.doubles()[i], domain.box->upper.doubles()[i]);
  }
  return x;
}

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

TEST(RandomNetworks, NoQuotientAboveTheProvedBound) {
  const std::uint64_t networks = setting("LIPSCOPE_NETWORKS", 10000),
                      first = setting("LIPSCOPE_SEED", 1);
  std::uint64_t finite = 0;
  double tightest = 0;
  for (std::uint64_t seed = first; seed < first + networks; ++seed) {
    SCOPED_TRACE("reproduce with LIPSCOPE_NETWORKS=1 LIPSCOPE_SEED=" + std::to_string(seed));
    const Graph graph = RandomNetwork(seed).make();
    Rng rng(seed);
    const auto size = static_cast<std::size_t>(input_size(graph));
    Query query{&graph, random_norms(rng), {}};
    if (rng() % 2 == 0) {
      Tensor low = Tensor::vector(random_point(rng, {}, size)), high = low;
      for (double& e : high.doubles()) e += rng() % 2 == 0 ? 0.1 : 1.0;
      query.domain.box = Box{low, high};
    }
    // The bound is that of the graph with its affine nodes merged, the quotients are those of the
    // graph as it is.
    const Graph merged = merge_affine(graph);
    const double upper = compose(merged, query.norms, operator_gains(merged, query.domain)).upper;
    ASSERT_FALSE(std::isnan(upper));
    finite += std::isfinite(upper) ? 1 : 0;
    for (int trial = 0; trial < 2; ++trial) {
      Witness pair{random_point(rng, query.domain, size), random_point(rng, query.domain, size)};
      ASSERT_LE(proved_quotient(query, pair), upper);
      // A short step along the direction in which the output moves most.
      const auto steepest =
          jacobian_norms(graph, pair.x, 1, query.norms, std::vector<double>(size, 1.0), 6);
      pair.y = pair.x;
      for (std::size_t i = 0; i < size; ++i) pair.y[i] += 1e-4 * steepest.direction[i];
      if (!in_domain(query.domain, pair.y)) continue;
      const double quotient = proved_quotient(query, pair);
      ASSERT_LE(quotient, upper);
      if (std::isfinite(upper) && upper > 0) tightest = std::max(tightest, quotient / upper);
    }
  }
  RecordProperty("finite", static_cast<int>(finite));
  printf(
      "%llu random networks from seed %llu: %llu with a finite bound, largest lower/upper %.9f, 0 "
      "violations\n",
      static_cast<unsigned long long>(networks), static_cast<unsigned long long>(first),
      static_cast<unsigned long long>(finite), tightest);
  if (networks >= 1000) {
    EXPECT_GT(finite, networks / 2);  // otherwise the test shows nothing
    EXPECT_GT(tightest, 0.999);       // some bounds are attained
  }
}

}  // namespace
}  // namespace lipscope
