// SPDX-License-Identifier: Apache-2.0
// The weights of the heads of an attention block, read from the graph.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "attention/find.h"
#include "attention/head.h"

namespace lipscope {

// Entries of a factor or a result, by head, token and component.
struct HeadPlaces {
  std::vector<Index> head, token, component;
  [[nodiscard]] Index operator()(Index h, Index i, Index c) const {
    return head[static_cast<std::size_t>(h)] + token[static_cast<std::size_t>(i)] +
           component[static_cast<std::size_t>(c)];
  }
};
[[nodiscard]] HeadPlaces query_places(const AttentionBlock& block);
[[nodiscard]] HeadPlaces key_places(const AttentionBlock& block);
[[nodiscard]] HeadPlaces value_places(const AttentionBlock& block);
[[nodiscard]] HeadPlaces mixed_places(const AttentionBlock& block);
// Score (i, j) of a head in `products`.
[[nodiscard]] Index product_place(const AttentionBlock& block, Index h, Index i, Index j);

// Whether the weight of score (i, j) multiplies value j in the sum for row i of the same head, and
// the softmax runs over j.
[[nodiscard]] bool weights_in_order(const AttentionBlock& block);

// One per head, or why the theorems about self-attention do not cover the block.
[[nodiscard]] std::variant<std::vector<HeadWeights>, std::string> head_weights(
    const Graph& graph, const AttentionBlock& block);

}  // namespace lipscope
