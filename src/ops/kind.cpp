// SPDX-License-Identifier: Apache-2.0
#include "ops/kind.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace lipscope {

std::vector<OpKind> make_op_table();  // generated from the list in CMakeLists.txt

std::span<const OpKind> op_kinds() {
  static const std::vector<OpKind> table = make_op_table();
  return table;
}

const OpKind* find_op_kind(std::string_view name) {
  static const auto by_name = [] {
    std::map<std::string_view, const OpKind*> map;
    for (const OpKind& kind : op_kinds()) map.emplace(kind.name, &kind);
    return map;
  }();
  const auto found = by_name.find(name);
  return found != by_name.end() ? found->second : nullptr;
}

Imported import_case(const OpKind& kind, const OpCase& op_case) {
  std::vector<std::optional<NodeInput>> inputs;
  for (const OpCase::Input& input : op_case.inputs) {
    inputs.push_back(NodeInput::like(input.value, input.constant));
  }
  return kind.import(OnnxNode(std::string(kind.name), op_case.opset, op_case.attributes, inputs,
                              std::vector<bool>(static_cast<std::size_t>(op_case.outputs), true)));
}

bool has_derivative(const OpKind& kind) {
  Rng rng(1);
  const Imported made = import_case(kind, kind.cases(rng).at(0));
  return made.op && made.op->differentiable();
}

Tensor random_tensor(Rng& rng, Shape shape, double low, double high) {
  return random_tensor_avoiding(rng, std::move(shape), {}, low, high);
}

Tensor random_tensor_avoiding(Rng& rng, Shape shape, std::vector<double> kinks, double low,
                              double high) {
  constexpr double kDistance = 0.02;
  std::uniform_real_distribution<double> uniform(low, high);
  Tensor result = Tensor::zeros(ElementType::kFloat32, std::move(shape));
  for (double& entry : result.doubles()) {
    do {
      entry = uniform(rng);
    } while (std::any_of(kinks.begin(), kinks.end(),
                         [&](double kink) { return std::abs(entry - kink) < kDistance; }));
  }
  return result;
}

}  // namespace lipscope
