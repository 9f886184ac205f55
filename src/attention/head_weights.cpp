// SPDX-License-Identifier: Apache-2.0
#include "attention/head_weights.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "attention/affine_maps.h"
#include "attention/dependence.h"
#include "bounds/boxes.h"
#include "graph/copier.h"
#include "linalg/tensor/row_matrix.h"
#include "lipscope/evaluate.h"

namespace lipscope {
namespace {

// Offsets of all combinations of labels, the last running fastest.
template <class Stride>
std::vector<Index> offsets(const std::vector<ProductLabel>& labels, Stride&& stride) {
  std::vector<Index> out{0};
  for (const ProductLabel& label : labels) {
    std::vector<Index> next;
    for (const Index base : out) {
      for (Index i = 0; i < label.extent; ++i) next.push_back(base + i * stride(label));
    }
    out = std::move(next);
  }
  return out;
}

HeadPlaces factor_places(const ProductLabels& labels, int side) {
  const auto stride = [side](const ProductLabel& l) { return l.factor[side]; };
  return {offsets(labels.batch, stride), offsets(labels.own[side], stride),
          offsets(labels.inner, stride)};
}

// Whether what tokens have in common is all there is, up to rounding.
bool thin(std::span<const Interval> entries, double largest) {
  constexpr double kRounding = 1e-9;
  double widest = 0;
  for (const Interval& e : entries) {
    largest = std::max(largest, magnitude(e));
    widest = std::max(widest, e.hi - e.lo);
  }
  return widest <= kRounding * largest;
}

// A look at a few rows in plain arithmetic, since reading all weights takes long: whether the first
// and the last token have the same.
bool look_shared(const Graph& part, const HeadPlaces (&places)[3], Index width) {
  constexpr double kSame = 1e-6;
  const Tensor zero = Tensor::zeros(ElementType::kFloat64, part.value(part.inputs()[0]).type.shape);
  const Trace trace(part, std::vector{zero});
  for (std::size_t k = 0; k < 3; ++k) {
    const auto last = static_cast<Index>(places[k].token.size()) - 1;
    const auto components = static_cast<Index>(places[k].component.size());
    for (const Index c : {Index{0}, components / 2, components - 1}) {
      const auto row = [&](Index i) {
        std::vector<Tensor> weights(3);
        weights[k] = Tensor::zeros(ElementType::kFloat64, part.value(part.outputs()[k]).type.shape);
        weights[k].doubles()[static_cast<std::size_t>(places[k](0, i, c))] = 1;
        return trace.vjp(weights)[0];
      };
      const Tensor first = row(0), other = row(last);
      double largest = 0, difference = 0;
      for (Index b = 0; b < width; ++b) {
        largest = std::max(largest, std::abs(first.at(b)));
        difference = std::max(difference, std::abs(first.at(b) - other.at(last * width + b)));
      }
      if (difference > kSame * largest) return false;
    }
  }
  return true;
}

std::optional<std::vector<Interval>> mask_of(const AttentionBlock& block, Index head) {
  std::map<Index, std::size_t> place;  // in scores, of an entry of the products
  for (std::size_t p = 0; p < block.to_scores.source.size(); ++p) {
    if (block.to_scores.source[p] >= 0) {
      place[block.to_scores.source[p]] = p;
    } else if (block.to_scores.offset[p].hi > -kMaxDouble) {
      return std::nullopt;  // a score that does not move, and is not minus infinity
    }
  }
  std::vector<Interval> mask;
  bool any = false;
  for (Index i = 0; i < block.rows; ++i) {
    for (Index j = 0; j < block.columns; ++j) {
      const auto found = place.find(product_place(block, head, i, j));
      mask.push_back(found == place.end() ? Interval{-kInf, -kMaxDouble}
                                          : block.to_scores.offset[found->second]);
      any = any || mask.back() != point(0);
    }
  }
  if (!any) mask.clear();
  return mask;
}

}  // namespace

bool weights_in_order(const AttentionBlock& block) {
  if (!block.to_factor.offset_known) return false;
  std::map<Index, Index> place;
  for (std::size_t p = 0; p < block.to_scores.source.size(); ++p) {
    if (block.to_scores.source[p] >= 0) place[block.to_scores.source[p]] = static_cast<Index>(p);
  }
  const int side = block.weights_side;
  const auto stride = [side](const ProductLabel& l) { return l.factor[side]; };
  const std::vector<Index> heads = offsets(block.value_labels.batch, stride);
  const std::vector<Index> rows = offsets(block.value_labels.own[side], stride);
  const std::vector<Index> inner = offsets(block.value_labels.inner, stride);
  if (std::ssize(heads) != block.heads || std::ssize(rows) != block.rows ||
      std::ssize(inner) != block.columns)
    return false;
  const Index span = block.row_stride * block.columns;
  for (Index h = 0; h < block.heads; ++h) {
    for (Index i = 0; i < block.rows; ++i) {
      std::optional<std::pair<Index, Index>> row;
      for (Index j = 0; j < block.columns; ++j) {
        const auto at = static_cast<std::size_t>(heads[static_cast<std::size_t>(h)] +
                                                 rows[static_cast<std::size_t>(i)] +
                                                 inner[static_cast<std::size_t>(j)]);
        const Index from = block.to_factor.source[at];
        if (from < 0 || block.to_factor.weight[at] != point(1) ||
            block.to_factor.offset[at] != point(0))
          return false;
        const std::pair here{from / span, from % block.row_stride};
        if (row && *row != here) return false;
        row = here;
        const auto known = place.find(product_place(block, h, i, j));
        const bool masked = block.to_scores.source[static_cast<std::size_t>(from)] < 0;
        if (known == place.end() ? !masked : known->second != from) return false;
      }
    }
  }
  return true;
}

HeadPlaces query_places(const AttentionBlock& block) {
  return factor_places(block.score_labels, block.query_side);
}
HeadPlaces key_places(const AttentionBlock& block) {
  return factor_places(block.score_labels, 1 - block.query_side);
}
HeadPlaces value_places(const AttentionBlock& block) {
  const int side = 1 - block.weights_side;
  HeadPlaces places = factor_places(block.value_labels, side);
  std::swap(places.token, places.component);  // summed over tokens
  return places;
}
HeadPlaces mixed_places(const AttentionBlock& block) {
  const auto stride = [](const ProductLabel& l) { return l.out; };
  return {offsets(block.value_labels.batch, stride),
          offsets(block.value_labels.own[block.weights_side], stride),
          offsets(block.value_labels.own[1 - block.weights_side], stride)};
}

Index product_place(const AttentionBlock& block, Index h, Index i, Index j) {
  const auto stride = [](const ProductLabel& l) { return l.out; };
  const auto at = [&](const std::vector<ProductLabel>& labels, Index k) {
    Index place = 0;
    for (std::size_t l = labels.size(); l-- > 0; k /= labels[l].extent)
      place += k % labels[l].extent * stride(labels[l]);
    return place;
  };
  return at(block.score_labels.batch, h) + at(block.score_labels.own[block.query_side], i) +
         at(block.score_labels.own[1 - block.query_side], j);
}

std::variant<std::vector<HeadWeights>, std::string> head_weights(const Graph& graph,
                                                                 const AttentionBlock& block) {
  constexpr double kMostEntries = 3e7;
  if (block.kind != AttentionKind::kSelf)
    return "no self-attention on products of affine functions of the tokens";
  if (!block.scale) return "scores are scaled differently";
  if (!block.to_scores.offset_known) return "the mask is not known";
  if (!weights_in_order(block)) return "weights reach the values in another order";
  const ValueId source = block.sources[0];
  const Index size = element_count(graph.value(source).type.shape);
  if (block.rows != block.columns || size % block.rows != 0)
    return "queries and keys are different tokens";
  const Index width = size / block.rows;
  if (static_cast<double>(size) * static_cast<double>(block.heads * block.key_width) > kMostEntries)
    return "too large to read its weights";
  const std::vector<ValueId> ends{block.query, block.key, block.value};
  const Graph part = graph_part(graph, {&source, 1}, ends);
  const HeadPlaces places[] = {query_places(block), key_places(block), value_places(block)};
  if (!look_shared(part, places, width))
    return "weights differ between tokens (rotary or positional)";
  AffineMaps maps(part, part.inputs()[0]);
  const Tensor zero = Tensor::zeros(ElementType::kFloat64, part.value(part.inputs()[0]).type.shape);
  ValueBoxes at_zero(part, std::vector<Box>{{zero, zero}});
  std::vector<HeadWeights> heads;
  for (Index h = 0; h < block.heads; ++h) {
    std::vector<SharedWeights> found;
    for (std::size_t k = 0; k < 3; ++k) {
      const ValueId end = part.outputs()[k];
      auto weights = shared_weights(maps.matrix(end), at_zero.at(end), places[k], h, width);
      if (!weights) return "tokens are mixed before the attention";
      if (!thin(weights->weights.entries, 0) || !thin(weights->bias, 1))
        return "weights differ between tokens (rotary or positional)";
      found.push_back(std::move(*weights));
    }
    auto mask = mask_of(block, h);
    if (!mask) return "masked scores are numbers of their own";
    for (Interval& e : found[0].weights.entries) e *= *block.scale;
    for (Interval& e : found[0].bias) e *= *block.scale;
    const auto bias_of = [&](std::size_t k) {
      const bool none =
          std::ranges::all_of(found[k].bias, [](const Interval& e) { return e == point(0); });
      return none ? std::vector<Interval>{} : found[k].bias;
    };
    heads.push_back({block.rows, width, block.key_width, block.value_width, found[0].weights,
                     found[1].weights, found[2].weights, bias_of(0), bias_of(1), bias_of(2),
                     std::move(*mask)});
  }
  return heads;
}

}  // namespace lipscope
