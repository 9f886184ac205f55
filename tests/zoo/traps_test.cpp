// SPDX-License-Identifier: Apache-2.0
// Mistakes that are easy to make, several of them in print: each test fails if one of them is made
// here. The true constant is derived beside it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rounding.h"
#include "estimate/composition.h"
#include "linalg/norm/operator_norm.h"
#include "lipscope/bound.h"
#include "lipscope/select.h"
#include "tests/support/graph_maker.h"

namespace lipscope {
namespace {

using testing_support::GraphMaker;
using Ints = std::vector<Index>;

double upper_of(const Graph& graph, const std::string& norm, const Domain& domain = {}) {
  const Selected selected = select(graph, {});
  return compose(selected.graph, parse_norms(norm), operator_gains(selected.graph, domain)).upper;
}

// Length 2, window 3, one cell of padding that is not counted: both outputs are the mean of both
// cells, so a move of (1, 1) is kept: gain 1 in linf and l2. Counting the padding would give 2/3.
TEST(Traps, AveragePoolingThatDoesNotCountItsPadding) {
  GraphMaker m;
  const Graph graph = m.finish(
      m.add("AveragePool", {m.input({1, 1, 2})},
            {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}, {"count_include_pad", Index{0}}}));
  for (const char* norm : {"1", "2", "inf"}) {
    EXPECT_GE(upper_of(graph, norm), 1) << norm;
    EXPECT_LE(upper_of(graph, norm), 1 + 1e-9) << norm;
  }
}

// The identity with a dangling branch of constant 0.1: multiplying over all cut nodes says 0.1.
TEST(Traps, CutNodesOffThePathDoNotCount) {
  GraphMaker m;
  const ValueId x = m.input({1, 1});
  (void)m.add("MatMul", {x, m.weights({1, 1}, {0.1})});
  EXPECT_EQ(upper_of(m.finish(m.add("Relu", {x})), "2"), 1);
}

// x + a * g(x) with a = 1 and g(x) = relu(3x): 1 + max|a| Lip(g) = 4. In print as 1 + max a = 2.
TEST(Traps, WeightedResidualsNeedTheConstantOfTheBranch) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const ValueId g = m.add("Relu", {m.add("MatMul", {x, m.weights({2, 2}, {3, 0, 0, 3})})});
  EXPECT_GE(upper_of(m.finish(m.add("Add", {x, m.add("Mul", {m.weights({2}, {1, -1}), g})})), "2"),
            4);
}

// max |gelu'| = (1 + erf(1)) / 2 + exp(-1) / sqrt(pi) = 1.128904145..., in print as 1.1.
TEST(Traps, GeluIsSteeperThanElevenTenths) {
  GraphMaker m;
  const double upper = upper_of(m.finish(m.add("Gelu", {m.input({1, 1})}, {}, 20)), "2");
  EXPECT_GE(upper, 1.128904145);
  EXPECT_LE(upper, 1.128904146);
}

// Hard-swish has slope 3/2 to the left of x = 3 and 1 at it: a derivative taken at the kinks alone
// misses it. On [2.999, 4] the quotient comes as close to 3/2 as one likes.
TEST(Traps, SlopesNextToAKinkCount) {
  GraphMaker m;
  const Graph graph = m.finish(m.add("HardSwish", {m.input({1, 1})}, {}, 14));
  EXPECT_GE(upper_of(graph, "2"), 1.5);
  Domain domain;
  domain.box = Box{Tensor::vector({2.999}), Tensor::vector({4})};
  EXPECT_GE(upper_of(graph, "2", domain), 1.49966);
  EXPECT_LE(upper_of(graph, "2", domain), 1.5 + 1e-9);
}

// Two singular values next to each other, far above a thousand steps of power iteration.
TEST(Traps, AnEstimateFromPowerIterationIsNoUpperBound) {
  constexpr Index n = 40;
  std::vector<double> a(n * n);
  for (Index i = 0; i < n; ++i)
    a[static_cast<std::size_t>(i * (n + 1))] = 1 - 1e-9 * static_cast<double>(i);
  const NormBracket bracket = matrix_norm({n, n, a.data(), nullptr}, parse_norms("2"));
  EXPECT_GE(bracket.upper, 1);
  EXPECT_LE(bracket.lower, 1);
}

