// SPDX-License-Identifier: Apache-2.0
#include "attention/find.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "attention/dependence.h"
#include "attention/head_weights.h"
#include "graph/run_node.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/multilinear.h"

namespace lipscope {
namespace {

// A product of two inputs that both move, as a batched matrix product.
std::optional<ProductLabels> matrix_product(const Dependence& dependence, const Node& node) {
  const Multilinear* form = node.op->multilinear();
  if (form == nullptr || form->terms.size() != 1 || form->terms[0].inputs.size() != 2 ||
      form->terms[0].coefficient != 1)
    return std::nullopt;
  const std::size_t a = form->terms[0].inputs[0], b = form->terms[0].inputs[1];
  if (a != 0 || b != 1 || !dependence.moves(node.inputs[0]) || !dependence.moves(node.inputs[1]))
    return std::nullopt;
  ProductLabels labels;
  for (std::size_t l = 0; l < form->extents.size(); ++l) {
    const ProductLabel label{
        form->extents[l], {form->strides[a][l], form->strides[b][l]}, form->out_strides[l]};
    const bool first = label.factor[0] != 0, second = label.factor[1] != 0, out = label.out != 0;
    if (label.extent == 1) continue;
    if (first && second) {
      (out ? labels.batch : labels.inner).push_back(label);
    } else if (out && (first || second)) {
      labels.own[first ? 0 : 1].push_back(label);
    } else {
      return std::nullopt;
    }
  }
  return labels;
}

Index extent(const std::vector<ProductLabel>& labels) {
  Index count = 1;
  for (const ProductLabel& label : labels) count *= label.extent;
  return count;
}

struct RowPlace {
  Index stride = 1, length = 1;
};

// Along which dimension the softmax normalises, found by what it does to numbers; nothing when it
// runs over several, or over one entry.
std::optional<RowPlace> softmax_rows_of(const Node& node, const ValueType& type) {
  Tensor logits = Tensor::zeros(ElementType::kFloat64, type.shape);
  const auto x = logits.doubles();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.7 * static_cast<double>(i + 1));
  const Tensor* input = &logits;
  const ValueType out{ElementType::kFloat64, type.shape};
  const Tensor y = run_node(*node.op, {&input, 1}, {&out, 1})[0];
  Index stride = 1;
  for (std::size_t axis = type.shape.size(); axis-- > 0; stride *= type.shape[axis]) {
    const Index length = type.shape[axis];
    bool sums_to_one = length > 1;
    for (Index i = 0; i < y.size() && sums_to_one; ++i) {
      if (i / stride % length != 0) continue;
      double sum = 0;
      for (Index j = 0; j < length; ++j) sum += y.at(i + j * stride);
      sums_to_one = std::abs(sum - 1) < 1e-9;
    }
    if (sums_to_one) return RowPlace{stride, length};
  }
  return std::nullopt;
}

// How far apart in the product neighbours of a row are that both come from it; 0: there are none.
Index step_in_product(const EntryMap& map, const RowPlace& place) {
  for (Index i = 0; i < static_cast<Index>(map.source.size()); ++i) {
    if (i / place.stride % place.length + 1 >= place.length) continue;
    const Index a = map.source[static_cast<std::size_t>(i)];
    const Index b = map.source[static_cast<std::size_t>(i + place.stride)];
    if (a >= 0 && b > a) return b - a;
  }
  return 0;
}

// Whether every row of the softmax has one score for each key of one query, and no two rows have
// the same query: what is masked aside. Other rows share their weights differently.
bool rows_are_queries(const AttentionBlock& block, const std::optional<RowPlace>& place) {
  if (!place) return block.columns == 1;
  if (place->length != block.columns) return false;
  constexpr Index kNone = -1;
  const std::vector<Index>& source = block.to_scores.source;
  std::vector<Index> query(static_cast<std::size_t>(block.heads * block.rows * block.columns),
                           kNone);
  std::vector<Index> row_of(static_cast<std::size_t>(block.heads * block.rows), kNone);
  for (Index h = 0; h < block.heads; ++h) {
    for (Index i = 0; i < block.rows; ++i) {
      for (Index j = 0; j < block.columns; ++j)
        query[static_cast<std::size_t>(product_place(block, h, i, j))] = h * block.rows + i;
    }
  }
  std::vector<Index> query_of(source.size() / static_cast<std::size_t>(place->length), kNone);
  for (Index p = 0; p < std::ssize(source); ++p) {
    const Index from = source[static_cast<std::size_t>(p)];
    if (from < 0) continue;
    // Every entry of the product is one score.
    const Index own = std::exchange(query[static_cast<std::size_t>(from)], kNone);
    if (own == kNone) return false;
    const Index row = p / (place->stride * place->length) * place->stride + p % place->stride;
    Index& known = query_of[static_cast<std::size_t>(row)];
    Index& used = row_of[static_cast<std::size_t>(own)];
    if ((known != kNone && known != own) || (used != kNone && used != row)) return false;
    known = own;
    used = row;
  }
  return true;
}

struct Reached {
  const Node* node = nullptr;
  EntryMap map;
  bool sum = false;  // other terms that move are added on the way
};

class Finder {
 public:
  explicit Finder(const Graph& graph) : dependence_(graph) {}

