// SPDX-License-Identifier: Apache-2.0
// The family of functions of two broadcast operands. An operator of this family is a struct F:
//
//   struct Mul {
//     static constexpr std::string_view kName = "Mul";
//     template <class T> T value(T a, T b) const { return a * b; }       // T: double or float
//     double slope_a(double, double b) const { return b; }               // partial derivatives
//     double slope_b(double a, double) const { return a; }
//     Index integer(ElementType, Index a, Index b) const { return multiply_integers(a, b); }
//     Interval range(Interval a, Interval b) const { return a * b; }     // all values, outward
//     double reach_a(Interval, Interval b) const { return magnitude(b); }  // bounds of |slope_a|
//     double reach_b(Interval a, Interval) const { return magnitude(a); }
//   };
//
// Either value and slopes or integer may be missing. reach_a is infinity unless it bounds every
// quotient |f(a,b) - f(a',b)| / |a - a'| in the intervals; the same for b [pointwise-2]. The result
// has the element type of a. A function linear in a also has Interval weight_a(Interval b), its
// factor; the same for b. PairPlane plane(a, b), if there, bounds it by affine functions. Operands
// of different types are allowed where F has a member kMixed; integers are then read as reals. One
// with a member kField takes any numbers that can be added, multiplied and divided; another one may
// have RationalInterval exact(a, b), the function in rational arithmetic. Computed
// computed(machine, a, b), if there, is how a machine computes it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/exact_map.h"
#include "ops/broadcast/broadcast.h"
#include "ops/facets/adjoint.h"
#include "ops/facets/affine_rows.h"
#include "ops/facets/entry_bounds.h"
#include "ops/facets/machine_map.h"
#include "ops/facets/wide_map.h"
#include "ops/integer/integers.h"
#include "ops/kind.h"

namespace lipscope {

template <class F>
concept RealBinary = requires(const F& f, double x) {
  f.value(x, x);
};
template <class F>
concept IntegerBinary = requires(const F& f, Index x) {
  f.integer(ElementType::kInt64, x, x);
};
template <class F>
concept BoundedBinary = requires(const F& f, const Interval& x) {
  f.range(x, x);
  f.reach_a(x, x);
  f.reach_b(x, x);
};
template <class F>
concept PlaneBinary = requires(const F& f, const Interval& x) {
  f.plane(x, x);
};
// Linear in one operand: weight_a(b) or weight_b(a) is the factor of the other one.
template <class F>
concept LinearInFirst = requires(const F& f, const Interval& x) {
  f.weight_a(x);
};
template <class F>
concept LinearInSecond = requires(const F& f, const Interval& x) {
  f.weight_b(x);
};
template <class F>
concept MixedBinary = requires {
  F::kMixed;
};

// Sums, products and quotients: value() is for wide and rational numbers, too.
template <class F>
concept FieldBinary = requires {
  F::kField;
};
template <class F>
concept ExactBinary = requires(const F& f, const RationalInterval& x) {
  f.exact(x, x);
};
template <class F>
concept AdjointBinary = requires(const AdjointArgs& args) {
  F::add_adjoint(args);
};
template <class F>
concept ComputedBinary = requires(const F& f, const Machine& machine, const Computed& x) {
  f.computed(machine, x, x);
};

template <class F>
class BinaryStep final : public MachineStep {
 public:
  BinaryStep(const Machine& machine, F function, Broadcast<2> plan)
      : machine_(machine), f_(function), plan_(std::move(plan)) {}

  void run(std::span<const ComputedView> in, const ComputedView&,
           std::span<double> error) const override {
    plan_.for_each_run([&](Index at, const auto& from, Index n) {
      for (Index i = 0; i < n; ++i) {
        const auto a = static_cast<std::size_t>(from[0] + i * plan_.step(0));
        const auto b = static_cast<std::size_t>(from[1] + i * plan_.step(1));
        error[static_cast<std::size_t>(at + i)] =
            f_.computed(machine_, in[0].at(a), in[1].at(b)).error;
      }
    });
  }

