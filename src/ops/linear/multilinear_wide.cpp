// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/multilinear_wide.h"

#include <algorithm>

#include "linalg/tensor/contraction.h"
#include "linalg/tensor/wide_product.h"

namespace lipscope {
namespace {

// The products of a term of two inputs, `first` being the one of which there are several.
ProductMap product_map(const Multilinear& form, const Multilinear::Term& term, std::size_t first,
                       std::span<const WideTensor* const> in) {
  const std::size_t a = term.inputs[first], b = term.inputs[1 - first];
  ProductMap map{.a_size = std::ssize(in[a]->value),
                 .b_size = std::ssize(in[b]->value),
                 .out_size = element_count(form.out.shape),
                 .terms = 1,
                 .apply = {}};
  std::vector<Index> extents{0}, a_strides{map.a_size}, b_strides{0}, out_strides{map.out_size};
  for (std::size_t l = 0; l < form.extents.size(); ++l) {
    const bool used =
        form.out_strides[l] != 0 || form.strides[a][l] != 0 || form.strides[b][l] != 0;
    extents.push_back(used ? form.extents[l] : 1);
    a_strides.push_back(form.strides[a][l]);
    b_strides.push_back(form.strides[b][l]);
    out_strides.push_back(form.out_strides[l]);
    if (form.out_strides[l] == 0) map.terms *= std::max<Index>(1, extents.back());
  }
  map.apply = [=](Index count, const double* x, const double* y, double* out) {
    std::vector<Index> all = extents;
    all[0] = count;
    std::fill_n(out, count * out_strides[0], 0.0);
    contract_all<double>(all, {{x, a_strides}, {y, b_strides}}, 1, out_strides, out, false);
  };
  return map;
}

void add_scaled_to(std::vector<Wide>& to, const std::vector<Wide>& from, double factor) {
  const Wide by(factor);
  for_each_wide(to.size(), [&](std::size_t i) { to[i] += factor == 1 ? from[i] : by * from[i]; });
}

void push_pair(const Multilinear& form, const Multilinear::Term& term,
               std::span<const WideTensor* const> in, WideTensor& out) {
  // Several arrays against one: those that move come first.
  const std::size_t first = in[term.inputs[0]]->moves() ? 0 : 1;
  const WideTensor &a = *in[term.inputs[first]], &b = *in[term.inputs[1 - first]];
  const ProductMap map = product_map(form, term, first, in);
  std::vector<std::span<const Wide>> factors{a.value};
  if (a.moves()) factors.emplace_back(a.tangent);
  const auto found = wide_products(map, factors, b.value);
  add_scaled_to(out.value, found[0], term.coefficient);
  if (a.moves()) add_scaled_to(out.tangent, found[1], term.coefficient);
  if (b.moves()) {
    factors.resize(1);
    add_scaled_to(out.tangent, wide_products(map, factors, b.tangent)[0], term.coefficient);
  }
}

}  // namespace

bool push_wide_products(const Multilinear& form, std::span<const WideTensor* const> in,
                        WideTensor& out) {
  for (const Multilinear::Term& term : form.terms) {
    if (term.inputs.size() > 2) return false;
  }
  const bool moving = std::ranges::any_of(in, [](const WideTensor* x) { return x->moves(); });
  out.resize(static_cast<std::size_t>(element_count(form.out.shape)), moving);
  for (const Multilinear::Term& term : form.terms) {
    if (term.inputs.size() == 2) {
      push_pair(form, term, in, out);
      continue;
    }
    const WideTensor& x = *in[term.inputs[0]];
    const Wide by(term.coefficient);
    for_each_product(form, term, [&](Index row, std::span<const Index> place) {
      const auto i = static_cast<std::size_t>(row);
      const auto e = static_cast<std::size_t>(place[term.inputs[0]]);
      out.value[i] += by * x.value[e];
      if (x.moves()) out.tangent[i] += by * x.tangent[e];
    });
  }
  return true;
}

}  // namespace lipscope