  std::vector<AttentionBlock> run() {
    std::vector<AttentionBlock> blocks;
    for (const Node& node : dependence_.graph().nodes()) {
      if (node.op->name() != "Softmax" || !dependence_.moves(node.outputs[0])) continue;
      if (auto block = around(node)) blocks.push_back(std::move(*block));
    }
    return blocks;
  }

 private:
  [[nodiscard]] const Shape& shape(ValueId id) const {
    return dependence_.graph().value(id).type.shape;
  }

  // Backwards from the softmax to the product of queries and keys.
  Reached scores_product(ValueId scores) {
    Reached reached{nullptr, same_entries(element_count(shape(scores))), false};
    for (ValueId at = scores; dependence_.maker(at) != nullptr;) {
      const Node& node = *dependence_.maker(at);
      if (matrix_product(dependence_, node)) {
        reached.node = &node;
        return reached;
      }
      auto input = dependence_.moving_input(node);
      if (!input && dependence_.affine(node)) {
        // A sum of things that move: one of them is the product.
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
          if (dependence_.moves(node.inputs[k]) && leads_to_product(node.inputs[k])) input = k;
        }
        reached.sum = true;
      }
      const auto step = input ? entry_map(dependence_, node, *input) : std::nullopt;
      if (!step) return reached;
      reached.map = composed(*step, reached.map);
      at = node.inputs[*input];
    }
    return reached;
  }

  bool leads_to_product(ValueId id) {
    for (const ValueId at : dependence_.affine_origins(id)) {
      const Node* node = dependence_.maker(at);
      if (node != nullptr && matrix_product(dependence_, *node)) return true;
    }
    return false;
  }

  // Forwards from the softmax to the product with the values.
  Reached values_product(ValueId weights) {
    Reached reached{nullptr, same_entries(element_count(shape(weights))), false};
    for (ValueId at = weights;;) {
      if (dependence_.users(at).size() != 1) return reached;
      const Node& node = *dependence_.users(at)[0];
      if (matrix_product(dependence_, node)) {
        reached.node = &node;
        side_ = node.inputs[0] == at ? 0 : 1;
        return reached;
      }
      const auto input = dependence_.moving_input(node);
      const auto step = input ? entry_map(dependence_, node, *input) : std::nullopt;
      if (!step || node.outputs.size() != 1) return reached;
      reached.map = composed(reached.map, *step);
      at = node.outputs[0];
    }
  }

  std::optional<AttentionBlock> around(const Node& softmax) {
    AttentionBlock block;
    block.node = softmax.name;
    block.scores = softmax.inputs[0];
    block.weights = softmax.outputs[0];
    const auto place = softmax_rows_of(softmax, dependence_.graph().value(block.scores).type);
    Reached after = values_product(block.weights);
    if (after.node == nullptr) return std::nullopt;
    block.weights_side = side_;
    block.value = after.node->inputs[static_cast<std::size_t>(1 - side_)];
    block.mixed = after.node->outputs[0];
    block.value_labels = *matrix_product(dependence_, *after.node);
    block.to_factor = std::move(after.map);
    Reached before = scores_product(block.scores);
    if (before.node == nullptr) return without_product(block);
    block.products = before.node->outputs[0];
    block.score_labels = *matrix_product(dependence_, *before.node);
    block.to_scores = std::move(before.map);
    if (!sides(block, *before.node, place) || !rows_are_queries(block, place)) return std::nullopt;
    describe_mask(block);
    block.kind = kind(block, before.sum);
    follow_output(block);
    return block;
  }