 private:
  Machine machine_;
  F f_;
  Broadcast<2> plan_;
};

// out[i] = f(a[i * step_a], b[i * step_b]) with steps 0 or 1.
template <class A, class B, class R, class F>
void combine(Index n, const A* a, Index step_a, const B* b, Index step_b, R* __restrict out,
             F&& f) {
  if (step_a != 0 && step_b != 0) {
    for (Index i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  } else if (step_a != 0) {
    const B fixed = *b;
    for (Index i = 0; i < n; ++i) out[i] = f(a[i], fixed);
  } else {
    const A fixed = *a;
    for (Index i = 0; i < n; ++i) out[i] = f(fixed, b[i * step_b]);
  }
}

// The view itself, or its integers converted into `buffer`.
[[nodiscard]] inline ConstView as_doubles(const ConstView& view, Index count,
                                          std::vector<double>& buffer) {
  if (view.storage != Storage::kInt64) return view;
  const Index n = view.stride == 0 ? view.size : view.size * count;
  buffer.resize(static_cast<std::size_t>(n));
  const Index* from = view.sample<Index>(0);
  for (Index i = 0; i < n; ++i) {
    buffer[static_cast<std::size_t>(i)] = integer_to_double(view.type, from[i]);
  }
  ConstView converted = view;
  converted.storage = Storage::kDouble;
  converted.data = buffer.data();
  return converted;
}

template <class F>
class BinaryOp final : public Op,
                       public GraphAdjoint,
                       public WideMap,
                       public MachineMap,
                       public ExactMap {
 public:
  // `type`: of the first operand and the result. `numpy`: broadcast by its rule.
  BinaryOp(F function, Broadcast<2> plan, ElementType type, bool numpy = true)
      : f_(function), plan_(std::move(plan)), type_(type), numpy_(numpy) {}

  std::string_view name() const override { return F::kName; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{in[0].type, plan_.shape()}};
  }

  void eval(const EvalArgs& args) const override {
    for_storage(args.in[0].storage, [&](auto a) {
      for_storage(args.in[1].storage, [&](auto b) {
        using A = decltype(a);
        using B = decltype(b);
        if constexpr (std::is_same_v<A, B> || MixedBinary<F>) eval_as<A, B>(args);
      });
    });
  }

  bool differentiable() const override { return RealBinary<F>; }
  void jvp(const JvpArgs& args) const override {
    if constexpr (RealBinary<F>) {
      push(args, 0, [&](double a, double b) { return f_.slope_a(a, b); });
      push(args, 1, [&](double a, double b) { return f_.slope_b(a, b); });
    }
  }
  void vjp(const VjpArgs& args) const override {
    if constexpr (RealBinary<F>) {
      pull(args, 0, [&](double a, double b) { return f_.slope_a(a, b); });
      pull(args, 1, [&](double a, double b) { return f_.slope_b(a, b); });
    }
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (is_floating(type_) && !BoundedBinary<F>) return std::nullopt;
    const BoxEntries a(in[0]), b(in[1]);
    BoxBuilder out(plan_.shape());
    for_each_pair([&](Index o, Index i, Index j) { out.set(o, enclose(a[i], b[j])); });
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    if (is_floating(type_) && !BoundedBinary<F>) return std::nullopt;
    const BoxEntries a(query.in[0]), b(query.in[1]);
    const bool first = query.wrt == 0;
    EntryGain gain(first ? a : b);
    for_each_pair(
        [&](Index, Index i, Index j) { gain.follow(first ? i : j, reach(a[i], b[j], first)); });
    return Gain{gain.value(query.norms), is_floating(type_) ? "pointwise-2" : "pointwise-3"};
  }
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    if constexpr (LinearInFirst<F>) {
      if (query.wrt == 0 && is_floating(type_)) {
        const BoxEntries b(query.in[1]);
        for_each_pair([&](Index o, Index i, Index j) {
          const Interval w = f_.weight_a(b[j]);
          visit(o, i, w.lo, w.hi);
        });
        return true;
      }
    }
    if constexpr (LinearInSecond<F>) {
      if (query.wrt == 1 && is_floating(type_)) {
        const BoxEntries a(query.in[0]);
        for_each_pair([&](Index o, Index i, Index j) {
          const Interval w = f_.weight_b(a[i]);
          visit(o, j, w.lo, w.hi);
        });
        return true;
      }
    }
    return false;
  }
  std::optional<Relaxation> relax(std::span<const Box> in) const override {
    if constexpr (PlaneBinary<F>) {
      if (!is_floating(type_)) return std::nullopt;
      const BoxEntries a(in[0]), b(in[1]);
      AffineRowsBuilder rows(plan_.size());
      for_each_pair([&](Index o, Index i, Index j) {
        const bool known = is_bounded(a[i]) && is_bounded(b[j]);
        const PairPlane p = known ? f_.plane(a[i], b[j]) : PairPlane{.offset = kEntire};
        rows.add(o, i, p.weight_a);
        rows.add(o, a.size() + j, p.weight_b);
        rows.add_offset(o, p.offset);
      });
      return relaxation(rows, rows);
    } else {
      return std::nullopt;
    }
  }

  const GraphAdjoint* graph_adjoint() const override {
    return AdjointBinary<F> && numpy_ ? this : nullptr;
  }
  std::optional<ValueId> add_adjoint(const AdjointArgs& args) const override {
    if constexpr (AdjointBinary<F>) {
      return numpy_ ? std::optional(F::add_adjoint(args)) : std::nullopt;
    } else {
      return std::nullopt;
    }
  }

