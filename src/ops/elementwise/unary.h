// SPDX-License-Identifier: Apache-2.0
// The family of functions applied to each entry. An operator of this family is a small struct F:
//
//   struct Relu {
//     static constexpr std::string_view kName = "Relu";
//     template <class T> T value(T x) const { return x > 0 ? x : T(0); }   // T: double or float
//     double slope(double x) const { return x > 0 ? 1 : 0; }   // derivative, one-sided at kinks
//     Interval range(const Interval& x) const;    // holds value(t) for every t in x
//     Interval slopes(const Interval& x) const;   // as in elementwise.h
//   };
//
// with its parameters as fields; everything else is derived here. Where ONNX allows integers too, F
// has `Index integer(ElementType type, Index x) const` as well. `range` and `slopes` are about real
// arithmetic, rounded outward, and may be absent; their x may be unbounded, and they give NaN where
// the function has no value on x. `WideDual wide(const WideDual& x) const`, if there, is the
// function in wide numbers, `RationalInterval exact(const RationalInterval& x) const` in rational
// ones. `Computed computed(const Machine& machine, const Computed& x) const`, if there, is how a
// machine computes the value at numbers x of its format; parameters come into it by
// machine.stored(). Without it the rounding of the operator is not known. `std::optional<
// LinearPieces> linear_pieces() const`, if there, is as in elementwise.h.
#pragma once

#include <cmath>
#include <concepts>
#include <memory>
#include <string_view>
#include <vector>

#include "graph/exact_map.h"
#include "linalg/norm/operator_norm.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/pieces.h"
#include "ops/facets/machine_map.h"
#include "ops/facets/wide_map.h"
#include "ops/kind.h"

namespace lipscope {

template <class F>
concept IntegerFunction = requires(const F& f, Index x) {
  f.integer(ElementType::kInt64, x);
};

template <class F>
concept RangedFunction = requires(const F& f, const Interval& x) {
  { f.range(x) } -> std::same_as<Interval>;
};
template <class F>
concept SlopedFunction = requires(const F& f, const Interval& x) {
  { f.slopes(x) } -> std::same_as<Interval>;
};

template <class F>
concept WideFunction = requires(const F& f, const WideDual& x) {
  { f.wide(x) } -> std::same_as<WideDual>;
};
template <class F>
concept ExactFunction = requires(const F& f, const RationalInterval& x) {
  { f.exact(x) } -> std::same_as<RationalInterval>;
};

template <class F>
concept ComputedFunction = requires(const F& f, const Machine& machine, const Computed& x) {
  { f.computed(machine, x) } -> std::same_as<Computed>;
};

// What the errors of the argument do, by the slopes, and those of the function at numbers of the
// format.
template <class F>
class UnaryStep final : public MachineStep {
 public:
  UnaryStep(const Machine& machine, F function) : machine_(machine), f_(function) {}

  void run(std::span<const ComputedView> in, const ComputedView&,
           std::span<double> error) const override {
    for (std::size_t i = 0; i < error.size(); ++i) {
      const Computed x = in[0].at(i);
      error[i] = kInf;
      if (!(x.error < kInf) || !is_bounded(x.real)) continue;
      const Interval seen = x.seen();
      const double moved = x.error == 0 ? 0 : mul_up(magnitude(f_.slopes(seen)), x.error);
      const double made = f_.computed(machine_, {seen, 0}).error;
      if (moved < kInf) error[i] = add_up(moved, made);
    }
  }

 private:
  Machine machine_;
  F f_;
};

// body(b, begin, end) over all entries of all samples; long samples are cut too, and samples that
// lie one after another are one.
template <class Body>
void over_entries(Index count, const ConstView& x, Body&& body) {
  if (count > 1 && x.stride != x.size) {
    return for_each_sample(count, x.size, [&](Index b) { body(b, Index{0}, x.size); });
  }
  parallel_for(count * x.size, kParallelGrain,
               [&](Index begin, Index end) { body(Index{0}, begin, end); });
}

template <class F>
class UnaryOp final : public Elementwise, public WideMap, public MachineMap, public ExactMap {
 public:
  // `real`: whether the entries are floating; integers have no ranges and gains.
  explicit UnaryOp(F function, bool real = true) : f_(function), real_(real) {}