  // Scores that are no product: distances written as sums of squares of differences.
  std::optional<AttentionBlock> without_product(AttentionBlock& block) {
    const Shape& full = shape(block.scores);
    block.columns = full.empty() ? 1 : full.back();
    block.rows = full.size() < 2 ? 1 : full[full.size() - 2];
    block.heads = element_count(full) / std::max<Index>(1, block.rows * block.columns);
    block.value_width = extent(block.value_labels.own[1 - block.weights_side]);
    block.kind = AttentionKind::kOther;
    for (ValueId at = block.scores; dependence_.maker(at) != nullptr;) {
      const Node& node = *dependence_.maker(at);
      const auto name = node.op->name();
      if (name == "ReduceSumSquare" || name == "ReduceL2" ||
          (name == "ReduceSum" && squares(node.inputs[0])))
        block.kind = AttentionKind::kDistance;
      const auto input = dependence_.moving_input(node);
      if (!input) break;
      at = node.inputs[*input];
    }
    follow_output(block);
    return block;
  }

  bool squares(ValueId id) const {
    const Node* node = dependence_.maker(id);
    if (node == nullptr) return false;
    return node->op->name() == "Pow" || (node->op->name() == "Mul" && node->inputs.size() == 2 &&
                                         node->inputs[0] == node->inputs[1]);
  }

  // Which factor the queries are: the other one has the index along which the softmax runs.
  bool sides(AttentionBlock& block, const Node& product, const std::optional<RowPlace>& place) {
    const ProductLabels& labels = block.score_labels;
    block.heads = extent(labels.batch);
    block.key_width = extent(labels.inner);
    int keys = 1;
    if (place) {
      block.row_stride = place->stride;
      const Index step = step_in_product(block.to_scores, *place);
      const auto has = [&](int side) {
        return std::ranges::any_of(labels.own[side],
                                   [&](const ProductLabel& l) { return l.out == step; });
      };
      if (!has(1) && !has(0)) return false;
      keys = has(1) ? 1 : 0;
    } else if (!labels.own[0].empty() || !labels.own[1].empty()) {
      keys = labels.own[0].empty() ? 0 : 1;  // rows of one entry
    }
    block.query_side = 1 - keys;
    block.query = product.inputs[static_cast<std::size_t>(1 - keys)];
    block.key = product.inputs[static_cast<std::size_t>(keys)];
    block.rows = extent(labels.own[1 - keys]);
    block.columns = extent(labels.own[keys]);
    block.value_width = extent(block.value_labels.own[1 - block.weights_side]);
    return extent(block.value_labels.inner) == block.columns;
  }

  void describe_mask(AttentionBlock& block) const {
    const EntryMap& map = block.to_scores;
    std::optional<Interval> scale;
    bool same = true;
    for (std::size_t i = 0; i < map.source.size(); ++i) {
      if (map.source[i] >= 0) {
        if (!scale) scale = map.weight[i];
        same = same && *scale == map.weight[i];
      }
      block.masked = block.masked || map.source[i] < 0 || map.offset[i] != point(0);
    }
    block.masked = block.masked || !map.offset_known;
    if (same && scale) block.scale = scale;
    block.causal = causal(block);
  }

  // Every key after its query is far below those up to it.
  static bool causal(const AttentionBlock& block) {
    const Index n = block.rows, m = block.columns;
    const EntryMap& map = block.to_scores;
    if (n != m || n < 2 || block.row_stride != 1 || !map.offset_known) return false;
    constexpr double kFar = 1000;
    for (Index p = 0; p < static_cast<Index>(map.source.size()); ++p) {
      const Index i = p / m % n, j = p % m;
      const Interval& offset = map.offset[static_cast<std::size_t>(p)];
      if (j > i ? offset.hi > -kFar : offset.lo < -kFar) return false;
    }
    return true;
  }

