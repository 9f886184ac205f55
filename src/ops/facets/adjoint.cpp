// SPDX-License-Identifier: Apache-2.0
#include "ops/facets/adjoint.h"

namespace lipscope {

ValueId add_products(GraphBuilder& builder, Multilinear form, std::vector<ValueId> inputs) {
  return builder.add(make_multilinear(std::move(form)), std::move(inputs), "gradient")[0];
}

ValueId add_product(GraphBuilder& builder, ValueId a, ValueId b) {
  const ValueType type = builder.value(a).type;
  const Index size = element_count(type.shape);
  return add_products(builder,
                      {.name = "Mul",
                       .out = type,
                       .extents = {size},
                       .strides = {{1}, {1}},
                       .out_strides = {1},
                       .terms = {{1, {0, 1}}}},
                      {a, b});
}

std::vector<Index> broadcast_strides(const Shape& full, const Shape& shape) {
  const std::vector<Index> own = label_strides(shape);
  std::vector<Index> strides(full.size() - own.size(), 0);
  strides.insert(strides.end(), own.begin(), own.end());
  return strides;
}

}  // namespace lipscope
