// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"
#include "ops/facets/entry_bounds.h"

namespace lipscope {
namespace {

// A question asked of each entry; the answer is bool and carries no derivative.
template <class F>
class TestOp final : public Op {
 public:
  explicit TestOp(F test) : test_(test) {}
  std::string_view name() const override { return F::kName; }
  bool decides_exactly() const override { return true; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{ElementType::kBool, in[0].shape}};
  }
  void eval(const EvalArgs& args) const override {
    const ConstView x = args.in[0];
    const MutView y = args.out[0];
    for_real(x.storage, [&](auto zero) {
      using T = decltype(zero);
      over_entries(args.count, x, [&](Index b, Index begin, Index end) {
        const T* from = x.sample<T>(b);
        Index* to = y.sample<Index>(b);
        for (Index i = begin; i < end; ++i) to[i] = test_(static_cast<double>(from[i])) ? 1 : 0;
      });
    });
  }

  // The points of an interval are finite, and the answer is no; a constant may be anything.
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    BoxBuilder out(in[0].lower.shape());
    for (Index i = 0; i < in[0].lower.size(); ++i) {
      const double lower = in[0].lower.at(i), upper = in[0].upper.at(i);
      const bool nan = std::isnan(lower) || std::isnan(upper);
      if (lower == upper || (nan && std::isnan(lower) == std::isnan(upper))) {
        out.set(i, point(test_(lower) ? 1 : 0));
      } else {
        out.set(i, {0, nan ? 1.0 : 0.0});
      }
    }
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    const Box& x = query.in[0];
    for (Index i = 0; i < x.lower.size(); ++i) {
      const double lower = x.lower.at(i), upper = x.upper.at(i);
      const bool proper = lower < upper || (lower == upper && std::isfinite(lower));
      if (!proper) return Gain{kInf, "pointwise-3"};
    }
    return Gain{0, "pointwise-3"};
  }

 private:
  F test_;
};

struct IsNaN {
  static constexpr std::string_view kName = "IsNaN";
  bool operator()(double x) const { return std::isnan(x); }
};
struct IsInf {
  static constexpr std::string_view kName = "IsInf";
  bool negative, positive;
  bool operator()(double x) const { return std::isinf(x) && (x < 0 ? negative : positive); }
};

Imported import_is_nan(const OnnxNode& node) {
  require_real(node);
  return std::make_shared<TestOp<IsNaN>>(IsNaN{});
}
Imported import_is_inf(const OnnxNode& node) {
  require_real(node);
  return std::make_shared<TestOp<IsInf>>(
      IsInf{.negative = node.integer("detect_negative", 1) != 0,
            .positive = node.integer("detect_positive", 1) != 0});
}

std::vector<OpCase> special_cases(Rng& rng, const Attributes& attributes) {
  const Tensor special = Tensor::vector({1, NAN, -HUGE_VAL, HUGE_VAL});
  return {{.inputs = {{special}}, .attributes = attributes},
          {.inputs = {{random_tensor(rng, {})}}, .attributes = attributes}};
}

}  // namespace

std::vector<OpKind> op_is_nan() {
  return {
      {IsNaN::kName, import_is_nan, [](Rng& rng) { return special_cases(rng, {}); }},
      {IsInf::kName, import_is_inf, [](Rng& rng) {
         return joined(special_cases(rng, {}), special_cases(rng, {{"detect_negative", Index{0}}}));
       }}};
}

}  // namespace lipscope
