// SPDX-License-Identifier: Apache-2.0
#include "ops/integer/cast.h"

#include <algorithm>
#include <bit>

#include "graph/exact_map.h"
#include "ops/elementwise/unary.h"
#include "ops/facets/entry_bounds.h"
#include "ops/integer/element_code.h"
#include "ops/integer/integers.h"

namespace lipscope {
namespace {

class CastStep final : public MachineStep {
 public:
  CastStep(const Machine& machine, ElementType to) : machine_(machine) {
    formats_.push_back(machine.values());
    if (to != ElementType::kFloat64) formats_.push_back(NumberFormat::of(to));
  }

  void run(std::span<const ComputedView> in, const ComputedView&,
           std::span<double> error) const override {
    for (std::size_t i = 0; i < error.size(); ++i) {
      Computed x = in[0].at(i);
      for (const NumberFormat& format : formats_) {
        // The real number may have been rounded, or not, and so may the computed one.
        const double once = add_up(mul_up(format.unit, x.size()), machine_.lost(format));
        if (x.size() > 0) x.error = add_up(x.error, mul_up(2, once));
        if (!(x.size() <= format.most)) x.error = kInf;
      }
      error[i] = x.error;
    }
  }

 private:
  Machine machine_;
  std::vector<NumberFormat> formats_;
};

// Of a value that moves. Between floating types nothing is rounded: see Tensor::cast, whose meaning
// this has.
class Cast final : public Op, public MachineMap, public ExactMap {
 public:
  Cast(ElementType from, ElementType to) : from_(from), to_(to) {}
  CastTypes types() const { return {from_, to_}; }
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
  const ExactMap* exact_map() const override { return this; }
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
  const MachineMap* machine_map() const override {
    return is_floating(from_) && is_floating(to_) ? this : nullptr;
  }
  // Rounded to the type of the file and to the format of the machine, before or after.
  std::unique_ptr<const MachineStep> machine_step(const Machine& machine,
                                                  std::size_t) const override {
    if (!is_floating(from_) || !is_floating(to_)) return nullptr;
    return std::make_unique<CastStep>(machine, to_);
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

// Of a constant, to a floating type: the nearest number the type has, ties to even, infinite where
// that lies beyond the largest.
class RoundedCast final : public Op, public ExactMap {
 public:
  explicit RoundedCast(ElementType to) : to_(to) {}
  std::string_view name() const override { return "Cast"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{to_, in[0].shape}};
  }

  void eval(const EvalArgs& args) const override {
    const ConstView x = args.in[0];
    const MutView y = args.out[0];
    for_storage(x.storage, [&](auto from) {
      for_real(y.storage, [&](auto to) {
        over_entries(args.count, x, [&](Index b, Index begin, Index end) {
          for (Index i = begin; i < end; ++i) {
            const auto entry = x.sample<decltype(from)>(b)[i];
            y.sample<decltype(to)>(b)[i] = static_cast<decltype(to)>(rounded(x.type, entry));
          }
        });
      });
    });
  }

  // Rounding is monotone: an interval becomes the interval between its rounded ends.
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const Tensor &lower = in[0].lower, &upper = in[0].upper;
    Tensor low = Tensor::zeros(ElementType::kFloat64, lower.shape()), high = low;
    for (Index i = 0; i < lower.size(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      const Interval x{lowest(lower, k), highest(upper, k)};
      low.doubles()[k] = is_nan(x) ? -kInf : x.lo;
      high.doubles()[k] = is_nan(x) ? kInf : x.hi;
    }
    return std::vector<Box>{{std::move(low), std::move(high)}};
  }
  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    for (const RationalInterval& x : *in[0]) {
      if (!x.known()) {
        out[0].push_back(x);
        continue;
      }
      Interval ends{nearest(to_, x.lower()).lo, nearest(to_, x.upper()).hi};
      if (has_ways()) {
        const ElementType first = ElementType::kFloat32;
        ends = hull(ends, {round_to(to_, nearest(first, x.lower()).lo),
                           round_to(to_, nearest(first, x.upper()).hi)});
      }
      out[0].emplace_back(ends);
    }
    return true;
  }

