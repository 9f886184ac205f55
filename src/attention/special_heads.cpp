// SPDX-License-Identifier: Apache-2.0
#include "attention/special_heads.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "attention/affine_maps.h"
#include "attention/head_weights.h"
#include "attention/published.h"
#include "bounds/boxes.h"
#include "graph/copier.h"
#include "passes/mean_square.h"

namespace lipscope {
namespace {

// A value and the map from its entries to those of a later one.
struct Origin {
  ValueId value;
  EntryMap map;
};

double largest_weight(const EntryMap& map) {
  double largest = 0;
  for (const Interval& weight : map.weight) largest = std::max(largest, magnitude(weight));
  return largest;
}

bool without_offsets(const EntryMap& map) {
  return map.offset_known &&
         std::ranges::all_of(map.offset, [](const Interval& e) { return e == point(0); }) &&
         std::ranges::none_of(map.source, [](Index from) { return from < 0; });
}

bool is_permutation(const EntryMap& map) {
  return without_offsets(map) &&
         std::ranges::all_of(map.weight, [](const Interval& e) { return e == point(1); });
}

class SpecialBlock {
 public:
  SpecialBlock(const Graph& graph, const AttentionBlock& block, ValueId source)
      : graph_(graph), block_(block), source_(source), dependence_(graph), match_(graph) {}

  std::vector<std::vector<AttentionBound>> bounds() {
    if (block_.to_scores.source.empty() || block_.rows != block_.columns ||
        !weights_in_order(block_))
      return {};
    if (block_.kind == AttentionKind::kCosine) return cosine();
    if (block_.kind == AttentionKind::kDistance) return distance();
    return {};
  }

 private:
  [[nodiscard]] Index size(ValueId id) const { return element_count(graph_.value(id).type.shape); }

  // As far back as every node takes single entries and `allows` the map so far.
  template <class Allows>
  Origin walk_back(ValueId id, Allows&& allows) {
    Origin at{id, same_entries(size(id))};
    while (const Node* node = dependence_.maker(at.value)) {
      const auto input = dependence_.moving_input(*node);
      const auto step = input ? entry_map(dependence_, *node, *input) : std::nullopt;
      if (!step || !allows(*node, *step)) break;
      at = {node->inputs[*input], composed(*step, at.map)};
    }
    return at;
  }

  // An upper bound of the l2 norm of the affine map between two values; infinite when one input
  // after another does not lead there.
  double chain_gain(ValueId from, ValueId to) {
    double gain = 1;
    for (ValueId at = to; at != from;) {
      const Node* node = dependence_.maker(at);
      const auto input = node != nullptr ? dependence_.moving_input(*node) : std::nullopt;
      if (!input || !dependence_.affine(*node)) return kInf;
      const std::vector<Box> boxes = dependence_.loose_boxes(*node);
      const auto own = node->op->gain({{Norm(2), Norm(2)}, boxes, static_cast<Index>(*input)});
      gain = own ? gain_mul_up(gain, own->value) : kInf;
      at = node->inputs[*input];
    }
    return gain;
  }

  // Whether the source has the entries of y in another order.
  bool rearranged_from(ValueId y) {
    const Origin from =
        walk_back(source_, [](const Node&, const EntryMap& step) { return is_permutation(step); });
    const std::set<Index> entries(from.map.source.begin(), from.map.source.end());
    return from.value == y && size(source_) == size(y) &&
           static_cast<Index>(entries.size()) == size(y);
  }

  bool vanishes_at_zero(ValueId to) {
    const Graph part = graph_part(graph_, {&source_, 1}, {&to, 1});
    const Tensor zero =
        Tensor::zeros(ElementType::kFloat64, part.value(part.inputs()[0]).type.shape);
    ValueBoxes boxes(part, std::vector<Box>{{zero, zero}});
    const Box& box = boxes.at(part.outputs()[0]);
    const auto none = [](double e) { return e == 0; };
    return std::ranges::all_of(box.lower.doubles(), none) &&
           std::ranges::all_of(box.upper.doubles(), none);
  }

  // Rows x / sqrt(|x|^2 + epsilon), along the last dimension of x.
  struct UnitRows {
    ValueId x;
    double epsilon = 0;
    double norm = 0;    // of the affine map to x, from the source
    double weight = 0;  // largest one applied to the rows
    bool bias = false;
  };

