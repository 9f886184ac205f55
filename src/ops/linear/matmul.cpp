// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/linear/multilinear.h"

namespace lipscope {
namespace {

// Labels: the batch dimensions, then m, n, k.
Imported import_matmul(const OnnxNode& node) {
  const ValueType &a = node.input(0), &b = node.input(1);
  if (a.type != b.type) node.malformed("the factors have different element types");
  if (a.shape.empty() || b.shape.empty()) node.malformed("a factor is a scalar");
  Shape sa = a.shape, sb = b.shape;
  const bool row = sa.size() == 1, column = sb.size() == 1;
  if (row) sa.insert(sa.begin(), 1);
  if (column) sb.push_back(1);
  const std::size_t rank = std::max(sa.size(), sb.size());
  sa.insert(sa.begin(), rank - sa.size(), 1);
  sb.insert(sb.begin(), rank - sb.size(), 1);
  const std::size_t batch = rank - 2;
  if (sa[rank - 1] != sb[batch]) {
    node.malformed(
        fmt::format("shapes {} and {} do not fit", to_string(a.shape), to_string(b.shape)));
  }

  Multilinear form{.name = "MatMul", .out = {a.type, {}}, .terms = {{1, {0, 1}}}};
  const std::vector<Index> in_a = label_strides(sa), in_b = label_strides(sb);
  Shape out;
  for (std::size_t i = 0; i < batch; ++i) {
    if (sa[i] != sb[i] && sa[i] != 1 && sb[i] != 1) {
      node.malformed(
          fmt::format("shapes {} and {} do not fit", to_string(a.shape), to_string(b.shape)));
    }
    out.push_back(sa[i] == 1 ? sb[i] : sa[i]);
  }
  form.extents = out;
  form.extents.insert(form.extents.end(), {sa[batch], sb[rank - 1], sa[rank - 1]});
  out.insert(out.end(), {sa[batch], sb[rank - 1]});
  const auto labels = [&](const std::vector<Index>& strides, std::array<Index, 3> matrix) {
    std::vector<Index> all(strides.begin(), strides.begin() + static_cast<Index>(batch));
    all.insert(all.end(), matrix.begin(), matrix.end());
    return all;
  };
  const std::vector<Index> in_out = label_strides(out);
  form.strides = {labels(in_a, {in_a[batch], 0, in_a[rank - 1]}),
                  labels(in_b, {0, in_b[rank - 1], in_b[batch]})};
  form.out_strides = labels(in_out, {in_out[batch], in_out[rank - 1], 0});
  if (column) out.pop_back();
  if (row) out.erase(out.end() - (column ? 1 : 2));
  form.out.shape = std::move(out);
  return {make_multilinear(std::move(form)), {0, 1}};
}

OpCase::Input fixed(Tensor value) { return {std::move(value), true}; }

std::vector<OpCase> matmul_cases(Rng& rng) {
  return {
      {.inputs = {{random_tensor(rng, {1, 5})}, fixed(random_tensor(rng, {5, 4}))}},
      {.inputs = {{random_tensor(rng, {30, 20})}, {random_tensor(rng, {20, 10})}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}, fixed(random_tensor(rng, {4, 2}))}},
      {.inputs = {{random_tensor(rng, {2, 1, 3, 4})}, {random_tensor(rng, {5, 4, 3})}}},
      {.inputs = {fixed(random_tensor(rng, {3, 4})), {random_tensor(rng, {2, 4, 3})}}},
      {.inputs = {{random_tensor(rng, {6, 16, 9})}, {random_tensor(rng, {6, 9, 17})}}},
      {.inputs = {{random_tensor(rng, {5})}, {random_tensor(rng, {2, 5, 3})}}},
      {.inputs = {{random_tensor(rng, {2, 3, 5})}, {random_tensor(rng, {5})}}},
      {.inputs = {{random_tensor(rng, {200})}, {random_tensor(rng, {200})}}},
      {.inputs = {{random_tensor(rng, {3, 0})}, {random_tensor(rng, {0, 2})}}},
      {.inputs = {{random_tensor(rng, {0, 2})}, {random_tensor(rng, {2, 3})}}},
      {.inputs = {{Tensor::integers({2, 2}, {1, 2, 3, 4})}, {Tensor::integers({2}, {5, 6})}}},
  };
}

}  // namespace

std::vector<OpKind> op_matmul() { return {{"MatMul", import_matmul, matmul_cases}}; }

}  // namespace lipscope
