// SPDX-License-Identifier: Apache-2.0
#include "graph/run_node.h"

#include "base/check.h"

namespace lipscope {
namespace {

template <class View, class T>
View make_view(const ValueType& type, T& tensor, Index count) {
  View view;
  view.type = type.type;
  view.storage = tensor.storage();
  view.shape = &type.shape;
  view.size = element_count(type.shape);
  view.data = tensor.data();
  view.stride = count == 0 ? 0 : view.size;
  LIPSCOPE_CHECK(tensor.size() == view.size * std::max<Index>(count, 1));
  // An empty tensor may own no memory; null is reserved for "absent".
  static Index nothing = 0;
  if (view.size == 0) view.data = &nothing;
  return view;
}

}  // namespace

ConstView view_samples(const ValueType& type, const Tensor& tensor, Index count) {
  return make_view<ConstView>(type, tensor, count);
}
MutView view_samples(const ValueType& type, Tensor& tensor, Index count) {
  return make_view<MutView>(type, tensor, count);
}

std::vector<Tensor> run_node(const Op& op, std::span<const Tensor* const> inputs,
                             std::span<const ValueType> out_types) {
  std::vector<ValueType> in_types;
  in_types.reserve(inputs.size());
  for (const Tensor* input : inputs) in_types.push_back({input->type(), input->shape()});
  std::vector<ConstView> in;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    in.push_back(view_samples(in_types[i], *inputs[i], 1));
  std::vector<Tensor> results;
  results.reserve(out_types.size());
  std::vector<MutView> out;
  for (const ValueType& type : out_types) {
    results.push_back(Tensor::zeros(type.type, type.shape));
    out.push_back(view_samples(type, results.back(), 1));
  }
  op.eval({in, out, 1});
  return results;
}

}  // namespace lipscope
