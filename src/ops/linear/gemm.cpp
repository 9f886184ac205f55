// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ops/linear/multilinear.h"

namespace lipscope {
namespace {

double coefficient(const OnnxNode& node, std::string_view name) {
  const double value = node.real(name);
  if (!is_floating(node.input(0).type) && value != std::trunc(value)) {
    node.unsupported(fmt::format("{} = {} with integer matrices", name, value));
  }
  return value;
}

// Labels m, n, k.
Imported import_gemm(const OnnxNode& node) {
  const ValueType &a = node.input(0), &b = node.input(1);
  if (a.type != b.type) node.malformed("the factors have different element types");
  if (a.shape.size() != 2 || b.shape.size() != 2) {
    node.malformed(fmt::format("the factors have shapes {} and {}, not those of matrices",
                               to_string(a.shape), to_string(b.shape)));
  }
  const bool flip_a = node.integer("transA", 0) != 0, flip_b = node.integer("transB", 0) != 0;
  const double alpha = coefficient(node, "alpha"), beta = coefficient(node, "beta");
  const Index m = a.shape[flip_a ? 1 : 0], k = a.shape[flip_a ? 0 : 1];
  const Index n = b.shape[flip_b ? 0 : 1];
  if (b.shape[flip_b ? 1 : 0] != k) {
    node.malformed(
        fmt::format("shapes {} and {} do not fit", to_string(a.shape), to_string(b.shape)));
  }

  const auto in_a = label_strides(a.shape), in_b = label_strides(b.shape);
  const auto in_out = label_strides({m, n});
  Multilinear form{.name = "Gemm",
                   .out = {a.type, {m, n}},
                   .extents = {m, n, k},
                   .strides = {{in_a[flip_a ? 1 : 0], 0, in_a[flip_a ? 0 : 1]},
                               {0, in_b[flip_b ? 0 : 1], in_b[flip_b ? 1 : 0]}},
                   .out_strides = {in_out[0], in_out[1], 0},
                   .terms = {{alpha, {0, 1}}}};
  const bool may_broadcast = node.opset() >= 7 || node.integer("broadcast", 0) != 0;
  if (!node.has_input(2)) return {make_multilinear(std::move(form)), {0, 1}};

  const ValueType& c = node.input(2);
  if (c.type != a.type) node.malformed("C has another element type");
  Shape sc = c.shape;
  if (sc.size() < 2) sc.insert(sc.begin(), 2 - sc.size(), 1);
  const bool fits = sc.size() == 2 && (sc[0] == m || sc[0] == 1) && (sc[1] == n || sc[1] == 1);
  if (!fits || (!may_broadcast && c.shape != Shape{m, n})) {
    node.malformed(fmt::format("C of shape {} does not fit the product of shape {}",
                               to_string(c.shape), to_string(Shape{m, n})));
  }
  if (beta == 0) return {make_multilinear(std::move(form)), {0, 1}};
  const auto in_c = label_strides(sc);
  form.strides.push_back({in_c[0], in_c[1], 0});
  form.terms.insert(form.terms.begin(), {beta, {2}});
  return {make_multilinear(std::move(form)), {0, 1, 2}};
}

std::vector<OpCase> gemm_cases(Rng& rng) {
  const auto fixed = [](Tensor value) { return OpCase::Input{std::move(value), true}; };
  return {
      {.inputs = {{random_tensor(rng, {1, 20})},
                  fixed(random_tensor(rng, {20, 16})),
                  fixed(random_tensor(rng, {16}))}},
      {.inputs = {{random_tensor(rng, {1, 20})},
                  fixed(random_tensor(rng, {16, 20})),
                  fixed(random_tensor(rng, {16}))},
       .attributes = {{"transB", Index{1}}, {"alpha", 0.5}, {"beta", 2.0}}},
      {.inputs = {{random_tensor(rng, {4, 3})},
                  {random_tensor(rng, {4, 5})},
                  {random_tensor(rng, {3, 1})}},
       .attributes = {{"transA", Index{1}}}},
      {.inputs = {{random_tensor(rng, {7, 9})},
                  {random_tensor(rng, {8, 7})},
                  {random_tensor(rng, {1, 8})}},
       .attributes = {{"transA", Index{1}}, {"transB", Index{1}}, {"alpha", -1.5}}},
      {.inputs = {{random_tensor(rng, {2, 3})}, {random_tensor(rng, {3, 2})}}},
      {.inputs = {{random_tensor(rng, {2, 3})},
                  {random_tensor(rng, {3, 2})},
                  {random_tensor(rng, {})}}},
      {.inputs = {{random_tensor(rng, {2, 3})},
                  {random_tensor(rng, {3, 2})},
                  {random_tensor(rng, {2})}},
       .attributes = {{"broadcast", Index{1}}},
       .opset = 6},
      {.inputs = {{random_tensor(rng, {2, 0})},
                  {random_tensor(rng, {0, 3})},
                  {random_tensor(rng, {3})}}},
      {.inputs = {{random_tensor(rng, {2, 3})},
                  {random_tensor(rng, {3, 2})},
                  {random_tensor(rng, {2})}},
       .attributes = {{"beta", 0.0}}},
  };
}

}  // namespace

std::vector<OpKind> op_gemm() { return {{"Gemm", import_gemm, gemm_cases}}; }

}  // namespace lipscope
