// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "graph/exact_map.h"
#include "ops/element_code.h"
#include "ops/entry_bounds.h"
#include "ops/integers.h"
#include "ops/unary.h"

namespace lipscope {
namespace {

// Between floating types nothing is rounded: see Tensor::cast, whose meaning this has.
class Cast final : public Op, public ExactMap {
 public:
  Cast(ElementType from, ElementType to) : from_(from), to_(to) {}
  std::string_view name() const override { return "Cast"; }
  bool decides_exactly() const override { return true; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{to_, in[0].shape}};
  }

  void eval(const EvalArgs& args) const override {
    const ConstView x = args.in[0];
    const MutView y = args.out[0];
    for_storage(x.storage, [&](auto from) {
      for_storage(y.storage, [&](auto to) {
        over_entries(args.count, x, [&](Index b, Index begin, Index end) {
          convert(x.type, x.sample<decltype(from)>(b) + begin, y.sample<decltype(to)>(b) + begin,
                  end - begin);
        });
      });
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    pass(args.tangent_in[0], args.tangent_out[0], args.count);
  }
  void vjp(const VjpArgs& args) const override {
    pass(args.grad_out[0], args.grad_in[0], args.count);
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const bool integers = in[0].lower.storage() == Storage::kInt64;
    if (integers && !is_floating(to_) && in[0].lower == in[0].upper) {
      const Tensor exact = in[0].lower.cast(to_);
      return std::vector<Box>{{exact, exact}};
    }
    const BoxEntries x(in[0]);
    BoxBuilder out(in[0].lower.shape());
    for (Index i = 0; i < x.size(); ++i) out.set(i, enclose(x[i]));
    return std::vector<Box>{std::move(out).finish()};
  }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    for (const RationalInterval& x : *in[0]) out[0].push_back(converted(x));
    return true;
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    const BoxEntries x(query.in[0]);
    EntryGain gain(x);
    for (Index i = 0; i < x.size(); ++i) gain.follow(i, reach(x[i]));
    return Gain{gain.value(query.norms), is_floating(to_) ? "pointwise-2" : "pointwise-3"};
  }
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    if (!is_floating(from_) || !is_floating(to_)) return false;
    for (Index i = 0; i < query.in[0].lower.size(); ++i) visit(i, i, 1, 1);
    return true;
  }

 private:
  // Integers that do not fit wrap around later.
  RationalInterval converted(const RationalInterval& x) const {
    if (is_floating(to_) || !x.known()) return x;
    if (to_ != ElementType::kBool)
      return never_falling(x, [](const Rational& e) { return Rational(trunc(e)); });
    const bool positive = x.lower().sign() > 0, negative = x.upper().sign() < 0;
    if (x.is(Rational()) || positive || negative)
      return RationalInterval(x.is(Rational()) ? 0.0 : 1.0);
    return RationalInterval(Interval{0, 1});
  }
  Interval enclose(const Interval& x) const {
    if (is_floating(to_)) return x;
    if (to_ == ElementType::kBool) {
      const bool zero = contains(x, 0);
      return {zero ? 0.0 : 1.0, zero && x.lo == x.hi ? 0.0 : 1.0};
    }
    const Interval cut{std::trunc(x.lo), std::trunc(x.hi)};
    if (fits(cut)) return cut;
    if (cut.lo != cut.hi || magnitude(cut) >= 0x1p53) return integer_hull(to_);
    const double wrapped = integer_to_double(to_, integer_from(to_, cut.lo));
    if (std::abs(wrapped) < 0x1p53) return point(wrapped);
    return {next_down(wrapped), next_up(wrapped)};
  }
  // Whether no entry wraps around. The ends of 64-bit types are left out: they are not doubles.
  bool fits(const Interval& x) const {
    const Interval hull = integer_hull(to_);
    const bool wide = to_ == ElementType::kInt64 || to_ == ElementType::kUInt64;
    return x.lo >= hull.lo && (wide ? x.hi < hull.hi : x.hi <= hull.hi);
  }
  double reach(const Interval& x) const {
    if (is_floating(to_)) return 1;
    const Interval values = enclose(x);
    if (values.lo == values.hi) return 0;
    if (is_floating(from_)) return kInf;
    return to_ == ElementType::kBool || fits(x) ? 1 : width_up(values);
  }

  template <class From, class To>
  void convert(ElementType type, const From* x, To* y, Index n) const {
    if constexpr (!std::is_same_v<From, Index>) {
      if constexpr (std::is_same_v<To, Index>) {
        const Tensor cut = Tensor(type, {n}, std::vector<From>(x, x + n)).cast(to_);
        std::ranges::copy(cut.ints(), y);
      } else {
        for (Index i = 0; i < n; ++i) y[i] = static_cast<To>(x[i]);
      }
    } else if constexpr (std::is_same_v<To, Index>) {
      for (Index i = 0; i < n; ++i) y[i] = wrap_integer(to_, x[i]);
    } else {
      for (Index i = 0; i < n; ++i) y[i] = static_cast<To>(integer_to_double(type, x[i]));
    }
  }

  static void pass(const ConstView& v, const MutView& out, Index count) {
    if (!out) return;
    if (!v) return fill_zero(out, count);
    for (Index b = 0; b < count; ++b) {
      std::copy_n(v.sample<double>(b), out.size, out.sample<double>(b));
    }
  }

  ElementType from_, to_;
};

Imported import_cast(const OnnxNode& node) {
  node.ignore({"saturate", "round_mode"});  // of casts to 8-bit floating types, which are refused
  const bool named = node.opset() < 6;
  return std::make_shared<Cast>(node.input(0).type,
                                named ? element_type_of_name(node, node.text("to", ""))
                                      : element_type_of_code(node, node.integer("to")));
}
Imported import_cast_like(const OnnxNode& node) {
  node.ignore({"saturate", "round_mode"});
  return std::make_shared<Cast>(node.input(0).type, node.input(1).type);
}

std::vector<Tensor> cast_inputs(Rng& rng) {
  return {random_tensor_avoiding(rng, {2, 3}, {0}),
          random_tensor(rng, {}),
          random_tensor(rng, {0, 2}),
          Tensor::integers({4}, {-1, 0, 300, 7}),
          Tensor(ElementType::kUInt64, {2}, std::vector<Index>{-1, 5}),
          Tensor(ElementType::kBool, {2}, std::vector<Index>{0, 1})};
}

std::vector<OpCase> cast_cases(Rng& rng) {
  std::vector<OpCase> cases;
  for (const Index code : {1, 3, 9, 10, 11, 13}) {
    for (Tensor& x : cast_inputs(rng)) {
      cases.push_back({.inputs = {{std::move(x)}}, .attributes = {{"to", code}}});
    }
  }
  cases.push_back({.inputs = {{random_tensor(rng, {3})}},
                   .attributes = {{"to", std::string("DOUBLE")}},
                   .opset = 1});
  return cases;
}

std::vector<OpCase> cast_like_cases(Rng& rng) {
  std::vector<OpCase> cases;
  for (const ElementType type : {ElementType::kFloat64, ElementType::kInt32, ElementType::kBool}) {
    for (Tensor& x : cast_inputs(rng)) {
      cases.push_back({.inputs = {{std::move(x)}, {Tensor::zeros(type, {1})}}, .opset = 15});
    }
  }
  return cases;
}

}  // namespace

std::vector<OpKind> op_cast() {
  return {{"Cast", import_cast, cast_cases}, {"CastLike", import_cast_like, cast_like_cases}};
}

}  // namespace lipscope
