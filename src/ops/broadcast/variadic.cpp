// SPDX-License-Identifier: Apache-2.0
#include "base/checkpoint.h"
#include "machine/entry_sum.h"
#include "ops/broadcast/binary.h"
#include "ops/broadcast/max_relax.h"

namespace lipscope {
namespace {

// Any number of broadcast inputs folded from left to right into the first. F has
// - fold(a, b) for reals and, where it selects, for integers by their order keys;
// - kSelects: whether the result is one of the inputs (the first that equals it counts);
// - weight(n): the factor after folding n inputs.
template <class F>
class VariadicOp final : public Op, public MachineMap, public ExactMap {
 public:
  VariadicOp(Shape full, std::vector<Broadcast<1>> plans)
      : full_(std::move(full)), plans_(std::move(plans)) {}

  std::string_view name() const override { return F::kName; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{in[0].type, full_}};
  }

  void eval(const EvalArgs& args) const override {
    const MutView out = args.out[0];
    for_storage(out.storage, [&](auto zero) {
      using T = decltype(zero);
      const T weight = static_cast<T>(F::weight(plans_.size()));
      for (std::size_t k = 0; k < plans_.size(); ++k) {
        const Index step = plans_[k].step(0);
        const bool last = weight != T(1) && k + 1 == plans_.size();
        plans_[k].for_each_piece(args.count, [&](Index s, Index at, const auto& from, Index n) {
          const T* x = args.in[k].template sample<T>(s) + from[0];
          T* to = out.sample<T>(s) + at;
          if (k == 0) {
            for (Index i = 0; i < n; ++i) to[i] = x[i * step];
          } else {
            for (Index i = 0; i < n; ++i) to[i] = fold(out.type, to[i], x[i * step]);
          }
          if (!last) return;
          for (Index i = 0; i < n; ++i) to[i] *= weight;
        });
      }
    });
  }