  std::optional<UnitRows> unit_rows(ValueId factor, const HeadPlaces& places) {
    const Origin origin =
        walk_back(factor, [](const Node&, const EntryMap& step) { return without_offsets(step); });
    const Node* div = match_.made_by(origin.value, "Div");
    const Node* root = div != nullptr ? match_.made_by(div->inputs[1], "Sqrt") : nullptr;
    const Node* add = root != nullptr ? match_.made_by(root->inputs[0], "Add") : nullptr;
    const auto sum = add != nullptr ? match_.with_scalar(*add) : std::nullopt;
    const Node* squares = sum ? match_.made_by(sum->first, "ReduceSum") : nullptr;
    if (squares == nullptr || !(sum->second > 0)) return std::nullopt;
    const auto x = squared(match_, squares->inputs[0]);
    const Shape& shape = graph_.value(origin.value).type.shape;
    if (!x || *x != div->inputs[0] || !match_.same_shape(*x, origin.value) ||
        !match_.same_shape(*x, squares->inputs[0]) ||
        trailing_mean_axis(match_, *squares) != static_cast<Index>(shape.size()) - 1)
      return std::nullopt;
    const Index length = shape.back();
    for (std::size_t h = 0; h < places.head.size(); ++h) {
      std::set<Index> rows;  // no two tokens of a head have the same
      for (std::size_t i = 0; i < places.token.size(); ++i) {
        std::set<Index> row;
        for (std::size_t c = 0; c < places.component.size(); ++c) {
          const Index entry =
              places(static_cast<Index>(h), static_cast<Index>(i), static_cast<Index>(c));
          row.insert(origin.map.source[static_cast<std::size_t>(entry)]);
        }
        if (static_cast<Index>(row.size()) != length || row.size() != places.component.size() ||
            *row.begin() / length != *row.rbegin() / length ||
            !rows.insert(*row.begin() / length).second)
          return std::nullopt;
      }
    }
    const double norm = chain_gain(source_, *x);
    if (!std::isfinite(norm)) return std::nullopt;
    return UnitRows{*x, sum->second, norm, largest_weight(origin.map), !vanishes_at_zero(*x)};
  }

  std::vector<std::vector<AttentionBound>> cosine() {
    if (block_.masked || !without_offsets(block_.to_scores)) return {};
    const auto q = unit_rows(block_.query, query_places(block_));
    const auto k = unit_rows(block_.key, key_places(block_));
    const auto v = unit_rows(block_.value, value_places(block_));
    if (!q || !k || !v) return {};
    const double tau = mul_up(largest_weight(block_.to_scores), mul_up(q->weight, k->weight));
    const auto slope = [](const UnitRows& rows) {
      return div_up(rows.norm, sqrt_down(rows.epsilon));
    };
    const CosineAttention head{.tokens = block_.rows,
                               .query = slope(*q),
                               .key = slope(*k),
                               .value = slope(*v),
                               .nu = v->weight,
                               .tau = tau,
                               .epsilon = 1};
    std::vector<AttentionBound> found{{"cosine", "2:2", cosine_bound(head, TokenNorm::kFrobenius),
                                       Guarantee::kProved, "attention-16"}};
    if (!q->bias && !k->bias && !v->bias)
      found.push_back({"qi", "2:2", qi_bound(head), Guarantee::kReal, "attention-15"});
    return {static_cast<std::size_t>(block_.heads), found};
  }

  // A term of the scores: a value and the map from its entries.
  struct Term {
    ValueId value;
    EntryMap map;
  };

  // Takes sums apart down to the products and to sums of squares; false when something else is
  // found.
  bool collect(ValueId id, const EntryMap& map, std::vector<Term>& terms) {
    const Node* node = dependence_.maker(id);
    const bool squares = node != nullptr && node->op->name() == "ReduceSum" &&
                         squared(match_, node->inputs[0]).has_value();
    if (id == block_.products || squares) {
      terms.push_back({id, map});
      return true;
    }
    if (node == nullptr || !dependence_.affine(*node)) return false;
    for (std::size_t k = 0; k < node->inputs.size(); ++k) {
      if (!dependence_.moves(node->inputs[k])) continue;
      auto step = entry_map(dependence_, *node, k);
      if (!step) return false;
      // Offsets of a sum are its other terms; constants are not allowed anyway.
      if (!step->offset_known) {
        for (const ValueId other : node->inputs) {
          if (!dependence_.moves(other) && graph_.value(other).constant &&
              node->op->name() != "Mul" && node->op->name() != "Div")
            return false;
        }
        step->offset.assign(step->offset.size(), point(0));
        step->offset_known = true;
      }
      if (!without_offsets(*step)) return false;
      if (!collect(node->inputs[k], composed(*step, map), terms)) return false;
    }
    return true;
  }

