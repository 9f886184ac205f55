// SPDX-License-Identifier: Apache-2.0
// Promises every operator keeps. The cases come from the operators' own files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lipscope/evaluate.h"
#include "tests/kits/op_cases.h"

namespace lipscope {
namespace {

using kits::build;
using kits::Built;

constexpr std::uint64_t kSeed = 20240611;

class OpKit : public testing::TestWithParam<const OpKind*> {
 protected:
  template <class Check>
  void for_each_case(Check&& check) {
    Rng rng(kSeed);
    const OpKind& kind = *GetParam();
    const std::vector<OpCase> cases = kind.cases(rng);
    ASSERT_FALSE(cases.empty());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(std::string(kind.name) + " case " + std::to_string(i));
      const Built built = build(kind, cases[i]);
      check(built, rng);
    }
  }
};

Tensor random_like(Rng& rng, const Tensor& t) {
  if (!is_floating(t.type())) return {};
  return random_tensor(rng, t.shape(), -1, 1).cast(ElementType::kFloat64);
}

bool has_derivative(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (!node.op->differentiable()) return false;
  }
  return true;
}

TEST_P(OpKit, OutputsHaveTheInferredShapes) {
  for_each_case([](const Built& built, Rng&) {
    const auto outputs = evaluate(built.graph, built.inputs);
    ASSERT_EQ(outputs.size(), built.graph.outputs().size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Value& value = built.graph.value(built.graph.outputs()[i]);
      EXPECT_EQ(outputs[i].shape(), value.type.shape);
      EXPECT_EQ(outputs[i].type(), value.type.type);
    }
  });
}

TEST_P(OpKit, ABatchGivesWhatItsSamplesGive) {
  for_each_case([](const Built& built, Rng& rng) {
    constexpr Index kCount = 3;
    std::vector<std::vector<Tensor>> samples(kCount, built.inputs);
    std::vector<Tensor> batch;
    for (std::size_t i = 0; i < built.inputs.size(); ++i) {
      const Tensor& input = built.inputs[i];
      Shape shape = input.shape();
      shape.insert(shape.begin(), kCount);
      Tensor joined = Tensor::zeros(input.type(), shape);
      for (Index b = 0; b < kCount; ++b) {
        Tensor& sample = samples[static_cast<std::size_t>(b)][i];
        const auto n = static_cast<std::size_t>(sample.size());
        if (is_floating(input.type())) {
          std::uniform_real_distribution<double> wiggle(0.999, 1);
          for (double& entry : sample.doubles()) entry *= wiggle(rng);
          std::copy_n(sample.doubles().begin(), n, joined.doubles().begin() + b * sample.size());
        } else {
          std::copy_n(sample.ints().begin(), n, joined.ints().begin() + b * sample.size());
        }
      }
      batch.push_back(std::move(joined));
    }
    const auto together = evaluate(built.graph, batch, kCount);
    for (Index b = 0; b < kCount; ++b) {
      const auto alone = evaluate(built.graph, samples[static_cast<std::size_t>(b)]);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        for (Index k = 0; k < alone[i].size(); ++k) {
          const double expected = alone[i].at(k);
          const double got = together[i].at(b * alone[i].size() + k);
          if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(got));
          } else {
            EXPECT_NEAR(got, expected, 1e-12 * std::max(1.0, std::abs(expected)));
          }
        }
      }
    }
  });
}

TEST_P(OpKit, Float32PathAgrees) {
  for_each_case([](const Built& built, Rng&) {
    const auto exact = evaluate(built.graph, built.inputs);
    const auto fast = evaluate(built.graph, built.inputs, 1, Precision::kFloat32);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      double scale = 1;
      for (Index k = 0; k < exact[i].size(); ++k) {
        if (std::isfinite(exact[i].at(k))) scale = std::max(scale, std::abs(exact[i].at(k)));
      }
      for (Index k = 0; k < exact[i].size(); ++k) {
        if (!std::isfinite(exact[i].at(k))) continue;
        EXPECT_NEAR(fast[i].at(k), exact[i].at(k), 2e-5 * scale)
            << "output " << i << " entry " << k;
      }
    }
  });
}

