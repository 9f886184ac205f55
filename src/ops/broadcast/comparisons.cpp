// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast/binary.h"

namespace lipscope {
namespace {

// An interval of rational numbers, spelled as one of doubles.
struct Ends {
  const Rational &lo, &hi;
};

// A comparison of two broadcast operands; the answer is bool and carries no derivative.
template <class F>
class ComparisonOp final : public Op, public ExactMap {
 public:
  explicit ComparisonOp(Broadcast<2> plan) : plan_(std::move(plan)) {}
  std::string_view name() const override { return F::kName; }
  bool decides_exactly() const override { return true; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override {
    return {{ElementType::kBool, plan_.shape()}};
  }
  void eval(const EvalArgs& args) const override {
    const ConstView a = args.in[0], b = args.in[1];
    for_storage(a.storage, [&](auto zero) {
      using T = decltype(zero);
      const auto holds = [type = a.type](T x, T y) -> Index {
        return F::holds(order_key(type, x), order_key(type, y)) ? 1 : 0;
      };
      plan_.for_each_piece(args.count, [&](Index s, Index at, const auto& from, Index n) {
        combine(n, a.sample<T>(s) + from[0], plan_.step(0), b.sample<T>(s) + from[1], plan_.step(1),
                args.out[0].template sample<Index>(s) + at, holds);
      });
    });
  }

  // 0 or 1 where the boxes decide.
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const BoxEntries a(in[0]), b(in[1]);
    BoxBuilder out(plan_.shape());
    plan_.for_each_run([&](Index at, const auto& from, Index n) {
      for (Index i = 0; i < n; ++i) {
        out.set(at + i, F::decide(a[from[0] + i * plan_.step(0)], b[from[1] + i * plan_.step(1)]));
      }
    });
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    return step_gain(range(query.in)->front());
  }
  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    out[0].resize(static_cast<std::size_t>(plan_.size()));
    plan_.for_each_run([&](Index at, const auto& from, Index n) {
      for (Index i = 0; i < n; ++i) {
        const auto a = static_cast<std::size_t>(from[0] + i * plan_.step(0));
        const auto b = static_cast<std::size_t>(from[1] + i * plan_.step(1));
        out[0][static_cast<std::size_t>(at + i)] = decided((*in[0])[a], (*in[1])[b]);
      }
    });
    return true;
  }

 private:
  static RationalInterval decided(const RationalInterval& a, const RationalInterval& b) {
    if (!a.known() || !b.known()) return RationalInterval(Interval{0, 1});
    return RationalInterval(F::decide(Ends{a.lower(), a.upper()}, Ends{b.lower(), b.upper()}));
  }

  Broadcast<2> plan_;
};

Interval answer(bool always, bool never) { return {always ? 1.0 : 0.0, never ? 0.0 : 1.0}; }

struct Equal {
  static constexpr std::string_view kName = "Equal";
  template <class T>
  static bool holds(T a, T b) {
    return a == b;
  }
  template <class X>
  static Interval decide(const X& a, const X& b) {
    return answer(a.lo == a.hi && b.lo == b.hi && a.lo == b.lo, a.hi < b.lo || b.hi < a.lo);
  }
};

struct Greater {
  static constexpr std::string_view kName = "Greater";
  template <class T>
  static bool holds(T a, T b) {
    return a > b;
  }
  template <class X>
  static Interval decide(const X& a, const X& b) {
    return answer(a.lo > b.hi, a.hi <= b.lo);
  }
};

struct Less {
  static constexpr std::string_view kName = "Less";
  template <class T>
  static bool holds(T a, T b) {
    return a < b;
  }
  template <class X>
  static Interval decide(const X& a, const X& b) {
    return answer(a.hi < b.lo, a.lo >= b.hi);
  }
};

struct GreaterOrEqual {
  static constexpr std::string_view kName = "GreaterOrEqual";
  template <class T>
  static bool holds(T a, T b) {
    return a >= b;
  }
  template <class X>
  static Interval decide(const X& a, const X& b) {
    return answer(a.lo >= b.hi, a.hi < b.lo);
  }
};

struct LessOrEqual {
  static constexpr std::string_view kName = "LessOrEqual";
  template <class T>
  static bool holds(T a, T b) {
    return a <= b;
  }
  template <class X>
  static Interval decide(const X& a, const X& b) {
    return answer(a.hi <= b.lo, a.lo > b.hi);
  }
};

std::vector<OpCase> comparison_cases(Rng& rng) {
  auto cases = binary_cases(rng);
  cases.push_back(integer_operands(ElementType::kInt32));
  cases.push_back({.inputs = {{Tensor(ElementType::kUInt64, {3}, std::vector<Index>{-1, 0, 5})},
                              {Tensor(ElementType::kUInt64, {}, std::vector<Index>{5})}}});
  return cases;
}

template <class F>
OpKind comparison_kind() {
  constexpr auto kImport = [](const OnnxNode& node) -> Imported {
    require_same_type(node);
    return {std::make_shared<ComparisonOp<F>>(broadcast_operands(node)), {0, 1}};
  };
  return {F::kName, kImport, comparison_cases};
}

}  // namespace

std::vector<OpKind> op_comparisons() {
  return {comparison_kind<Equal>(), comparison_kind<Greater>(), comparison_kind<Less>(),
          comparison_kind<GreaterOrEqual>(), comparison_kind<LessOrEqual>()};
}

}  // namespace lipscope
