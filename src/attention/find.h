// SPDX-License-Identifier: Apache-2.0
// Attention in a graph: softmax of scores times values, however it is spelled. The matrices of
// operators decide, not their names: reshapes, transpositions, scales and masks between a product
// and a softmax are one map that moves and scales entries.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attention/entry_map.h"
#include "base/interval.h"
#include "lipscope/graph.h"

namespace lipscope {

enum class AttentionKind {
  kSelf,        // scores are products of affine functions of one value
  kCross,       // queries come from one value, keys and values from another
  kDistance,    // scores contain squared lengths of queries or keys: L2 attention
  kCosine,      // queries or keys are divided by their lengths
  kNormalised,  // queries or keys pass a normalisation of their own
  kOther,
};
[[nodiscard]] std::string_view to_string(AttentionKind kind);

// An index of a product: its extent and its strides in both factors and in the result.
struct ProductLabel {
  Index extent = 1;
  Index factor[2] = {0, 0};
  Index out = 0;
};
// The indices of a batched matrix product by where they occur.
struct ProductLabels {
  std::vector<ProductLabel> batch;   // everywhere
  std::vector<ProductLabel> own[2];  // in one factor and the result
  std::vector<ProductLabel> inner;   // summed over
};

struct AttentionBlock {
  std::string node;  // of the softmax
  AttentionKind kind = AttentionKind::kOther;
  ValueId query, key, value;     // factors of the two products
  ValueId products, scores;      // query times key, and what the softmax sees
  ValueId weights, mixed;        // after the softmax, and times the values
  ValueId output;                // `mixed` after all that is affine and follows alone
  std::vector<ValueId> sources;  // kSelf: one; kCross: of the queries, of keys and values
  Index heads = 1, rows = 1, columns = 1, key_width = 1, value_width = 1;
  int query_side = 0, weights_side = 0;  // which factor of its product it is
  ProductLabels score_labels, value_labels;
  EntryMap to_scores;    // from `products` to `scores`
  EntryMap to_factor;    // from `weights` to the factor of the values' product
  Index row_stride = 1;  // from one entry of a row of `scores` to the next
  bool masked = false, causal = false;
  std::optional<Interval> scale;  // of the products; nothing where entries differ
  std::string norm;               // operator that makes the source, when it is a normalisation
  bool residual = false;          // the output is added to what the source is made of
  std::string mlp;                // activation of a residual block of dense layers that follows
};

// In the order of the graph. Softmaxes without such products before and after are left out, and
// those whose rows are not the scores of one query each.
[[nodiscard]] std::vector<AttentionBlock> find_attention(const Graph& graph);

}  // namespace lipscope