  std::optional<Extreme> picks_extreme() const override {
    if constexpr (F::kSelects) {
      return F::kExtreme;
    } else {
      return std::nullopt;
    }
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    const MutView out = args.tangent_out[0];
    if (!out) return;
    fill_zero(out, args.count);
    const double weight = F::weight(plans_.size());
    for_each_sample(args.count, element_count(full_), [&](Index s) {
      Owners owners(args.out[0].size);
      for (std::size_t k = 0; k < plans_.size(); ++k) {
        const ConstView t = args.tangent_in[k];
        double* to = out.sample<double>(s);
        for_each_owned(args.in[k], args.out[0], s, k, owners, [&](Index at, Index from) {
          if (t) to[at] += weight * t.sample<double>(s)[from];
        });
      }
    });
  }
  void vjp(const VjpArgs& args) const override {
    for (const MutView& out : args.grad_in) {
      if (out) fill_zero(out, args.count);
    }
    const ConstView g = args.grad_out[0];
    if (!g) return;
    const double weight = F::weight(plans_.size());
    for_each_sample(args.count, element_count(full_), [&](Index s) {
      Owners owners(args.out[0].size);
      for (std::size_t k = 0; k < plans_.size(); ++k) {
        const MutView to = args.grad_in[k];
        for_each_owned(args.in[k], args.out[0], s, k, owners, [&](Index at, Index from) {
          if (to) to.sample<double>(s)[from] += weight * g.sample<double>(s)[at];
        });
      }
    });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    BoxBuilder out(full_);
    for (std::size_t k = 0; k < plans_.size(); ++k) {
      const BoxEntries x(in[k]);
      for_each_source(k, [&](Index o, Index i) {
        out.set(o, k == 0 ? x[i] : F::fold_ranges(out.at(o), x[i]));
      });
    }
    if constexpr (!F::kSelects) {
      const auto n = static_cast<double>(plans_.size());
      for (Index o = 0; F::weight(2) != 1 && o < element_count(full_); ++o) {
        out.set(o, out.at(o) / n);
      }
    }
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    const auto moved = static_cast<std::size_t>(query.wrt);
    const BoxEntries x(query.in[moved]);
    EntryGain gain(x);
    if constexpr (F::kSelects) {
      // An input that never wins has no say. One that is not bounded may win: no need to look at
      // the others, which takes all of them for each.
      const auto size = static_cast<std::size_t>(element_count(full_));
      std::vector<Interval> rivals(size, F::kLoser);
      bool may_lose = false;
      for (Index i = 0; i < x.size(); ++i) may_lose = may_lose || F::may_lose(x[i]);
      for (std::size_t k = 0; may_lose && k < plans_.size(); ++k) {
        if (k == moved) continue;
        charge(static_cast<double>(size));
        const BoxEntries other(query.in[k]);
        for_each_source(k, [&](Index o, Index i) {
          Interval& rival = rivals[static_cast<std::size_t>(o)];
          rival = F::fold_ranges(rival, other[i]);
        });
      }
      for_each_source(moved, [&](Index o, Index i) {
        gain.follow(i, F::never_wins(x[i], rivals[static_cast<std::size_t>(o)]) ? 0 : 1);
      });
    } else {
      const double rate = F::weight(2) == 1 ? 1 : div_up(1, static_cast<double>(plans_.size()));
      for_each_source(moved, [&](Index, Index i) { gain.follow(i, rate); });
    }
    return Gain{gain.value(query.norms), "pointwise-2"};
  }
  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    for (std::size_t k = 0; k < plans_.size(); ++k) {
      if (k == 0) out[0].resize(static_cast<std::size_t>(element_count(full_)));
      for_each_source(k, [&](Index o, Index i) {
        const RationalInterval& x = (*in[k])[static_cast<std::size_t>(i)];
        RationalInterval& all = out[0][static_cast<std::size_t>(o)];
        all = k == 0 ? x : F::fold_ranges(all, x);
      });
    }
    const RationalInterval count(static_cast<double>(plans_.size()));
    for (RationalInterval& x : out[0]) x = F::weight(2) != 1 ? x / count : x;
    return true;
  }
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    if constexpr (F::kSelects) return plans_.size() == 1 && entries(query, point(1), visit);
    const Interval rate =
        F::weight(2) == 1 ? point(1) : point(1) / point(static_cast<double>(plans_.size()));
    return entries(query, rate, visit);
  }
  std::optional<Relaxation> relax(std::span<const Box> in) const override {
    if constexpr (F::kSelects) {
      RelaxedGroups groups(element_count(full_));
      Index first = 0;
      for (std::size_t k = 0; k < plans_.size(); ++k) {
        const BoxEntries x(in[k]);
        for_each_source(k, [&](Index o, Index i) { groups.add(o, x[i], first + i); });
        first += x.size();
      }
      return groups.relax(F::relax);
    } else {
      return std::nullopt;
    }
  }

  const MachineMap* machine_map() const override { return this; }
  std::unique_ptr<const MachineStep> machine_step(const Machine& machine,
                                                  std::size_t) const override {
    EntrySum sum{.rows = std::vector<std::vector<EntrySum::Entry>>(
                     static_cast<std::size_t>(element_count(full_))),
                 .counts = {},
                 .in_sums = false};
    for (std::size_t k = 0; k < plans_.size(); ++k) {
      for_each_source(k, [&](Index o, Index i) {
        sum.rows[static_cast<std::size_t>(o)].push_back(
            {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(i)});
      });
    }
    if constexpr (F::kSelects) {
      return selection_step([rows = std::move(sum.rows)](const CopyVisitor& visit) {
        for (std::size_t o = 0; o < rows.size(); ++o) {
          for (const EntrySum::Entry& entry : rows[o])
            visit(static_cast<Index>(o), Index{entry.input}, Index{entry.place});
        }
      });
    }
    if (F::weight(2) != 1) sum.counts.assign(sum.rows.size(), static_cast<double>(plans_.size()));
    return entry_sum_step(machine, std::move(sum));
  }

 private:
  bool entries(const MatrixQuery& query, const Interval& rate, const EntryVisitor& visit) const {
    for_each_source(static_cast<std::size_t>(query.wrt),
                    [&](Index o, Index i) { visit(o, i, rate.lo, rate.hi); });
    return true;
  }

  // body(output entry, entry of input k).
  template <class Body>
  void for_each_source(std::size_t k, Body&& body) const {
    const Index step = plans_[k].step(0);
    plans_[k].for_each_run([&](Index at, const auto& from, Index n) {
      for (Index i = 0; i < n; ++i) body(at + i, from[0] + i * step);
    });
  }

  // Which output entries of a selecting function have found the input they come from.
  struct Owners {
    explicit Owners(Index n) : found(F::kSelects ? static_cast<std::size_t>(n) : 0) {}
    std::vector<bool> found;
  };

  template <class T>
  static T fold([[maybe_unused]] ElementType type, T a, T b) {
    if constexpr (F::kSelects) {
      return order_key(type, F::fold(order_key(type, a), order_key(type, b)));  // its own inverse
    } else {
      return F::fold(a, b);
    }
  }

  // body(output position, input position) for the outputs that depend on input k.
  template <class Body>
  void for_each_owned(const ConstView& in, const ConstView& out, Index s, std::size_t k,
                      Owners& owners, Body&& body) const {
    const double* x = in.sample<double>(s);
    const double* y = out.sample<double>(s);
    const Index step = plans_[k].step(0);
    plans_[k].for_each_run([&](Index at, const auto& from, Index n) {
      for (Index i = 0; i < n; ++i) {
        const Index source = from[0] + i * step;
        if constexpr (F::kSelects) {
          const auto o = static_cast<std::size_t>(at + i);
          if (owners.found[o] || x[source] != y[at + i]) continue;
          owners.found[o] = true;
        }
        body(at + i, source);
      }
    });
  }

  Shape full_;
  std::vector<Broadcast<1>> plans_;
};