  bool scales_negative_entries() const override {
    return requires { F::kScalesNegativeEntries; };
  }

  const WideMap* wide_map() const override { return FieldBinary<F> ? this : nullptr; }
  bool push_wide([[maybe_unused]] std::span<const WideTensor* const> in,
                 [[maybe_unused]] std::span<WideTensor> out) const override {
    if constexpr (FieldBinary<F>) {
      const WideTensor &a = *in[0], &b = *in[1];
      out[0].resize(static_cast<std::size_t>(plan_.size()), a.moves() || b.moves());
      for_each_pair([&](Index o, Index i, Index j) {
        out[0].set(static_cast<std::size_t>(o),
                   f_.value(a.at(static_cast<std::size_t>(i)), b.at(static_cast<std::size_t>(j))));
      });
      return true;
    } else {
      return false;
    }
  }

  const MachineMap* machine_map() const override {
    return ComputedBinary<F> && is_floating(type_) ? this : nullptr;
  }
  std::unique_ptr<const MachineStep> machine_step([[maybe_unused]] const Machine& machine,
                                                  std::size_t) const override {
    if constexpr (ComputedBinary<F>) {
      if (is_floating(type_)) return std::make_unique<BinaryStep<F>>(machine, f_, plan_);
    }
    return nullptr;
  }
  const ExactMap* exact_map() const override {
    return is_floating(type_) && (FieldBinary<F> || ExactBinary<F>) ? this : nullptr;
  }
  bool push_exact([[maybe_unused]] std::span<const ExactTensor* const> in,
                  [[maybe_unused]] std::span<ExactTensor> out) const override {
    const auto push = [&](auto&& f) {
      if (!is_floating(type_)) return false;
      out[0].resize(static_cast<std::size_t>(plan_.size()));
      for_each_pair([&](Index o, Index i, Index j) {
        out[0][static_cast<std::size_t>(o)] =
            f((*in[0])[static_cast<std::size_t>(i)], (*in[1])[static_cast<std::size_t>(j)]);
      });
      return true;
    };
    using Exact = RationalInterval;
    if constexpr (FieldBinary<F>) {
      return push([&](const Exact& a, const Exact& b) { return f_.value(a, b); });
    } else if constexpr (ExactBinary<F>) {
      return push([&](const Exact& a, const Exact& b) { return f_.exact(a, b); });
    } else {
      return false;
    }
  }

 private:
  // body(output entry, entry of a, entry of b).
  template <class Body>
  void for_each_pair(Body&& body) const {
    plan_.for_each_run([&](Index at, const auto& from, Index n) {
      for (Index i = 0; i < n; ++i) {
        body(at + i, from[0] + i * plan_.step(0), from[1] + i * plan_.step(1));
      }
    });
  }
  Interval enclose(const Interval& a, const Interval& b) const {
    if (is_floating(type_)) {
      if constexpr (BoundedBinary<F>) return f_.range(a, b);
    } else if constexpr (IntegerBinary<F>) {
      const Interval any = cut_to_integers(a, b);
      const auto exact = [](const Interval& x) {
        return x.lo == x.hi && magnitude(x) < 0x1p53 && std::trunc(x.lo) == x.lo;
      };
      if (!exact(a) || !exact(b)) return any;
      const Index y = wrap_integer(
          type_, f_.integer(type_, static_cast<Index>(a.lo), static_cast<Index>(b.lo)));
      const double value = integer_to_double(type_, y);
      const bool large = std::abs(value) >= 0x1p53;
      return contains(any, value) && !large ? point(value)
             : MixedBinary<F>               ? any
                                            : Interval{next_down(value), next_up(value)};
    }
    return kEntire;
  }
  // What a function of reals cut to integers can give; any integer of the type for others.
  Interval cut_to_integers(const Interval& a, const Interval& b) const {
    const Interval any = integer_hull(type_);
    if constexpr (MixedBinary<F> && BoundedBinary<F>) {
      const Interval y = f_.range(a, b);
      const Interval cut{std::trunc(y.lo), std::trunc(y.hi)};
      if (contains(any, cut) && magnitude(cut) < 0x1p53) return cut;
    }
    return any;
  }
  // Integers that differ do so by 1 or more, hence the width bounds every quotient of integers.
  double reach(const Interval& a, const Interval& b, bool first) const {
    if (is_floating(type_)) {
      if constexpr (BoundedBinary<F>) return first ? f_.reach_a(a, b) : f_.reach_b(a, b);
    }
    const double width = width_up(enclose(a, b));
    return MixedBinary<F> && width != 0 ? kInf : width;
  }

