// SPDX-License-Identifier: Apache-2.0
#include "ops/facets.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace lipscope {
namespace {

std::vector<ValueType> types_of(std::span<const Box> in) {
  std::vector<ValueType> types;
  for (const Box& box : in) types.push_back({box.lower.type(), box.lower.shape()});
  return types;
}

bool has_gain(const Op& op, std::span<const Box> in) {
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!is_floating(in[k].lower.type())) continue;
    const NormPair norms{Norm(2), Norm(2)};
    if (op.gain({.norms = norms, .in = in, .wrt = static_cast<Index>(k), .quick = true}))
      return true;
  }
  return false;
}

bool has_matrix(const Op& op, std::span<const Box> in) {
  const std::size_t outputs = op.infer(types_of(in)).size();
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!is_floating(in[k].lower.type())) continue;
    for (std::size_t o = 0; o < outputs; ++o) {
      const MatrixQuery query{in, static_cast<Index>(k), static_cast<Index>(o)};
      if (op.matrix(query, [](Index, Index, double, double) {})) return true;
    }
  }
  return false;
}

struct FacetRow {
  Facet facet;
  bool (*offered)(const Op& op, std::span<const Box> in);
};

// A facet with an accessor.
template <auto kAccessor>
bool is_told(const Op& op, std::span<const Box>) {
  return static_cast<bool>((op.*kAccessor)());
}

const FacetRow kFacetRows[] = {
    {{"derivative", "products with the Jacobian and its transpose"}, is_told<&Op::differentiable>},
    {{"range", "boxes that hold the outputs for inputs in boxes"},
     [](const Op& op, std::span<const Box> in) { return op.range(in).has_value(); }},
    {{"gain", "Lipschitz constants by each input, on boxes"}, has_gain},
    {{"matrix", "the matrix by an input, entry by entry"}, has_matrix},
    {{"relax", "affine functions below and above the output, on boxes"},
     [](const Op& op, std::span<const Box> in) { return op.relax(in).has_value(); }},
    {{"disjoint", "each input moves output entries of its own"},
     is_told<&Op::inputs_move_disjoint_outputs>},
    {{"decides", "integer outputs are found without rounding"}, is_told<&Op::decides_exactly>},
    {{"extreme", "the largest or smallest of all inputs, entry by entry"},
     is_told<&Op::picks_extreme>},
    {{"negative-scale", "entries below zero are multiplied by another input"},
     is_told<&Op::scales_negative_entries>},
    {{"elementwise", "one function of each entry, and its slopes"}, is_told<&Op::elementwise>},
    {{"box-product", "products with all Jacobians on a box"}, is_told<&Op::box_product>},
    {{"adjoint", "the derivative as nodes of a graph"}, is_told<&Op::graph_adjoint>},
    {{"wide", "values and derivatives in wide numbers"}, is_told<&Op::wide_map>},
    {{"rounding", "how far float32, float16 or bfloat16 results are off"},
     is_told<&Op::machine_map>},
    {{"exact", "values in rational numbers"}, is_told<&Op::exact_map>},
    {{"windows", "the input entries whose largest is an output entry"}, is_told<&Op::max_windows>},
    {{"softmax", "rows of softmax, or their logarithms"}, is_told<&Op::softmax_rows>},
    {{"joint-slopes", "slopes of all entries together"}, is_told<&Op::joint_slopes>},
    {{"index-map", "copies and weighted sums of entries"}, is_told<&Op::index_map>},
    {{"multilinear", "sums of products of inputs"}, is_told<&Op::multilinear>},
    {{"convolution", "a convolution or its transpose"}, is_told<&Op::convolution>},
};

bool is_finite(const Tensor& values) {
  for (Index i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values.at(i))) return false;
  }
  return true;
}

}  // namespace

std::span<const Facet> all_facets() {
  static const std::vector<Facet> all = [] {
    std::vector<Facet> facets;
    for (const FacetRow& row : kFacetRows) facets.push_back(row.facet);
    return facets;
  }();
  return all;
}

std::vector<std::string_view> offered_facets(const Op& op, std::span<const Box> in) {
  std::vector<std::string_view> names;
  for (const FacetRow& row : kFacetRows) {
    if (row.offered(op, in)) names.push_back(row.facet.name);
  }
  return names;
}

std::vector<std::string_view> offered_facets(const OpKind& kind) {
  Rng rng(1);
  std::set<std::string_view> found;
  for (const OpCase& op_case : kind.cases(rng)) {
    const Imported made = import_case(kind, op_case);
    if (made.op == nullptr) continue;
    std::vector<Box> in;
    for (const Index k : made.uses) {
      const Tensor& value = op_case.inputs[static_cast<std::size_t>(k)].value;
      in.push_back({value, value});
    }
    if (!std::ranges::all_of(in, [](const Box& box) { return is_finite(box.lower); })) continue;
    for (const std::string_view name : offered_facets(*made.op, in)) found.insert(name);
  }
  std::vector<std::string_view> names;
  for (const FacetRow& row : kFacetRows) {
    if (found.contains(row.facet.name)) names.push_back(row.facet.name);
  }
  return names;
}

}  // namespace lipscope