struct Max {
  static constexpr std::string_view kName = "Max";
  static constexpr Extreme kExtreme = Extreme::kLargest;
  static constexpr bool kSelects = true, kIntegers = true;
  template <class T>
  static T fold(T a, T b) {
    return a > b || a != a ? a : b;  // a NaN on either side stays
  }
  static constexpr Interval kLoser{-kInf, -kInf};
  template <class X>
  static X fold_ranges(const X& a, const X& b) {
    return max(a, b);
  }
  static bool never_wins(const Interval& x, const Interval& rival) { return x.hi <= rival.lo; }
  static bool may_lose(const Interval& x) { return x.hi < kInf; }
  static constexpr auto relax = relax_largest;
  static double weight(std::size_t) { return 1; }
};
struct Min {
  static constexpr std::string_view kName = "Min";
  static constexpr Extreme kExtreme = Extreme::kSmallest;
  static constexpr bool kSelects = true, kIntegers = true;
  template <class T>
  static T fold(T a, T b) {
    return a < b || a != a ? a : b;
  }
  static constexpr Interval kLoser{kInf, kInf};
  template <class X>
  static X fold_ranges(const X& a, const X& b) {
    return min(a, b);
  }
  static bool never_wins(const Interval& x, const Interval& rival) { return x.lo >= rival.hi; }
  static bool may_lose(const Interval& x) { return x.lo > -kInf; }
  static constexpr auto relax = relax_smallest;
  static double weight(std::size_t) { return 1; }
};
struct Sum {
  static constexpr std::string_view kName = "Sum";
  static constexpr bool kSelects = false, kIntegers = false;
  template <class T>
  static T fold(T a, T b) {
    return a + b;
  }
  template <class X>
  static X fold_ranges(const X& a, const X& b) {
    return a + b;
  }
  static double weight(std::size_t) { return 1; }
};
struct Mean : Sum {
  static constexpr std::string_view kName = "Mean";
  static double weight(std::size_t n) { return 1 / static_cast<double>(n); }
};

template <class F>
Imported import_variadic(const OnnxNode& node) {
  node.ignore({"consumed_inputs"});
  const ElementType type = node.input(0).type;
  if (!is_floating(type) && (!F::kIntegers || type == ElementType::kBool)) {
    node.unsupported("element type " + std::string(to_string(type)));
  }
  require_same_type(node);
  Shape full = node.input(0).shape;
  std::vector<Index> uses;
  for (Index k = 0; k < node.num_inputs(); ++k) {
    const auto wider = broadcast_shape(full, node.input(k).shape);
    if (!wider || (node.opset() < 8 && *wider != node.input(k).shape)) {
      node.malformed("the shapes of the inputs do not fit together");
    }
    full = *wider;
    uses.push_back(k);
  }
  std::vector<Broadcast<1>> plans;
  for (const Index k : uses) plans.push_back({full, {node.input(k).shape}});
  return {std::make_shared<VariadicOp<F>>(std::move(full), std::move(plans)), std::move(uses)};
}

template <class F>
OpKind variadic_kind() {
  constexpr auto kCases = [](Rng& rng) {
    auto cases = binary_cases(rng);
    // No old attributes here, and equal shapes before opset 8.
    std::erase_if(cases, [](const OpCase& c) { return !c.attributes.empty(); });
    const auto x = [&](Shape shape) { return random_tensor(rng, std::move(shape)); };
    cases.push_back({.inputs = {{x({2, 3})}}});
    cases.push_back({.inputs = {{x({3})}, {x({2, 1})}, {x({}), true}}});
    cases.push_back({.inputs = {{x({2})}, {x({2})}, {x({2})}, {x({2})}}, .opset = 6});
    const auto ints = [](std::vector<Index> entries) {
      return Tensor(ElementType::kUInt64, {3}, std::move(entries));
    };
    if (F::kIntegers) cases.push_back({.inputs = {{ints({-1, 0, 5})}, {ints({3, 3, 3})}}});
    return cases;
  };
  return {F::kName, import_variadic<F>, kCases};
}

}  // namespace

std::vector<OpKind> op_variadic() {
  return {variadic_kind<Max>(), variadic_kind<Min>(), variadic_kind<Sum>(), variadic_kind<Mean>()};
}

}  // namespace lipscope
