// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "graph/exact_map.h"
#include "linalg/norm/operator_norm.h"
#include "ops/facets/entry_bounds.h"
#include "ops/integer/integers.h"
#include "ops/rows/rows.h"

namespace lipscope {
namespace {

// The k largest (or smallest) entries along an axis in order, and where they stood. Of equal
// entries the one with the lower index comes first; NaN counts as the largest number.
class TopK final : public Op, public ExactMap {
 public:
  TopK(RowSplit split, Index axis, Index k, bool largest)
      : split_(split), axis_(axis), k_(k), largest_(largest) {}

  std::string_view name() const override { return "TopK"; }
  bool decides_exactly() const override { return true; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    Shape shape = in[0].shape;
    shape[static_cast<std::size_t>(axis_)] = k_;
    return {{in[0].type, shape}, {ElementType::kInt64, shape}};
  }

  void eval(const EvalArgs& args) const override {
    const ConstView x = args.in[0];
    for_storage(x.storage, [&](auto zero) {
      using T = decltype(zero);
      for_each_sample(args.count, x.size, [&](Index b) {
        for_each_row([&](Index from, Index to) {
          select(x.type, x.sample<T>(b) + from, args.out[0].template sample<T>(b) + to,
                 args.out[1].template sample<Index>(b) + to);
        });
      });
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    const MutView out = args.tangent_out[0];
    if (!out) return;
    fill_zero(out, args.count);
    if (!args.tangent_in[0]) return;
    for_each_taken(args.out[1], args.count, [&](Index b, Index from, Index to) {
      out.sample<double>(b)[to] = args.tangent_in[0].sample<double>(b)[from];
    });
  }
  void vjp(const VjpArgs& args) const override {
    const MutView out = args.grad_in[0];
    if (!out) return;
    fill_zero(out, args.count);
    if (!args.grad_out[0]) return;
    for_each_taken(args.out[1], args.count, [&](Index b, Index from, Index to) {
      out.sample<double>(b)[from] = args.grad_out[0].sample<double>(b)[to];
    });
  }

  // Order statistics are monotone in every entry [pointwise-5]. Places are known at points only.
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const BoxEntries x(in[0]);
    Shape shape = in[0].lower.shape();
    shape[static_cast<std::size_t>(axis_)] = k_;
    BoxBuilder values(shape), places(shape);
    const auto n = static_cast<std::size_t>(split_.length);
    std::vector<double> lower(n), upper(n);
    for_each_row([&](Index from, Index to) {
      for (std::size_t i = 0; i < n; ++i) {
        const Interval entry = x[from + static_cast<Index>(i) * split_.inner];
        lower[i] = entry.lo, upper[i] = entry.hi;
      }
      std::vector<Index> order(n);
      std::iota(order.begin(), order.end(), Index{0});
      const bool exact = lower == upper;
      std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) {
        const double a = lower[static_cast<std::size_t>(i)], b = lower[static_cast<std::size_t>(j)];
        return largest_ ? a > b : a < b;
      });
      for (auto* ends : {&lower, &upper}) {
        std::sort(ends->begin(), ends->end());
        if (largest_) std::reverse(ends->begin(), ends->end());
      }
      for (Index i = 0; i < k_; ++i) {
        const auto rank = static_cast<std::size_t>(i);
        values.set(to + i * split_.inner, {lower[rank], upper[rank]});
        places.set(to + i * split_.inner,
                   exact ? point(static_cast<double>(order[rank]))
                         : Interval{0, static_cast<double>(split_.length - 1)});
      }
    });
    return std::vector<Box>{std::move(values).finish(), std::move(places).finish()};
  }
  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    RowSplit shorter = split_;
    shorter.length = k_;
    for (ExactTensor& y : out) y.resize(static_cast<std::size_t>(shorter.rows() * k_));
    for (Index row = 0; row < split_.rows(); ++row) {
      const auto at = [&](Index i) -> const RationalInterval& {
        return (*in[0])[static_cast<std::size_t>(split_.start(row) + i * split_.inner)];
      };
      for (Index i = 0; i < split_.length; ++i) {
        if (at(i).number() == nullptr) return false;
      }
      std::vector<Index> order(static_cast<std::size_t>(split_.length));
      std::iota(order.begin(), order.end(), Index{0});
      std::ranges::stable_sort(order, [&](Index i, Index j) {
        return largest_ ? *at(i).number() > *at(j).number() : *at(i).number() < *at(j).number();
      });
      for (Index i = 0; i < k_; ++i) {
        const Index from = order[static_cast<std::size_t>(i)];
        const auto to = static_cast<std::size_t>(shorter.start(row) + i * split_.inner);
        out[0][to] = at(from);
        out[1][to] = RationalInterval(static_cast<double>(from));
      }
    }
    return true;
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    const bool moves = BoxEntries(query.in[0]).moves();
    const double value =
        moves ? norm_equivalence_up(split_.rows() * k_, query.norms.in, query.norms.out) : 0;
    return Gain{value, "pointwise-5"};
  }