  // The entries of y that one entry of a sum of squares adds up, sorted.
  std::optional<std::vector<std::vector<Index>>> summed(ValueId squares, ValueId y) {
    const Node& node = *dependence_.maker(squares);
    const auto base = squared(match_, node.inputs[0]);
    if (!base || !match_.same_shape(*base, node.inputs[0])) return std::nullopt;
    const Origin from =
        walk_back(*base, [](const Node&, const EntryMap& step) { return is_permutation(step); });
    if (from.value != y) return std::nullopt;
    std::vector<std::vector<Index>> sets(static_cast<std::size_t>(size(squares)));
    bool plain = true;
    const std::vector<Box> boxes = dependence_.loose_boxes(node);
    const bool known =
        visit_matrix(node, {boxes, 0, 0}, [&](Index row, Index column, double low, double high) {
          plain = plain && low == 1 && high == 1;
          sets[static_cast<std::size_t>(row)].push_back(
              from.map.source[static_cast<std::size_t>(column)]);
        });
    for (auto& set : sets) std::ranges::sort(set);
    return known && plain ? std::optional(std::move(sets)) : std::nullopt;
  }

  std::vector<std::vector<AttentionBound>> distance() {
    const auto permutes = [](const Node&, const EntryMap& step) { return is_permutation(step); };
    const Origin query = walk_back(block_.query, permutes), key = walk_back(block_.key, permutes);
    const ValueId y = query.value;
    const Index n = block_.rows;
    if (key.value != y || size(y) % n != 0) return {};
    const Index width = size(y) / n;
    // Entries of y by head and token: the same for queries and keys, those of a token together.
    const HeadPlaces at_query = query_places(block_), at_key = key_places(block_);
    std::vector<std::vector<Index>> sets;
    for (Index h = 0; h < block_.heads; ++h) {
      for (Index i = 0; i < n; ++i) {
        std::vector<Index>& set = sets.emplace_back();
        for (Index c = 0; c < block_.key_width; ++c) {
          const Index from = query.map.source[static_cast<std::size_t>(at_query(h, i, c))];
          if (from != key.map.source[static_cast<std::size_t>(at_key(h, i, c))] ||
              from / width != i)
            return {};
          set.push_back(from);
        }
        std::ranges::sort(set);
        if (std::ranges::adjacent_find(set) != set.end()) return {};
        // The same places within each token.
        const std::vector<Index>& first = sets[static_cast<std::size_t>(h * n)];
        for (std::size_t c = 0; c < set.size(); ++c) {
          if (set[c] != first[c] + i * width) return {};
        }
      }
    }
    if (!are_distances(y, sets)) return {};
    const double norm = rearranged_from(y) ? 1 : chain_gain(source_, y);
    if (!std::isfinite(norm) || !dependence_.affine_in(block_.value, y)) return {};
    const Graph part = graph_part(graph_, {&y, 1}, {&block_.value, 1});
    const ValueId end = part.outputs()[0];
    AffineMaps maps(part, part.inputs()[0]);
    const Tensor zero =
        Tensor::zeros(ElementType::kFloat64, part.value(part.inputs()[0]).type.shape);
    ValueBoxes at_zero(part, std::vector<Box>{{zero, zero}});
    std::vector<std::vector<AttentionBound>> all;
    for (Index h = 0; h < block_.heads; ++h) {
      const auto value =
          shared_weights(maps.matrix(end), at_zero.at(end), value_places(block_), h, width);
      if (!value || !of_head(value->weights, sets[static_cast<std::size_t>(h * n)])) return {};
      const double scale = mul_up(norm, spectral_norm_up(value->weights));
      all.push_back(
          {{"distance", "2:2", distance_bound(n, 1, scale, 1), Guarantee::kProved, "attention-14"},
           {"kim", "2:2", kim_bound(n, 1, scale, 1), Guarantee::kReal, "attention-13"}});
    }
    return all;
  }

