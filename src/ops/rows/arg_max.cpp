// SPDX-License-Identifier: Apache-2.0
#include "graph/exact_map.h"
#include "ops/facets/entry_bounds.h"
#include "ops/integer/integers.h"
#include "ops/rows/rows.h"

namespace lipscope {
namespace {

// Where along an axis the largest or smallest entry stands. As in numpy a NaN beats everything.
class ArgExtreme final : public Op, public ExactMap {
 public:
  struct Fields {
    bool largest, last, keep;
    Index axis;
  };
  ArgExtreme(Fields fields, RowSplit split) : fields_(fields), split_(split) {}

  std::string_view name() const override { return fields_.largest ? "ArgMax" : "ArgMin"; }
  bool decides_exactly() const override { return true; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    Shape shape = in[0].shape;
    if (fields_.keep) {
      shape[static_cast<std::size_t>(fields_.axis)] = 1;
    } else {
      shape.erase(shape.begin() + fields_.axis);
    }
    return {{ElementType::kInt64, std::move(shape)}};
  }

  void eval(const EvalArgs& args) const override {
    const ConstView x = args.in[0];
    for_storage(x.storage, [&](auto zero) {
      using T = decltype(zero);
      for_each_sample(args.count, x.size, [&](Index b) {
        for (Index row = 0; row < split_.rows(); ++row) {
          args.out[0].template sample<Index>(b)[row] =
              find(x.sample<T>(b) + split_.start(row), x.type);
        }
      });
    });
  }

  // The place where one entry is certain to win, otherwise any.
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const BoxEntries x(in[0]);
    const std::vector<ValueType> types{{ElementType::kFloat64, in[0].lower.shape()}};
    BoxBuilder out(infer(types).front().shape);
    for (Index row = 0; row < split_.rows(); ++row) out.set(row, winner(x, split_.start(row)));
    return std::vector<Box>{std::move(out).finish()};
  }
  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    for (Index row = 0; row < split_.rows(); ++row) out[0].push_back(exact_winner(*in[0], row));
    return true;
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    return step_gain(range(query.in)->front());
  }

 private:
  Interval winner(const BoxEntries& x, Index start) const {
    std::vector<Interval> row;
    for (Index i = 0; i < split_.length; ++i) {
      const Interval entry = x[start + i * split_.inner];
      row.push_back(fields_.largest ? entry : -entry);
    }
    return place(find_winner([&](Index i) { return row[static_cast<std::size_t>(i)].lo; },
                             [&](Index i) { return row[static_cast<std::size_t>(i)].hi; }));
  }
  RationalInterval exact_winner(const ExactTensor& x, Index row) const {
    ExactTensor entries;
    for (Index i = 0; i < split_.length; ++i) {
      const auto at = static_cast<std::size_t>(split_.start(row) + i * split_.inner);
      if (!x[at].known()) return RationalInterval(place(std::nullopt));
      entries.push_back(fields_.largest ? x[at] : -x[at]);
    }
    return RationalInterval(place(find_winner(
        [&](Index i) -> const Rational& { return entries[static_cast<std::size_t>(i)].lower(); },
        [&](Index i) -> const Rational& { return entries[static_cast<std::size_t>(i)].upper(); })));
  }
  // The entry that is the largest wherever all of them are between lower(i) and upper(i).
  template <class Lower, class Upper>
  std::optional<Index> find_winner(Lower&& lower, Upper&& upper) const {
    Index best = 0;
    for (Index i = 1; i < split_.length; ++i) {
      if (lower(i) > lower(best) || (fields_.last && lower(i) == lower(best))) best = i;
    }
    for (Index i = 0; i < split_.length; ++i) {
      const bool ties_lose = fields_.last ? i < best : i > best;
      const bool loses = upper(i) < lower(best) || (ties_lose && upper(i) == lower(best));
      if (i != best && !loses) return std::nullopt;
    }
    return best;
  }
  Interval place(std::optional<Index> known) const {
    if (known) return point(static_cast<double>(*known));
    return {0, static_cast<double>(split_.length - 1)};
  }

  template <class T>
  Index find(const T* row, ElementType type) const {
    Index best = 0;
    for (Index i = 1; i < split_.length; ++i) {
      const auto a = order_key(type, row[i * split_.inner]);
      const auto b = order_key(type, row[best * split_.inner]);
      const bool better = (fields_.largest ? a > b : a < b) || (a != a && b == b);
      const bool equal = a == b || (a != a && b != b);
      if (better || (equal && fields_.last)) best = i;
    }
    return best;
  }

  Fields fields_;
  RowSplit split_;
};

Imported import_arg_extreme(const OnnxNode& node) {
  const Index axis = OnnxNode::axis(node.integer("axis", 0), std::max<Index>(1, node.rank(0)));
  if (node.rank(0) == 0) node.unsupported("a tensor without axes");
  const RowSplit split = RowSplit::of(node.input(0).shape, axis, axis + 1);
  if (split.length == 0) node.malformed("there is nothing along the axis");
  return std::make_shared<ArgExtreme>(
      ArgExtreme::Fields{.largest = node.type() == "ArgMax",
                         .last = node.integer("select_last_index", 0) != 0,
                         .keep = node.integer("keepdims", 1) != 0,
                         .axis = axis},
      split);
}

std::vector<OpCase> arg_cases(Rng& rng) {
  std::vector<OpCase> cases;
  for (const Index axis : {0, 1, -1}) {
    for (const Index keep : {0, 1}) {
      cases.push_back({.inputs = {{random_tensor(rng, {2, 3, 2})}},
                       .attributes = {{"axis", axis}, {"keepdims", keep}}});
    }
  }
  for (const Index last : {0, 1}) {
    cases.push_back({.inputs = {{Tensor::integers({1, 4}, {3, 5, 5, 3})}},
                     .attributes = {{"axis", Index{1}}, {"select_last_index", last}}});
  }
  cases.push_back({.inputs = {{random_tensor(rng, {3, 0})}}});
  return cases;
}

}  // namespace

std::vector<OpKind> op_arg_max() {
  return {{"ArgMax", import_arg_extreme, arg_cases}, {"ArgMin", import_arg_extreme, arg_cases}};
}

}  // namespace lipscope