// LAPACK's Cholesky reports success on NaN, and std::max(x, NaN) is x: neither may make a bound.
TEST(Traps, NanWeightsHaveNoFiniteBound) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> a{1, nan, 0, 1};
  for (const char* norm : {"1", "2", "inf", "3", "1:inf"}) {
    EXPECT_EQ(matrix_norm({2, 2, a.data(), nullptr}, parse_norms(norm)).upper, kInf) << norm;
    GraphMaker m;
    const ValueId x = m.input({1, 2});
    EXPECT_EQ(upper_of(m.finish(m.add("MatMul", {x, m.weights({2, 2}, a)})), norm), kInf) << norm;
  }
  // A constant that becomes NaN only when it is folded: 0 / 0.
  GraphMaker m;
  const ValueId x = m.input({1, 2}), zero = m.weights({2}, {0, 1});
  EXPECT_EQ(upper_of(m.finish(m.add("Mul", {x, m.add("Div", {zero, zero})})), "2"), kInf);
}

// The library's tanh and erf are wrong by more than an ulp here and there: slopes and ranges built
// on one-ulp steps would be too narrow. MPFR compares millions of points elsewhere; this is the
// range of a box of width zero, which must hold the true value strictly inside.
TEST(Traps, TanhAndErfNeedMoreThanOneUlp) {
  for (const double x : {0.1, 0.5, 1.0, 2.5}) {
    EXPECT_LT(tanh_down(x), std::tanh(x));
    EXPECT_GT(tanh_up(x), std::tanh(x));
    EXPECT_LT(erf_down(x), std::erf(x));
    EXPECT_GT(erf_up(x), std::erf(x));
    EXPECT_GT(tanh_up(x) - tanh_down(x), 2 * (next_up(std::tanh(x)) - std::tanh(x)));
  }
}

// A constant that no double can hold is told from one that does not exist.
TEST(Traps, OverflowIsNamed) {
  GraphMaker m;
  const ValueId x = m.input({1, 1}, ElementType::kFloat64);
  const Tensor huge(ElementType::kFloat64, {1, 1}, std::vector<double>{1e300});
  const ValueId r = m.add("Relu", {m.add("MatMul", {x, m.weights(huge)})});
  const Graph graph = m.finish(m.add("MatMul", {r, m.weights(huge)}));
  const Composition composed = compose(graph, parse_norms("2"), operator_gains(graph, {}));
  EXPECT_EQ(composed.upper, kInf);
  EXPECT_NE(composed.no_bound.find("largest double"), std::string::npos) << composed.no_bound;
}

// Layers of size zero: nothing moves.
TEST(Traps, EmptyLayersHaveConstantZero) {
  GraphMaker m;
  const ValueId x = m.input({1, 2});
  const ValueId none = m.add("MatMul", {x, m.weights(Shape{2, 0}, {})});
  const Graph graph = m.finish(m.add("MatMul", {none, m.weights(Shape{0, 3}, {})}));
  for (const char* norm : {"1", "2", "inf", "1:inf"}) EXPECT_EQ(upper_of(graph, norm), 0) << norm;
}

// The indices of a MaxPool or TopK jump, and they are not the first output of their node: with
// y = indices the slope is 0 almost everywhere and there is no finite constant.
TEST(Traps, IndicesOfMovingValuesJump) {
  const Attributes to_float{{"to", Index{1}}};
  GraphMaker pool;
  const auto largest =
      pool.add_many("MaxPool", pool.input({1, 1, 3, 3}), 2, {{"kernel_shape", Ints{2, 2}}});
  const Graph places = pool.finish(pool.add("Cast", {largest[1]}, to_float));
  GraphMaker both;
  const auto found =
      both.add_many("MaxPool", both.input({1, 1, 3, 3}), 2, {{"kernel_shape", Ints{2, 2}}});
  const Graph sum =
      both.finish(both.add("Add", {found[0], both.add("Cast", {found[1]}, to_float)}));
  const Tensor zero = Tensor::vector(std::vector<double>(9)),
               one = Tensor::vector(std::vector<double>(9, 1));
  const std::vector<Domain> domains = {
      {}, {.box = Box{zero, one}, .ball = {}}, {.box = {}, .ball = Ball{zero, 0.5, Norm(2)}}};
  for (const Graph* graph : {&places, &sum}) {
    for (const Domain& domain : domains) {
      for (const MethodInfo& method : method_list()) {
        const Query query{.graph = graph, .norms = parse_norms("2"), .domain = domain};
        const Answer answer =
            find_bracket(query, {.methods = {std::string(method.id)}}, RunContext{});
        const auto upper = answer.bracket.upper(Guarantee::kProved);
        EXPECT_TRUE(!upper || std::isinf(upper->value)) << method.id << " " << upper->value;
      }
    }
  }
}