 private:
  double rounded(ElementType, double x) const { return round_to(to_, x); }
  double rounded(ElementType type, Index x) const {
    if (to_ != ElementType::kFloat32) return round_to(to_, integer_to_double(type, x));
    return static_cast<double>(type == ElementType::kUInt64 ? static_cast<float>(bits_of(x))
                                                            : static_cast<float>(x));
  }

  // Of a number between two doubles: what the nearer of two neighbours in the type is.
  static Interval nearest(ElementType type, const Rational& x) {
    const Interval around = x.hull();
    const double low = round_to(type, around.lo), high = round_to(type, around.hi);
    if (low == high || std::isinf(low) || std::isinf(high)) return {low, high};
    const Rational twice = x + x, sum = Rational(low) + Rational(high);
    if (twice == sum) return {low, high};
    return twice < sum ? point(low) : point(high);
  }

  // Programs reach 16 bits from more digits at once or by way of float32; the file leaves it open.
  bool has_ways() const { return to_ == ElementType::kFloat16 || to_ == ElementType::kBFloat16; }
  double by_way(double x) const { return round_to(to_, round_to(ElementType::kFloat32, x)); }
  double lowest(const Tensor& x, std::size_t i) const {
    if (x.storage() == Storage::kInt64 && !has_ways()) return rounded(x.type(), x.ints()[i]);
    double entry = x.at(static_cast<Index>(i));
    if (x.storage() == Storage::kInt64 && std::abs(entry) >= 0x1p53) entry = next_down(entry);
    return has_ways() ? min_nan(round_to(to_, entry), by_way(entry)) : round_to(to_, entry);
  }
  double highest(const Tensor& x, std::size_t i) const {
    if (x.storage() == Storage::kInt64 && !has_ways()) return rounded(x.type(), x.ints()[i]);
    double entry = x.at(static_cast<Index>(i));
    if (x.storage() == Storage::kInt64 && std::abs(entry) >= 0x1p53) entry = next_up(entry);
    return has_ways() ? max_nan(round_to(to_, entry), by_way(entry)) : round_to(to_, entry);
  }

  ElementType to_;
};

Imported cast_to(const OnnxNode& node, ElementType to) {
  const CastTypes types{node.input(0).type, to};
  if (node.is_constant(0) && is_floating(to) && loses_values(types))
    return std::make_shared<RoundedCast>(to);
  return std::make_shared<Cast>(types.from, types.to);
}

Imported import_cast(const OnnxNode& node) {
  node.ignore({"saturate", "round_mode"});  // of casts to 8-bit floating types, which are refused
  const bool named = node.opset() < 6;
  return cast_to(node, named ? element_type_of_name(node, node.text("to", ""))
                             : element_type_of_code(node, node.integer("to")));
}
Imported import_cast_like(const OnnxNode& node) {
  node.ignore({"saturate", "round_mode"});
  return cast_to(node, node.input(1).type);
}

// Significant bits.
int digits_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat64: return 53;
    case ElementType::kFloat32: return 24;
    case ElementType::kFloat16: return 11;
    case ElementType::kBFloat16: return 8;
    default: return static_cast<int>(std::bit_width(bits_of(largest_integer(type))));
  }
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
  for (const Index code : {1, 3, 9, 10, 11, 13, 16}) {
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

std::optional<CastTypes> as_cast_to_real(const Op& op) {
  const auto* cast = dynamic_cast<const Cast*>(&op);
  if (cast == nullptr || !is_floating(cast->types().to)) return std::nullopt;
  return cast->types();
}

bool loses_values(const CastTypes& types) {
  const bool smaller_range =
      types.to == ElementType::kFloat16 && types.from == ElementType::kBFloat16;
  return smaller_range || digits_of(types.from) > digits_of(types.to);
}

std::shared_ptr<const Op> make_real_cast(const CastTypes& types) {
  return std::make_shared<Cast>(types.from, types.to);
}

std::vector<OpKind> op_cast() {
  return {{"Cast", import_cast, cast_cases}, {"CastLike", import_cast_like, cast_like_cases}};
}

}  // namespace lipscope
