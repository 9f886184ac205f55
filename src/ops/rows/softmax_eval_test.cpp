// SPDX-License-Identifier: Apache-2.0
// Values of Softmax and LogSoftmax: accuracy, layouts, and rows without a value.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rounding.h"
#include "lipscope/evaluate.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

Tensor run_softmax(const std::string& name, const Tensor& x, Index axis,
                   Precision precision = Precision::kFloat64) {
  const NodeInput info{{x.type(), x.shape()}, nullptr};
  const OnnxNode node(name, 13, {{"axis", axis}}, {info});
  GraphBuilder builder;
  const ValueId in = builder.input("x", {x.type(), x.shape()});
  const Graph graph = builder.finish(
      builder.add(find_op_kind(name)->import(node).op, std::vector<ValueId>{in}, "node"));
  return evaluate(graph, std::vector<Tensor>{x}, 1, precision).front();
}

// Along axis 1 of a {2, 3, 2} tensor, in long double.
std::vector<double> reference(const Tensor& x, bool logarithm) {
  std::vector<double> y(12);
  for (Index outer = 0; outer < 2; ++outer) {
    for (Index inner = 0; inner < 2; ++inner) {
      const auto place = [&](Index i) { return outer * 6 + i * 2 + inner; };
      long double sum = 0;
      for (Index i = 0; i < 3; ++i) sum += std::exp(static_cast<long double>(x.at(place(i))));
      for (Index i = 0; i < 3; ++i) {
        const long double share = std::exp(static_cast<long double>(x.at(place(i)))) / sum;
        y[static_cast<std::size_t>(place(i))] =
            static_cast<double>(logarithm ? std::log(share) : share);
      }
    }
  }
  return y;
}

TEST(SoftmaxEval, StridedAxisInBothPrecisions) {
  Rng rng(3);
  const Tensor x = random_tensor(rng, {2, 3, 2}, -5, 5);
  for (const bool logarithm : {false, true}) {
    const std::string name = logarithm ? "LogSoftmax" : "Softmax";
    const std::vector<double> expected = reference(x, logarithm);
    const Tensor y = run_softmax(name, x, 1), fast = run_softmax(name, x, 1, Precision::kFloat32);
    for (Index k = 0; k < 12; ++k) {
      const double want = expected[static_cast<std::size_t>(k)];
      EXPECT_NEAR(y.at(k), want, 1e-15 * (1 + std::abs(want))) << name;
      EXPECT_NEAR(fast.at(k), want, 3e-6 * std::abs(want)) << name;
    }
  }
}

TEST(SoftmaxEval, RowsWithoutAValueAreNaNAndAlone) {
  const Tensor x(ElementType::kFloat64, {5, 2},
                 std::vector<double>{0, 0, kNaN, 1, kInf, 0, -kInf, -kInf, 0, 0});
  for (const Precision precision : {Precision::kFloat64, Precision::kFloat32}) {
    const Tensor rows = run_softmax("Softmax", x, 1, precision);
    const Tensor log_rows = run_softmax("LogSoftmax", x, 1, precision);
    for (const Index k : {0, 1, 8, 9}) {
      EXPECT_EQ(rows.at(k), 0.5);
      EXPECT_NEAR(log_rows.at(k), -std::log(2.0), 1e-7);
    }
    for (Index k = 2; k < 8; ++k) {
      EXPECT_TRUE(std::isnan(rows.at(k))) << k;
      EXPECT_TRUE(std::isnan(log_rows.at(k))) << k;
    }
  }
}

TEST(SoftmaxEval, MaskedEntriesAreZero) {
  const Tensor x(ElementType::kFloat64, {1, 3}, std::vector<double>{2, -kInf, 2});
  const Tensor y = run_softmax("Softmax", x, 1), log_y = run_softmax("LogSoftmax", x, 1);
  EXPECT_EQ(y.at(0), 0.5);
  EXPECT_EQ(y.at(1), 0);
  EXPECT_EQ(log_y.at(1), -kInf);
}

}  // namespace
}  // namespace lipscope