// No proved upper bound of any method is below `least`.
void expect_at_least(const Graph& graph, const Domain& domain, double least) {
  for (const MethodInfo& method : method_list()) {
    const Query query{.graph = &graph, .norms = parse_norms("2"), .domain = domain};
    const Answer answer = find_bracket(query, {.methods = {std::string(method.id)}}, RunContext{});
    const auto upper = answer.bracket.upper(Guarantee::kProved);
    EXPECT_TRUE(!upper || upper->value >= least) << method.id << " " << upper->value;
  }
}

// With a = clip(u, 1, 2) and b = |a - 1/2| = a - 1/2, relu(3/4 - b + w) is 1/4 + w for u <= 1: its
// slope by w is 1. Where a is a unit, b is a line for all its values, but not down to a = 0: as
// b = 1 a + |0 - 1/2| it would be too large by 1, and the unit behind it would seem to be off. A
// product of two such units is nearly linear in both, and not a b = b a + a b.
TEST(Traps, LinesDoNotGoOnToValuesThatUnitsNeverHave) {
  const auto last = [](GraphMaker& m, ValueId x, ValueId b) {
    const ValueId w = m.add("MatMul", {x, m.weights({3, 1}, {0, 0, 1})});
    return m.finish(
        m.add("Relu", {m.add("Add", {m.add("Sub", {m.weights({1, 1}, {0.75}), b}), w})}));
  };
  const auto clipped = [](GraphMaker& m, ValueId x, std::vector<double> which, double high) {
    const ValueId u = m.add("MatMul", {x, m.weights({3, 1}, std::move(which))});
    return m.add("Clip", {u, m.weights({}, {1}), m.weights({}, {high})});
  };
  const Domain domain{.box = Box{Tensor::vector({-1, -1, -0.125}), Tensor::vector({0, 0, 0.125})},
                      .ball = {}};
  for (const char* op : {"Relu", "Abs", "LeakyRelu"}) {
    GraphMaker m;
    const ValueId x = m.input({1, 3});
    const ValueId a = clipped(m, x, {1, 0, 0}, 2);
    const ValueId b = m.add(op, {m.add("Sub", {a, m.weights({1, 1}, {0.5})})});
    expect_at_least(last(m, x, b), domain, 1);
  }
  GraphMaker m;
  const ValueId x = m.input({1, 3});
  const double high = 1 + 0x1p-23;
  const ValueId a = clipped(m, x, {1, 0, 0}, high), b = clipped(m, x, {0, 1, 0}, high);
  const ValueId half = m.weights({1, 1}, {0.5});
  expect_at_least(last(m, x, m.add("Mul", {m.add("Mul", {a, b}), half})), domain, 1);
}

// relu(a b x - c) d with a b = 2024.49 * 2^-1074: as a coefficient of x it is rounded to 2024 such
// steps, and x is 1e300. c lies between what that makes of the largest x and the true number, so
// that the unit is on there, with slope a b d = 1.0002e-12.
TEST(Traps, CoefficientsBelowAllNormalNumbersOfLargeInputs) {
  GraphMaker m;
  const auto number = [&](double value) {
    return m.weights(Tensor(ElementType::kFloat64, {1, 1}, std::vector{value}));
  };
  const ValueId x = m.input({1, 1}, ElementType::kFloat64);
  const ValueId a = m.add("Relu", {m.add("MatMul", {x, number(1e-200)})});
  const ValueId b =
      m.add("MatMul", {a, number(0x1p-1074 * 0x1p700 * 2024.49 / (1e-200 * 0x1p700))});
  const ValueId y = m.add("Relu", {m.add("Sub", {b, number(1.1000910144262751e-20)})});
  const Domain domain{.box = Box{Tensor::vector({0.9e300}), Tensor::vector({1.1e300})}, .ball = {}};
  expect_at_least(m.finish(m.add("MatMul", {y, number(1e308)})), domain, 1e-12);
}

// A ball of radius 0 is the limit of small balls. On those around the edge of a step there is no
// finite constant, though at the edge itself every step looks flat.
TEST(Traps, StepsAreNotFlatAtTheirEdges) {
  const auto at = [](double x) {
    return Domain{.box = {}, .ball = Ball{Tensor::vector({x}), 0, Norm(2)}};
  };
  for (const auto& [op, edge] : std::vector<std::pair<const char*, double>>{
           {"Floor", 1}, {"Ceil", 1}, {"Round", 0.5}, {"Sign", 0}, {"ThresholdedRelu", 1}}) {
    expect_at_least(testing_support::unary(op), at(edge), kInf);
    GraphMaker m;  // The edge is met on the way.
    const ValueId moved = m.add("Add", {m.input({1, 1}), m.weights({1}, {edge - 3})});
    expect_at_least(m.finish(m.add(op, {moved})), at(3), kInf);
  }
}

}  // namespace
}  // namespace lipscope
