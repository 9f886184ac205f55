// SPDX-License-Identifier: Apache-2.0
#include "ops/integers.h"
#include "ops/rows.h"

namespace lipscope {
namespace {

// Sums of the entries up to each one along an axis. The adjoint runs the other way.
class CumSum final : public Op {
 public:
  CumSum(RowSplit split, bool exclusive, bool reverse)
      : split_(split), exclusive_(exclusive), reverse_(reverse) {}

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

 private:
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
  bool exclusive_, reverse_;
};

Imported import_cum_sum(const OnnxNode& node) {
  const auto given = node.constant_ints(1);
  if (!given || given->size() != 1) node.malformed("the axis has to be one integer");
  const Index axis = OnnxNode::axis(given->front(), node.rank(0));
  return std::make_shared<CumSum>(RowSplit::of(node.input(0).shape, axis, axis + 1),
                                  node.integer("exclusive", 0) != 0,
                                  node.integer("reverse", 0) != 0);
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