  // Weights that are the same numbers for all tokens and take entries of the head alone. `first`:
  // its entries of token 0.
  static bool of_head(const IntervalMatrix& weights, const std::vector<Index>& first) {
    for (Index b = 0; b < weights.rows; ++b) {
      const bool own = std::ranges::binary_search(first, b);
      for (Index c = 0; c < weights.cols; ++c) {
        const Interval& w = weights(b, c);
        if (w.lo != w.hi || (!own && w != point(0))) return false;
      }
    }
    return true;
  }

  // Whether the scores are a positive number times 2 y_i y_j - |y_j|^2, and what all of a row has
  // in common. `sets`: the entries of y by head and token.
  bool are_distances(ValueId y, const std::vector<std::vector<Index>>& sets) {
    const auto one_number = [&](const Node& node, const EntryMap& step) {
      if (!without_offsets(step)) return false;
      if (is_permutation(step)) return true;
      return std::ranges::all_of(
          node.inputs, [&](ValueId id) { return dependence_.moves(id) || size(id) == 1; });
    };
    const Origin sum = walk_back(block_.scores, one_number);
    std::vector<Term> terms;
    if (!collect(sum.value, same_entries(size(sum.value)), terms)) return false;
    const auto product = std::ranges::find(terms, block_.products, &Term::value);
    if (product == terms.end()) return false;
    // By entry of the sum: head, query, key.
    struct Place {
      Index head = -1, row = 0, column = 0;
    };
    std::vector<Place> of_product(static_cast<std::size_t>(size(block_.products)));
    for (Index h = 0; h < block_.heads; ++h) {
      for (Index i = 0; i < block_.rows; ++i) {
        for (Index j = 0; j < block_.columns; ++j)
          of_product[static_cast<std::size_t>(product_place(block_, h, i, j))] = {h, i, j};
      }
    }
    const Interval twice = product->map.weight[0];
    const double sign = sum.map.weight[0].lo > 0 ? 1 : sum.map.weight[0].hi < 0 ? -1 : 0;
    const auto same_sign = [&](const Interval& w) { return sign * w.lo > 0 && sign * w.hi > 0; };
    if (twice.lo != twice.hi || !(sign * twice.lo > 0) ||
        !std::ranges::all_of(sum.map.weight, same_sign))
      return false;
    double of_keys = 0;
    for (const Term& term : terms) {
      const bool all_points = std::ranges::all_of(
          term.map.weight, [&](const Interval& w) { return w == term.map.weight[0]; });
      if (!all_points || term.map.weight[0].lo != term.map.weight[0].hi) return false;
      if (&term == &*product) continue;
      if (term.value == block_.products) return false;
      const auto added = summed(term.value, y);
      if (!added) return false;
      std::optional<bool> keys;
      for (std::size_t e = 0; e < term.map.source.size(); ++e) {
        const Place& at = of_product[static_cast<std::size_t>(product->map.source[e])];
        if (at.head < 0) return false;
        const auto& set = (*added)[static_cast<std::size_t>(term.map.source[e])];
        const auto is_token = [&](Index i) {
          return set == sets[static_cast<std::size_t>(at.head * block_.rows + i)];
        };
        const bool row = is_token(at.row), column = is_token(at.column);
        if (!row && !column) return false;
        if (at.row == at.column) continue;
        if (row == column || (keys && *keys != column)) return false;
        keys = column;
      }
      // One token alone: the only score does not matter.
      if (keys && *keys) {
        const double weight = term.map.weight[0].lo, more = add_down(of_keys, weight);
        if (add_up(of_keys, weight) != more) return false;
        of_keys = more;
      }
    }
    return block_.rows == 1 || 2 * of_keys == -twice.lo;
  }

  const Graph& graph_;
  const AttentionBlock& block_;
  ValueId source_;
  Dependence dependence_;
  Matcher match_;
};

}  // namespace

std::vector<std::vector<AttentionBound>> special_bounds(const Graph& graph,
                                                        const AttentionBlock& block,
                                                        ValueId source) {
  return SpecialBlock(graph, block, source).bounds();
}

}  // namespace lipscope