  template <class A, class B>
  A apply(ElementType type_a, ElementType type_b, A a, B b) const {
    constexpr bool kIntegerA = std::is_same_v<A, Index>, kIntegerB = std::is_same_v<B, Index>;
    if constexpr (kIntegerA && kIntegerB) {
      if constexpr (IntegerBinary<F>) return wrap_integer(type_a, f_.integer(type_a, a, b));
    } else if constexpr (kIntegerA) {
      return integer_from(type_a, f_.value(integer_to_double(type_a, a), static_cast<double>(b)));
    } else if constexpr (kIntegerB) {
      return f_.value(a, static_cast<A>(integer_to_double(type_b, b)));
    } else if constexpr (RealBinary<F>) {
      return f_.value(a, static_cast<A>(b));
    }
    check_failed("operands of a kind the importer refuses");
  }

  template <class A, class B>
  void eval_as(const EvalArgs& args) const {
    const ConstView a = args.in[0], b = args.in[1];
    const auto f = [&, type_a = a.type, type_b = b.type](A x, B y) {
      return apply<A, B>(type_a, type_b, x, y);
    };
    plan_.for_each_piece(args.count, [&](Index s, Index at, const auto& from, Index n) {
      combine(n, a.sample<A>(s) + from[0], plan_.step(0), b.sample<B>(s) + from[1], plan_.step(1),
              args.out[0].template sample<A>(s) + at, f);
    });
  }

  // Adds the part of tangent_out that comes from operand k; operand 0 comes first and overwrites.
  template <class Slope>
  void push(const JvpArgs& args, std::size_t k, Slope&& slope) const {
    const ConstView t = args.tangent_in[k];
    const MutView out = args.tangent_out[0];
    if (!out) return;
    if (k == 0) fill_zero(out, args.count);
    if (!t) return;
    std::vector<double> buffer_a, buffer_b;
    const ConstView a = as_doubles(args.in[0], args.count, buffer_a);
    const ConstView b = as_doubles(args.in[1], args.count, buffer_b);
    plan_.for_each_piece(args.count, [&](Index s, Index at, const auto& from, Index n) {
      const double* x = a.sample<double>(s) + from[0];
      const double* y = b.sample<double>(s) + from[1];
      const double* v = t.sample<double>(s) + from[k];
      double* to = out.sample<double>(s) + at;
      const Index sx = plan_.step(0), sy = plan_.step(1), sv = plan_.step(k);
      for (Index i = 0; i < n; ++i) to[i] += slope(x[i * sx], y[i * sy]) * v[i * sv];
    });
  }

  template <class Slope>
  void pull(const VjpArgs& args, std::size_t k, Slope&& slope) const {
    const ConstView g = args.grad_out[0];
    const MutView out = args.grad_in[k];
    if (!out) return;
    fill_zero(out, args.count);
    if (!g) return;
    std::vector<double> buffer_a, buffer_b;
    const ConstView a = as_doubles(args.in[0], args.count, buffer_a);
    const ConstView b = as_doubles(args.in[1], args.count, buffer_b);
    for_each_sample(args.count, plan_.size(), [&](Index s) {
      plan_.for_each_run([&](Index at, const auto& from, Index n) {
        const double* x = a.sample<double>(s) + from[0];
        const double* y = b.sample<double>(s) + from[1];
        const double* v = g.sample<double>(s) + at;
        double* to = out.sample<double>(s) + from[k];
        const Index sx = plan_.step(0), sy = plan_.step(1), st = plan_.step(k);
        for (Index i = 0; i < n; ++i) to[i * st] += slope(x[i * sx], y[i * sy]) * v[i];
      });
    });
  }

  F f_;
  Broadcast<2> plan_;
  ElementType type_;
  bool numpy_;
};

inline void require_same_type(const OnnxNode& node, Index first = 0) {
  for (Index k = first + 1; k < node.num_inputs(); ++k) {
    if (node.input(k).type != node.input(first).type) {
      node.malformed("inputs of different element types");
    }
  }
}

template <class F>
Imported import_binary(const OnnxNode& node, F function = {}) {
  const ElementType type = node.input(0).type;
  if (!MixedBinary<F>) require_same_type(node);
  if (is_floating(type) ? !RealBinary<F> : !IntegerBinary<F>) {
    node.unsupported("element type " + std::string(to_string(type)));
  }
  const bool numpy = node.opset() >= 7;
  return {std::make_shared<BinaryOp<F>>(function, broadcast_operands(node), type, numpy), {0, 1}};
}

template <class F>
OpKind binary_kind(std::vector<OpCase> (*cases)(Rng&)) {
  return {F::kName, [](const OnnxNode& node) { return import_binary<F>(node); }, cases};
}

// Worked examples of every way to broadcast, with both operands in [low, high].
[[nodiscard]] std::vector<OpCase> binary_cases(Rng& rng, double low = -2, double high = 2);
// Integer operands of a type, the second without zeros.
[[nodiscard]] OpCase integer_operands(ElementType type);

}  // namespace lipscope
