// SPDX-License-Identifier: Apache-2.0
#include "graph/exact_map.h"
#include "linalg/norm/operator_norm.h"
#include "ops/facets/entry_bounds.h"
#include "ops/integer/integers.h"
#include "ops/rows/rows.h"

namespace lipscope {
namespace {

// Sums of the entries up to each one along an axis. The adjoint runs the other way.
class CumSum final : public Op, public ExactMap {
 public:
  CumSum(RowSplit split, bool exclusive, bool reverse, bool real)
      : split_(split), exclusive_(exclusive), reverse_(reverse), real_(real) {}

  std::string_view name() const override { return "CumSum"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override { return {in[0]}; }
  void eval(const EvalArgs& args) const override {
    run(args.in[0], args.out[0], args.count, reverse_);
  }
  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    transport(args.tangent_in[0], args.tangent_out[0], args.count, reverse_);
  }
  void vjp(const VjpArgs& args) const override {
    transport(args.grad_out[0], args.grad_in[0], args.count, !reverse_);
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (!real_) return std::nullopt;
    const BoxEntries x(in[0]);
    BoxBuilder out(in[0].lower.shape());
    sum_rows<Interval>([&](Index i) { return x[i]; },
                       [&](Index i, const Interval& sum) { out.set(i, sum); });
    return std::vector<Box>{std::move(out).finish()};
  }
  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    out[0].resize(in[0]->size());
    sum_rows<RationalInterval>(
        [&](Index i) { return (*in[0])[static_cast<std::size_t>(i)]; },
        [&](Index i, const RationalInterval& sum) { out[0][static_cast<std::size_t>(i)] = sum; });
    return real_;
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    if (!real_) return std::nullopt;
    const BoxEntries x(query.in[0]);
    if (!x.moves()) return Gain{0, "pointwise-6"};
    const Index n = split_.length - (exclusive_ ? 1 : 0);
    const std::vector<double> rows(static_cast<std::size_t>(split_.rows()),
                                   running_sum_norm_up(n, query.norms));
    return Gain{diagonal_norm_up(rows, query.norms), "pointwise-6"};
  }

 private:
  // set(entry, sum of the entries up to it), from get(entry).
  template <class Number, class Get, class Set>
  void sum_rows(Get&& get, Set&& set) const {
    for (Index row = 0; row < split_.rows(); ++row) {
      Number sum{};
      for (Index step = 0; step < split_.length; ++step) {
        const Index along = reverse_ ? split_.length - 1 - step : step;
        const Index i = split_.start(row) + along * split_.inner;
        if (exclusive_) set(i, sum);
        sum = sum + get(i);
        if (!exclusive_) set(i, sum);
      }
    }
  }

  // Of the n x n matrix of ones on and below the diagonal.
  static double running_sum_norm_up(Index n, const NormPair& norms) {
    if (n <= 0) return 0;
    const auto size = static_cast<double>(n);
    // Entry i is at most i^(1 - 1/p) |x|_p.
    const double inverse = norms.in.p() == kInf ? 0 : div_down(1, norms.in.p());
    std::vector<double> entries(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
      entries[static_cast<std::size_t>(i)] =
          pow_up(static_cast<double>(i + 1), std::min(1.0, sub_up(1, inverse)));
    }
    const double by_rows = pnorm_up(entries, norms.out.p());
    const Interval angle = Interval{kPiDown, kPiUp} / (4 * size + 2);
    const CornerNorms corners{.one_one = size,
                              .inf_inf = size,
                              .two_two = div_up(0.5, sin(angle).lo),
                              .one_inf = 1,
                              .inf_one = mul_up(size, (size + 1) / 2)};
    return std::min(by_rows, interpolated_norm_up(corners, norms));
  }

  void transport(const ConstView& v, const MutView& out, Index count, bool reverse) const {
    if (!out) return;
    if (!v) return fill_zero(out, count);
    run(v, out, count, reverse);
  }

  void run(const ConstView& x, const MutView& y, Index count, bool reverse) const {
    for_storage(x.storage, [&](auto zero) {
      using T = decltype(zero);
      for_each_sample(count, x.size, [&](Index b) {
        for (Index row = 0; row < split_.rows(); ++row) {
          sum_row(y.type, x.sample<T>(b) + split_.start(row), y.sample<T>(b) + split_.start(row),
                  reverse);
        }
      });
    });
  }

  template <class T>
  void sum_row(ElementType type, const T* x, T* y, bool reverse) const {
    using Acc = std::conditional_t<std::is_same_v<T, Index>, Index, double>;
    Acc sum = 0;
    for (Index step = 0; step < split_.length; ++step) {
      const Index i = (reverse ? split_.length - 1 - step : step) * split_.inner;
      if (exclusive_) y[i] = static_cast<T>(sum);
      if constexpr (std::is_same_v<T, Index>) {
        sum = wrap_integer(type, add_integers(sum, x[i]));
      } else {
        sum += static_cast<double>(x[i]);
      }
      if (!exclusive_) y[i] = static_cast<T>(sum);
    }
  }

  RowSplit split_;
  bool exclusive_, reverse_, real_;
};

Imported import_cum_sum(const OnnxNode& node) {
  const auto given = node.constant_ints(1);
  if (!given || given->size() != 1) node.malformed("the axis has to be one integer");
  const Index axis = OnnxNode::axis(given->front(), node.rank(0));
  return std::make_shared<CumSum>(RowSplit::of(node.input(0).shape, axis, axis + 1),
                                  node.integer("exclusive", 0) != 0,
                                  node.integer("reverse", 0) != 0, is_floating(node.input(0).type));
}

std::vector<OpCase> cum_sum_cases(Rng& rng) {
  std::vector<OpCase> cases;
  for (const Index exclusive : {0, 1}) {
    for (const Index reverse : {0, 1}) {
      const Attributes attributes = {{"exclusive", exclusive}, {"reverse", reverse}};
      for (const Index axis : {0, 1, -1}) {
        cases.push_back({.inputs = {{random_tensor(rng, {2, 3, 2})}, fixed_ints({axis})},
                         .attributes = attributes});
      }
      cases.push_back({.inputs = {{Tensor(ElementType::kInt32, {3}, std::vector<Index>{1, 2, 3})},
                                  {Tensor::integers({}, {0}), true}},
                       .attributes = attributes});
    }
  }
  cases.push_back({.inputs = {{random_tensor(rng, {2, 0})}, fixed_ints({1})}});
  return cases;
}

}  // namespace

std::vector<OpKind> op_cum_sum() { return {{"CumSum", import_cum_sum, cum_sum_cases}}; }

}  // namespace lipscope
