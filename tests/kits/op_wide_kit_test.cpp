// SPDX-License-Identifier: Apache-2.0
// Wide numbers against plain ones and intervals, for every operator that computes with them: what
// both enclose they have in common, and wide numbers know it to about 200 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/interval.h"
#include "lipscope/evaluate.h"
#include "ops/wide_map.h"
#include "tests/kits/op_cases.h"

namespace lipscope {
namespace {

class OpWideKit : public testing::TestWithParam<const OpKind*> {};

TEST_P(OpWideKit, HoldsValueAndDerivative) {
  Rng rng(11);
  for (const OpCase& op_case : GetParam()->cases(rng)) {
    const kits::Built built = kits::build(*GetParam(), op_case);
    if (built.graph.nodes().size() != 1) continue;
    const Node& node = built.graph.nodes()[0];
    const auto* map = dynamic_cast<const WideMap*>(node.op.get());
    if (map == nullptr) return;
    // A direction for each floating input.
    std::vector<Tensor> directions;
    for (const Tensor& x : built.inputs) {
      directions.push_back(is_floating(x.type()) ? random_tensor(rng, x.shape())
                                                 : Tensor::zeros(x.type(), x.shape()));
    }
    std::vector<WideTensor> given(node.inputs.size());
    std::vector<Box> boxes;
    bool real = true;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const auto inputs = built.graph.inputs();
      const auto found = std::ranges::find(inputs, node.inputs[k]);
      const bool moves = found != inputs.end();
      const auto i = static_cast<std::size_t>(found - inputs.begin());
      const Tensor& x =
          moves ? built.inputs[i] : *built.graph.value(node.inputs[k]).constant->exact();
      // Integers that are inputs of the graph are none here.
      real = real && (is_floating(x.type()) || !moves);
      for (Index e = 0; e < x.size(); ++e) given[k].value.emplace_back(x.at(e));
      for (Index e = 0; moves && e < x.size(); ++e)
        given[k].tangent.emplace_back(directions[i].at(e));
      boxes.push_back({x, x});
    }
    if (!real) continue;
    std::vector<const WideTensor*> in;
    for (const WideTensor& x : given) in.push_back(&x);
    std::vector<WideTensor> out(node.outputs.size());
    if (!map->push_wide(in, out)) continue;
    const auto ranges = node.op->range(boxes);
    const Trace trace(built.graph, built.inputs);
    const std::vector<Tensor> pushed = trace.jvp(directions);
    for (std::size_t o = 0; o < out.size(); ++o) {
      const Tensor& plain = trace.value(node.outputs[o]);
      if (!is_floating(plain.type())) continue;
      ASSERT_EQ(std::ssize(out[o].value), plain.size());
      for (Index e = 0; e < plain.size(); ++e) {
        const auto i = static_cast<std::size_t>(e);
        const Wide value = out[o].value[i], slope = out[o].at(i).tangent;
        if (!std::isfinite(plain.at(e)) || !value.known()) continue;
        // Weights of Resize that are no doubles are known between two of them.
        EXPECT_LE(value.off(), GetParam()->name == "Resize" ? 0x1p-48 : 0x1p-180);
        EXPECT_NEAR(value.near(), plain.at(e), 1e-9 * (1 + std::fabs(plain.at(e))));
        if (ranges) {
          const Interval range{(*ranges)[o].lower.at(e), (*ranges)[o].upper.at(e)};
          EXPECT_FALSE(is_nan(intersect(hull(value), range))) << value.near();
        }
        const double at = pushed[o].at(e);
        EXPECT_NEAR(slope.near(), at, 1e-8 * (1 + std::fabs(at)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllOperators, OpWideKit, testing::ValuesIn(kits::all_kinds()),
                         [](const auto& kind) { return std::string(kind.param->name); });

// Those without which no transformer passes.
TEST(OpWideKit, NobodyHasForgottenTheirs) {
  Rng rng(1);
  for (const char* name : {"Add",
                           "BatchNormalization",
                           "Concat",
                           "Conv",
                           "Cos",
                           "Div",
                           "Erf",
                           "Exp",
                           "Gelu",
                           "Gemm",
                           "InstanceNormalization",
                           "LayerNormalization",
                           "MatMul",
                           "Mul",
                           "Neg",
                           "ReduceMean",
                           "Relu",
                           "Reshape",
                           "Sigmoid",
                           "Slice",
                           "Softmax",
                           "Sqrt",
                           "Sub",
                           "Tanh",
                           "Transpose",
                           "Where"}) {
    const OpKind& kind = *find_op_kind(name);
    bool tells = false;
    for (const OpCase& op_case : kind.cases(rng)) {
      const kits::Built built = kits::build(kind, op_case);
      for (const Node& node : built.graph.nodes())
        tells = tells || dynamic_cast<const WideMap*>(node.op.get()) != nullptr;
    }
    EXPECT_TRUE(tells) << name;
  }
}

}  // namespace
}  // namespace lipscope
