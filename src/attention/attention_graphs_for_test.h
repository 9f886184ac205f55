// SPDX-License-Identifier: Apache-2.0
// Small attention graphs in many spellings.
#pragma once

#include <cmath>
#include <random>

#include "tests/support/graph_maker.h"

namespace lipscope::testing_support {

struct AttentionSpelling {
  Index tokens = 3, width = 4, heads = 2, head_width = 2;
  bool scale_queries = false;  // else the products
  bool causal = false;         // an added mask
  bool where = false;          // the last key is hidden by Where
  bool bias = true;
  bool keys_first = false;  // keys times queries, softmax along the columns
  bool rotary = false;
  bool cross = false;
  bool output = true;   // projection and residual sum
  bool turned = false;  // the transposed weights times the values
  unsigned seed = 1;
};

class AttentionMaker {
 public:
  explicit AttentionMaker(const AttentionSpelling& s) : s_(s), rng_(s.seed) {}

  Graph make() {
    const ValueId x = maker_.input({1, s_.tokens, s_.width});
    const ValueId y = s_.cross ? maker_.input({1, s_.tokens, s_.width}) : x;
    ValueId q = heads(projected(x, s_.bias)), k = heads(projected(y, s_.bias));
    const ValueId v = heads(projected(y, s_.bias));
    if (s_.rotary) q = rotated(q), k = rotated(k);
    const double scale = 1 / std::sqrt(static_cast<double>(s_.head_width));
    if (s_.scale_queries) q = maker_.add("Mul", {q, number(scale)});
    const auto turned = [&](ValueId id) {
      return maker_.add("Transpose", {id}, {{"perm", std::vector<Index>{0, 1, 3, 2}}});
    };
    ValueId scores =
        s_.keys_first ? maker_.add("MatMul", {k, turned(q)}) : maker_.add("MatMul", {q, turned(k)});
    if (!s_.scale_queries) scores = maker_.add("Div", {scores, number(1 / scale)});
    if (s_.causal) scores = maker_.add("Add", {scores, mask()});
    if (s_.where) scores = maker_.add("Where", {seen(), scores, number(-1e9)});
    ValueId weights = maker_.add("Softmax", {scores}, {{"axis", Index{s_.keys_first ? 2 : 3}}});
    if (s_.keys_first) weights = turned(weights);
    if (s_.turned) weights = turned(weights);
    ValueId out = maker_.add("MatMul", {weights, v});
    out = maker_.add("Transpose", {out}, {{"perm", std::vector<Index>{0, 2, 1, 3}}});
    const Index inner = s_.heads * s_.head_width;
    out = maker_.add("Reshape", {out, maker_.integers({1, s_.tokens, inner})});
    if (!s_.output) return maker_.finish(out);
    out = maker_.add("MatMul", {out, random({inner, s_.width})});
    return maker_.finish(maker_.add("Add", {x, out}));
  }

 private:
  ValueId number(double value) { return maker_.weights({}, {value}); }
  ValueId random(Shape shape) {
    return maker_.weights(random_tensor(rng_, std::move(shape), -1, 1));
  }
  ValueId projected(ValueId x, bool bias) {
    const Index inner = s_.heads * s_.head_width;
    const ValueId y = maker_.add("MatMul", {x, random({s_.width, inner})});
    return bias ? maker_.add("Add", {y, random({inner})}) : y;
  }
  ValueId heads(ValueId x) {
    x = maker_.add("Reshape", {x, maker_.integers({1, s_.tokens, s_.heads, s_.head_width})});
    return maker_.add("Transpose", {x}, {{"perm", std::vector<Index>{0, 2, 1, 3}}});
  }
  // x cos + swapped(x) sin with angles that depend on the token.
  ValueId rotated(ValueId x) {
    std::vector<double> cosine, sine;
    for (Index i = 0; i < s_.tokens; ++i) {
      for (Index c = 0; c < s_.head_width; ++c) {
        cosine.push_back(std::cos(static_cast<double>(i)));
        sine.push_back(std::sin(static_cast<double>(i)));
      }
    }
    const Index half = s_.head_width / 2;
    const auto part = [&](Index from, Index to) {
      return maker_.add("Slice",
                        {x, maker_.integers({from}), maker_.integers({to}), maker_.integers({3})});
    };
    const ValueId negative = maker_.add("Neg", {part(half, s_.head_width)});
    const ValueId swapped = maker_.add("Concat", {negative, part(0, half)}, {{"axis", Index{3}}});
    const Shape shape{1, 1, s_.tokens, s_.head_width};
    return maker_.add("Add", {maker_.add("Mul", {x, maker_.weights(shape, cosine)}),
                              maker_.add("Mul", {swapped, maker_.weights(shape, sine)})});
  }
  ValueId mask() {
    std::vector<double> entries;
    for (Index i = 0; i < s_.tokens; ++i) {
      for (Index j = 0; j < s_.tokens; ++j) entries.push_back(j > i ? -1e9 : 0);
    }
    return maker_.weights({1, 1, s_.tokens, s_.tokens}, entries);
  }
  ValueId seen() {
    std::vector<Index> entries(static_cast<std::size_t>(s_.tokens), 1);
    entries.back() = 0;
    return maker_.weights(Tensor(ElementType::kBool, {1, 1, 1, s_.tokens}, entries));
  }

  AttentionSpelling s_;
  Rng rng_;
  GraphMaker maker_;
};

inline Graph attention_graph(const AttentionSpelling& spelling) {
  return AttentionMaker(spelling).make();
}

}  // namespace lipscope::testing_support