 private:
  // body(first entry of a row of the input, and of the output).
  template <class Body>
  void for_each_row(Body&& body) const {
    RowSplit shorter = split_;
    shorter.length = k_;
    for (Index row = 0; row < split_.rows(); ++row) body(split_.start(row), shorter.start(row));
  }
  template <class Body>
  void for_each_taken(const ConstView& indices, Index count, Body&& body) const {
    for (Index b = 0; b < count; ++b) {
      const Index* index = indices.sample<Index>(b);
      for_each_row([&](Index from, Index to) {
        for (Index i = 0; i < k_; ++i) {
          const Index at = to + i * split_.inner;
          body(b, from + index[at] * split_.inner, at);
        }
      });
    }
  }

  template <class T>
  void select(ElementType type, const T* x, T* values, Index* indices) const {
    std::vector<Index> order(static_cast<std::size_t>(split_.length));
    std::iota(order.begin(), order.end(), Index{0});
    const auto before = [&](Index i, Index j) {
      const auto a = order_key(type, x[i * split_.inner]), b = order_key(type, x[j * split_.inner]);
      const bool nan_a = a != a, nan_b = b != b;
      if (nan_a != nan_b) return nan_a == largest_;
      if (!nan_a && a != b) return largest_ ? a > b : a < b;
      return i < j;
    };
    std::partial_sort(order.begin(), order.begin() + k_, order.end(), before);
    for (Index i = 0; i < k_; ++i) {
      const Index from = order[static_cast<std::size_t>(i)];
      values[i * split_.inner] = x[from * split_.inner];
      indices[i * split_.inner] = from;
    }
  }

  RowSplit split_;
  Index axis_, k_;
  bool largest_;
};

Imported import_top_k(const OnnxNode& node) {
  Index k = 0;
  if (node.opset() < 10) {
    k = node.integer("k");
  } else {
    const auto given = node.constant_ints(1);
    if (!given || given->size() != 1) node.malformed("k has to be one integer");
    k = given->front();
  }
  const Index axis = OnnxNode::axis(node.integer("axis", -1), node.rank(0));
  const RowSplit split = RowSplit::of(node.input(0).shape, axis, axis + 1);
  if (k < 0 || k > split.length) node.malformed("k is not between 0 and the size of the axis");
  const bool largest = node.integer("largest", 1) != 0;
  node.ignore({"sorted"});  // sorted is one of the orders that unsorted allows
  return std::make_shared<TopK>(split, axis, k, largest);
}

// Distinct entries at least 0.1 apart.
Tensor distinct(Rng& rng, Shape shape) {
  Tensor x = Tensor::zeros(ElementType::kFloat32, std::move(shape));
  double next = -1;
  for (double& entry : x.doubles()) entry = next += 0.1;
  std::shuffle(x.doubles().begin(), x.doubles().end(), rng);
  return x;
}

std::vector<OpCase> top_k_cases(Rng& rng) {
  std::vector<OpCase> cases = {
      {.inputs = {{distinct(rng, {2, 5})}},
       .attributes = {{"k", Index{3}}},
       .opset = 9,
       .outputs = 2},
      {.inputs = {{distinct(rng, {2, 5})}, fixed_ints({0})}, .outputs = 2},
      {.inputs = {{Tensor::integers({5}, {3, 5, 5, 3, 9})}, fixed_ints({4})}, .outputs = 2}};
  for (const Index largest : {0, 1}) {
    for (const Index axis : {0, 1, -1}) {
      cases.push_back({.inputs = {{distinct(rng, {3, 4, 2})}, fixed_ints({2})},
                       .attributes = {{"axis", axis}, {"largest", largest}, {"sorted", Index{1}}},
                       .outputs = 2});
    }
  }
  return cases;
}

}  // namespace

std::vector<OpKind> op_top_k() { return {{"TopK", import_top_k, top_k_cases}}; }

}  // namespace lipscope
