// SPDX-License-Identifier: Apache-2.0
// Each facet of an operator against its values and derivatives, on one worked example.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "base/interval.h"
#include "lipscope/evaluate.h"
#include "tests/kits/op_cases.h"

namespace lipscope::kits {

struct FacetCase {
  FacetCase(const OpCase& example, const Built& made, Rng& random)
      : op_case(example), built(made), rng(random) {
    for (const ValueId id : node().inputs) {
      const auto inputs = built.graph.inputs();
      const auto found = std::ranges::find(inputs, id);
      source.push_back(found == inputs.end() ? -1 : found - inputs.begin());
      in.push_back(found == inputs.end() ? *built.graph.value(id).constant->exact()
                                         : built.inputs[static_cast<std::size_t>(source.back())]);
    }
  }
  [[nodiscard]] const Node& node() const { return built.graph.nodes()[0]; }
  [[nodiscard]] const Op& op() const { return *node().op; }
  [[nodiscard]] const ValueType& output(std::size_t o) const {
    return built.graph.value(node().outputs[o]).type;
  }
  // Whether input k of the node is a floating input of the graph that nothing else is.
  [[nodiscard]] bool moves(std::size_t k) const {
    return source[k] >= 0 && is_floating(in[k].type()) &&
           std::ranges::count(source, source[k]) == 1;
  }
  // Whether no input of the graph is an integer.
  [[nodiscard]] bool is_real() const {
    return std::ranges::all_of(built.inputs, [](const Tensor& x) { return is_floating(x.type()); });
  }
  // Boxes of the inputs of the node around those of the example.
  [[nodiscard]] std::vector<Box> boxes(double width) const {
    std::vector<Box> all;
    for (std::size_t k = 0; k < in.size(); ++k)
      all.push_back(source[k] < 0 ? Box{in[k], in[k]} : around(in[k], width));
    return all;
  }
  // Points of the inputs of the graph in boxes of the inputs of the node.
  [[nodiscard]] std::vector<Tensor> sample(const std::vector<Box>& all) const {
    std::vector<Tensor> points = built.inputs;
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (source[k] < 0 || !is_floating(in[k].type())) continue;
      const auto to = points[static_cast<std::size_t>(source[k])].doubles();
      for (std::size_t i = 0; i < to.size(); ++i) {
        const double low = all[k].lower.doubles()[i], high = all[k].upper.doubles()[i];
        to[i] = std::clamp(low + uniform(rng) * (high - low), low, high);
      }
    }
    return points;
  }
  // The boxes of the inputs of the node at a point.
  [[nodiscard]] std::vector<Box> at(const std::vector<Tensor>& point) const {
    std::vector<Box> all;
    for (std::size_t k = 0; k < in.size(); ++k) {
      const Tensor& x = source[k] < 0 ? in[k] : point[static_cast<std::size_t>(source[k])];
      all.push_back({x, x});
    }
    return all;
  }

  const OpCase& op_case;
  const Built& built;
  Rng& rng;
  std::vector<Tensor> in;     // of the node
  std::vector<Index> source;  // by input of the node: the input of the graph; -1: a constant
};

inline Interval entry_of(const Box& box, Index i) { return {box.lower.at(i), box.upper.at(i)}; }

// How often something was compared.
struct FacetCheck {
  std::string_view facet;
  int (*run)(const FacetCase& c);
};

// facet_slopes.cpp
int check_elementwise(const FacetCase& c);
int check_box_product(const FacetCase& c);
int check_adjoint(const FacetCase& c);
// facet_numbers.cpp
int check_wide(const FacetCase& c);
int check_exact(const FacetCase& c);
int check_rounding(const FacetCase& c);
// facet_forms.cpp
int check_disjoint(const FacetCase& c);
int check_decides(const FacetCase& c);
int check_extreme(const FacetCase& c);
int check_negative_scale(const FacetCase& c);
int check_windows(const FacetCase& c);
int check_softmax(const FacetCase& c);
int check_index_map(const FacetCase& c);
int check_multilinear(const FacetCase& c);
int check_convolution(const FacetCase& c);

}  // namespace lipscope::kits