  std::string_view name() const override { return F::kName; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override { return {in[0]}; }

  void eval(const EvalArgs& args) const override {
    const ConstView x = args.in[0];
    const MutView y = args.out[0];
    for_storage(x.storage, [&](auto zero) {
      using T = decltype(zero);
      over_entries(args.count, x, [&](Index b, Index begin, Index end) {
        const T* from = x.sample<T>(b);
        T* to = y.sample<T>(b);
        for (Index i = begin; i < end; ++i) to[i] = apply(from[i], x.type);
      });
    });
  }

  [[nodiscard]] const F& function() const noexcept { return f_; }

  const WideMap* wide_map() const override { return WideFunction<F> ? this : nullptr; }
  bool push_wide([[maybe_unused]] std::span<const WideTensor* const> in,
                 [[maybe_unused]] std::span<WideTensor> out) const override {
    if constexpr (WideFunction<F>) {
      out[0].resize(in[0]->value.size(), in[0]->moves());
      for_each_wide(in[0]->value.size(),
                    [&](std::size_t i) { out[0].set(i, f_.wide(in[0]->at(i))); });
      return true;
    } else {
      return false;
    }
  }

  const MachineMap* machine_map() const override {
    return ComputedFunction<F> && SlopedFunction<F> && real_ ? this : nullptr;
  }
  std::unique_ptr<const MachineStep> machine_step([[maybe_unused]] const Machine& machine,
                                                  std::size_t) const override {
    if constexpr (ComputedFunction<F> && SlopedFunction<F>) {
      if (real_) return std::make_unique<UnaryStep<F>>(machine, f_);
    }
    return nullptr;
  }
  const ExactMap* exact_map() const override { return ExactFunction<F> && real_ ? this : nullptr; }
  bool push_exact([[maybe_unused]] std::span<const ExactTensor* const> in,
                  [[maybe_unused]] std::span<ExactTensor> out) const override {
    if constexpr (ExactFunction<F>) {
      if (!real_) return false;
      for (const RationalInterval& x : *in[0]) out[0].push_back(f_.exact(x));
      return true;
    } else {
      return false;
    }
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    times_slope(args.in[0], args.tangent_in[0], args.tangent_out[0], args.count);
  }
  void vjp(const VjpArgs& args) const override {
    times_slope(args.in[0], args.grad_out[0], args.grad_in[0], args.count);
  }

  std::optional<Interval> slopes([[maybe_unused]] const Interval& x) const override {
    if constexpr (SlopedFunction<F>) {
      if (real_) return f_.slopes(x);
    }
    return std::nullopt;
  }

  std::optional<LinearPieces> linear_pieces() const override {
    if constexpr (requires(const F& f) { f.linear_pieces(); }) {
      return f_.linear_pieces();
    } else {
      return std::nullopt;
    }
  }

  std::optional<std::vector<Box>> range([[maybe_unused]] std::span<const Box> in) const override {
    if constexpr (RangedFunction<F>) {
      if (!real_) return std::nullopt;
      Box out = in[0];
      const auto lower = out.lower.doubles(), upper = out.upper.doubles();
      parallel_for(out.lower.size(), kParallelGrain, [&](Index begin, Index end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const Interval y = f_.range({lower[i], upper[i]});
          lower[i] = is_nan(y) ? -kInf : y.lo;
          upper[i] = is_nan(y) ? kInf : y.hi;
        }
      });
      return std::vector<Box>{std::move(out)};
    }
    return std::nullopt;
  }

  // The difference of two values is diag(d) times that of the points, each d_i a difference
  // quotient of f [activations-2].
  std::optional<Gain> gain([[maybe_unused]] const GainQuery& query) const override {
    if constexpr (SlopedFunction<F>) {
      if (!real_) return std::nullopt;
      const auto lower = query.in[0].lower.doubles(), upper = query.in[0].upper.doubles();
      std::vector<double> steepest(lower.size());
      parallel_for(std::ssize(steepest), kParallelGrain, [&](Index begin, Index end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
          const Interval slopes = f_.slopes({lower[i], upper[i]});
          const bool moves = lower[i] != upper[i];
          steepest[i] = is_nan(slopes) ? kInf : moves ? magnitude(slopes) : 0;
        }
      });
      return Gain{diagonal_norm_up(steepest, query.norms), "activations-2"};
    }
    return std::nullopt;
  }

 private:
  template <class T>
  T apply(T x, [[maybe_unused]] ElementType type) const {
    if constexpr (!std::is_same_v<T, Index>) {
      return f_.value(x);
    } else if constexpr (IntegerFunction<F>) {
      return wrap_integer(type, f_.integer(type, x));
    } else {
      check_failed("integer entries of a real function");
    }
  }

  void times_slope(const ConstView& x, const ConstView& v, const MutView& out, Index count) const {
    if (!out) return;
    if (!v) return fill_zero(out, count);
    over_entries(count, x, [&](Index b, Index begin, Index end) {
      const double* at = x.sample<double>(b);
      const double* from = v.sample<double>(b);
      double* to = out.sample<double>(b);
      for (Index i = begin; i < end; ++i) to[i] = f_.slope(at[i]) * from[i];
    });
  }

  F f_;
  bool real_;
};

// Refuses integer inputs.
inline void require_real(const OnnxNode& node, Index k = 0) {
  if (!is_floating(node.input(k).type)) {
    node.unsupported("element type " + std::string(to_string(node.input(k).type)));
  }
}

template <class F>
Imported import_unary(const OnnxNode& node, F function = {}) {
  if (!IntegerFunction<F> || node.input(0).type == ElementType::kBool) require_real(node);
  node.ignore({"consumed_inputs"});  // of opset 1: a hint about memory
  return std::make_shared<UnaryOp<F>>(function, is_floating(node.input(0).type));
}

// A row for a parameter-free function; `cases` as for every operator.
template <class F>
OpKind unary_kind(std::vector<OpCase> (*cases)(Rng&)) {
  return {F::kName, [](const OnnxNode& node) { return import_unary<F>(node); }, cases};
}

// Worked examples on [low, high] away from kinks, with a scalar and an empty tensor among them.
inline std::vector<OpCase> unary_cases(Rng& rng, std::vector<double> kinks = {}, double low = -2,
                                       double high = 2, const Attributes& attributes = {},
                                       int opset = 13) {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{1, 3, 4}, Shape{}, Shape{2, 0}}) {
    cases.push_back({.inputs = {{random_tensor_avoiding(rng, shape, kinks, low, high)}},
                     .attributes = attributes,
                     .opset = opset});
  }
  return cases;
}

// The same function with other attributes.
inline std::vector<OpCase> joined(std::vector<OpCase> first, const std::vector<OpCase>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace lipscope