TEST_P(OpKit, JvpMatchesDifferences) {
  for_each_case([](const Built& built, Rng& rng) {
    if (!has_derivative(built.graph)) return;
    const Trace trace(built.graph, built.inputs);
    std::vector<Tensor> tangents;
    for (const Tensor& input : built.inputs) tangents.push_back(random_like(rng, input));
    const auto directional = trace.jvp(tangents);
    // Fourth-order central differences: error about h^4 f^(5)/30 + eps/h.
    constexpr double kStep = 1e-3;
    const auto shifted = [&](double t) {
      std::vector<Tensor> moved = built.inputs;
      for (std::size_t i = 0; i < moved.size(); ++i) {
        if (!is_floating(moved[i].type())) continue;
        const auto to = moved[i].doubles();
        for (std::size_t k = 0; k < to.size(); ++k) to[k] += t * tangents[i].doubles()[k];
      }
      return evaluate(built.graph, moved);
    };
    const auto a = shifted(-2 * kStep), b = shifted(-kStep), c = shifted(kStep),
               d = shifted(2 * kStep);
    for (std::size_t i = 0; i < directional.size(); ++i) {
      if (!is_floating(a[i].type())) continue;
      for (Index k = 0; k < a[i].size(); ++k) {
        const double difference =
            (a[i].at(k) - 8 * b[i].at(k) + 8 * c[i].at(k) - d[i].at(k)) / (12 * kStep);
        EXPECT_NEAR(directional[i].at(k), difference, 1e-6 * std::max(1.0, std::abs(difference)))
            << "output " << i << " entry " << k;
      }
    }
  });
}

TEST_P(OpKit, VjpIsTheAdjointOfJvp) {
  for_each_case([](const Built& built, Rng& rng) {
    if (!has_derivative(built.graph)) return;
    const Trace trace(built.graph, built.inputs);
    std::vector<Tensor> tangents, weights;
    for (const Tensor& input : built.inputs) tangents.push_back(random_like(rng, input));
    const auto pushed = trace.jvp(tangents);
    for (const Tensor& output : pushed) weights.push_back(random_like(rng, output));
    const auto pulled = trace.vjp(weights);
    double left = 0, right = 0, scale = 1;
    for (std::size_t i = 0; i < pushed.size(); ++i) {
      for (Index k = 0; k < weights[i].size(); ++k) {
        left += pushed[i].at(k) * weights[i].at(k);
        scale += std::abs(pushed[i].at(k) * weights[i].at(k));
      }
    }
    for (std::size_t i = 0; i < pulled.size(); ++i) {
      for (Index k = 0; k < tangents[i].size(); ++k) {
        right += pulled[i].at(k) * tangents[i].at(k);
        scale += std::abs(pulled[i].at(k) * tangents[i].at(k));
      }
    }
    EXPECT_NEAR(left, right, 1e-10 * scale);
  });
}

// The matrix of an operator, with its other inputs where they are, against the derivative; and the
// derivative does not depend on where the input is.
TEST_P(OpKit, MatrixIsTheDerivative) {
  for_each_case([](const Built& built, Rng& rng) {
    if (built.graph.nodes().empty()) return;
    const Node& node = built.graph.nodes()[0];
    std::vector<Box> boxes;
    std::vector<Index> source;
    for (const ValueId id : node.inputs) {
      const auto inputs = built.graph.inputs();
      const auto found = std::ranges::find(inputs, id);
      source.push_back(found == inputs.end() ? -1 : found - inputs.begin());
      const Tensor& value = source.back() < 0
                                ? *built.graph.value(id).constant->exact()
                                : built.inputs[static_cast<std::size_t>(source.back())];
      boxes.push_back({value, value});
    }
    for (std::size_t k = 0; k < boxes.size(); ++k) {
      // A value that is given to several inputs moves them all.
      if (source[k] < 0 || std::ranges::count(source, source[k]) != 1) continue;
      const auto moving = static_cast<std::size_t>(source[k]);
      if (!is_floating(built.inputs[moving].type())) continue;
      std::vector<Tensor> tangents(built.inputs.size()), at = built.inputs;
      tangents[moving] = random_like(rng, built.inputs[moving]);
      at[moving] = random_like(rng, built.inputs[moving]).cast(at[moving].type());
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        const Index rows = element_count(built.graph.value(node.outputs[o]).type.shape);
        std::vector<double> product(static_cast<std::size_t>(rows), 0);
        const MatrixQuery query{boxes, static_cast<Index>(k), static_cast<Index>(o)};
        const bool linear = node.op->matrix(query, [&](Index row, Index col, double lo, double hi) {
          ASSERT_LE(lo, hi);
          ASSERT_LE(hi - lo, 1e-14 * std::abs(lo));
          ASSERT_TRUE(row >= 0 && row < rows && col >= 0 && col < tangents[moving].size());
          product[static_cast<std::size_t>(row)] += lo * tangents[moving].at(col);
        });
        if (!linear) continue;
        ASSERT_TRUE(node.op->differentiable());
        const Tensor pushed = Trace(built.graph, at).jvp(tangents)[o];
        for (Index i = 0; i < rows; ++i) {
          const double expected = pushed.at(i);
          EXPECT_NEAR(product[static_cast<std::size_t>(i)], expected,
                      1e-11 * (1 + std::abs(expected)))
              << "input " << k << " output " << o << " entry " << i;
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(AllOperators, OpKit, testing::ValuesIn(kits::all_kinds()),
                         [](const auto& param) { return std::string(param.param->name); });

}  // namespace
}  // namespace lipscope