  AttentionKind kind(AttentionBlock& block, bool sum) {
    if (sum) {
      const auto origins = dependence_.affine_origins(block.scores);
      const bool lengths = std::ranges::any_of(origins, [&](ValueId id) {
        const Node* node = dependence_.maker(id);
        return node != nullptr && (node->op->name() == "ReduceSumSquare" || squares(id));
      });
      return lengths ? AttentionKind::kDistance : AttentionKind::kOther;
    }
    const auto query = origin(block, {block.query}), rest = origin(block, {block.key, block.value});
    const auto all = origin(block, {block.query, block.key, block.value});
    if (all) {
      block.sources = {*all};
      describe_source(block, *all);
      return AttentionKind::kSelf;
    }
    if (query && rest && !same_tokens(block)) {
      block.sources = {*query, *rest};
      return AttentionKind::kCross;
    }
    for (const ValueId id : {block.query, block.key}) {
      const Node* node = dependence_.maker(dependence_.affine_origins(id).back());
      if (node == nullptr) continue;
      const auto name = node->op->name();
      if (name == "Div" || name == "LpNormalization") return AttentionKind::kCosine;
      if (is_norm(name)) return AttentionKind::kNormalised;
    }
    return AttentionKind::kOther;
  }

  static bool is_norm(std::string_view name) { return name.find("Norm") != std::string_view::npos; }

  // Queries and keys that come from one value through something that is not affine.
  bool same_tokens(const AttentionBlock& block) {
    const ValueId a = dependence_.affine_origins(block.query).back();
    const ValueId b = dependence_.affine_origins(block.key).back();
    const ValueId v = dependence_.affine_origins(block.value).back();
    const auto shared = [&](ValueId x) { return dependence_.depends(x, v) && x != v; };
    return shared(a) || shared(b);
  }

  // The latest value of which all are affine functions.
  std::optional<ValueId> origin(const AttentionBlock&, const std::vector<ValueId>& ids) {
    for (const ValueId candidate : dependence_.affine_origins(ids[0])) {
      if (candidate == ids[0] && ids.size() > 1) continue;
      if (std::ranges::all_of(ids,
                              [&](ValueId id) { return dependence_.affine_in(id, candidate); }))
        return candidate;
    }
    return std::nullopt;
  }

  void describe_source(AttentionBlock& block, ValueId source) {
    // A normalisation may be followed by transpositions; an affine one may be anywhere before.
    for (ValueId at = source; dependence_.maker(at) != nullptr;) {
      const Node& node = *dependence_.maker(at);
      if (is_norm(node.op->name())) {
        block.norm = std::string(node.op->name());
        return;
      }
      const auto input = dependence_.moving_input(node);
      if (!input || !entry_map(dependence_, node, *input)) return;
      at = node.inputs[*input];
    }
  }

  void follow_output(AttentionBlock& block) {
    ValueId at = block.mixed;
    for (;;) {
      if (dependence_.users(at).size() != 1) break;
      const Node& node = *dependence_.users(at)[0];
      if (!dependence_.moving_input(node) || !dependence_.affine(node)) break;
      at = node.outputs[0];
    }
    block.output = at;
    if (dependence_.users(at).size() != 1) return;
    const Node& sum = *dependence_.users(at)[0];
    if (sum.op->name() != "Add" || sum.inputs.size() != 2) return;
    const ValueId other = sum.inputs[sum.inputs[0] == at ? 1 : 0];
    block.residual = other != at && dependence_.depends(at, other);
    if (block.residual) block.mlp = dense_block(sum.outputs[0]);
  }

  // The activation of x + dense(activation(dense(norm(x)))), x given.
  [[nodiscard]] std::string dense_block(ValueId x) const {
    for (const Node* sum : dependence_.users(x)) {
      if (sum->op->name() != "Add" || sum->inputs.size() != 2) continue;
      const ValueId other = sum->inputs[sum->inputs[0] == x ? 1 : 0];
      std::string activation;
      for (ValueId at = other; at != x && dependence_.maker(at) != nullptr;) {
        const Node& node = *dependence_.maker(at);
        const auto input = dependence_.moving_input(node);
        if (!input) break;
        if (node.op->elementwise() != nullptr) {
          activation = std::string(node.op->name());
        }
        at = node.inputs[*input];
        if (at == x) return activation;
      }
    }
    return {};
  }

  Dependence dependence_;
  int side_ = 0;
};

}  // namespace

std::string_view to_string(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kSelf: return "self";
    case AttentionKind::kCross: return "cross";
    case AttentionKind::kDistance: return "distance";
    case AttentionKind::kCosine: return "cosine";
    case AttentionKind::kNormalised: return "normalised";
    case AttentionKind::kOther: return "other";
  }
  return "other";
}

std::vector<AttentionBlock> find_attention(const Graph& graph) { return Finder(graph).run(); }

}  // namespace lipscope
