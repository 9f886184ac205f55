// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast/binary.h"

namespace lipscope {

std::vector<OpCase> binary_cases(Rng& rng, double low, double high) {
  const auto random = [&](Shape shape) { return random_tensor(rng, std::move(shape), low, high); };
  std::vector<OpCase> cases;
  const std::pair<Shape, Shape> shapes[] = {
      {{2, 3}, {2, 3}},          {{2, 3}, {}},        {{}, {2, 3}},     {{1, 3, 2, 4}, {3, 1, 1}},
      {{1, 3, 2}, {1, 3, 2}},    {{4, 1}, {1, 3}},    {{}, {}},         {{2, 0}, {1, 1}},
      {{2, 1, 3, 1}, {5, 1, 2}}, {{1, 3, 4}, {1, 4}}, {{1}, {1, 1, 1}},
  };
  for (const auto& [a, b] : shapes) {
    cases.push_back({.inputs = {{random(a)}, {random(b)}}});
    cases.push_back({.inputs = {{random(a)}, {random(b), true}}});
  }
  cases.push_back({.inputs = {{random({2, 3}), true}, {random({3})}}});
  // Opsets 1 to 6.
  const Attributes at_axis = {{"broadcast", Index{1}}, {"axis", Index{1}}};
  cases.push_back(
      {.inputs = {{random({1, 3, 2, 4})}, {random({3})}}, .attributes = at_axis, .opset = 6});
  cases.push_back(
      {.inputs = {{random({1, 3, 2, 4})}, {random({3, 2})}}, .attributes = at_axis, .opset = 6});
  cases.push_back({.inputs = {{random({2, 3})}, {random({3})}},
                   .attributes = {{"broadcast", Index{1}}},
                   .opset = 6});
  cases.push_back({.inputs = {{random({2, 3})}, {random({2, 3})}}, .opset = 6});
  return cases;
}

OpCase integer_operands(ElementType type) {
  return {.inputs = {{Tensor(type, {4}, std::vector<Index>{7, 0, 100, 1})},
                     {Tensor(type, {2, 1}, std::vector<Index>{3, 2})}}};
}

}  // namespace lipscope
