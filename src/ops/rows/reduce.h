// SPDX-License-Identifier: Apache-2.0
// The family of reductions over some axes. An operator of this family is a struct F; its value is
// finish(merge of map(x) over the reduced entries):
//
//   struct L2 {
//     static constexpr std::string_view kName = "ReduceL2";
//     static double start() { return 0; }                        // neutral for merge
//     static double map(double x) { return x * x; }
//     static double merge(double a, double b) { return a + b; }
//     static double finish(double acc, double n) { return std::sqrt(acc); }
//     static double slope(double x, double y, double n) { return y == 0 ? 0 : x / y; }
//   };
//
// slope is dy/dx for an entry x of a reduction with result y over n entries. Where F::kSelects, the
// derivative belongs to the first entry equal to the result instead. Integers have their own struct
// F::Integer without slope. The index map is that of a broadcast from the result to the input.
//
// For a group of entries in a box, F::range(group) holds all values and F::gain(group, p) bounds
// the Lipschitz constant from the p norm on the entries that move [pointwise-4]. A linear one also
// has F::weight(n), what each of n entries counts: 1, or 1/n where F::kDivides. F::exact_map(x) and
// F::exact(a, b) are map and merge in rational arithmetic.
#pragma once

#include <vector>

#include "graph/exact_map.h"
#include "linalg/norm/operator_norm.h"
#include "machine/entry_sum.h"
#include "ops/broadcast/broadcast.h"
#include "ops/broadcast/max_relax.h"
#include "ops/facets/machine_map.h"
#include "ops/facets/wide_map.h"
#include "ops/kind.h"
#include "ops/rows/reduce_bounds.h"

namespace lipscope {

struct Reduction {
  Shape in, kept, out;                    // kept: reduced dimensions are 1
  [[nodiscard]] double entries() const {  // per result
    const Index results = element_count(kept);
    if (results != 0) return static_cast<double>(element_count(in) / results);
    return 0;
  }
};
// Reads axes (attribute, or input since opset `axes_input_since`), keepdims and
// noop_with_empty_axes. `no_op` is whether reducing over no axes gives the input back.
[[nodiscard]] Reduction reduction_of(const OnnxNode& node, int axes_input_since, bool no_op);
// Worked examples over every kind of axes with entries in [low, high].
[[nodiscard]] std::vector<OpCase> reduction_cases(Rng& rng, int axes_input_since, double low,
                                                  double high);

// merge over i of map(x[i]), in a few independent chains.
template <class F, class Acc, class T>
[[nodiscard]] Acc reduce_run(const F& f, Acc neutral, const T* x, Index n) {
  constexpr Index kChains = 8;
  Acc part[kChains];
  std::fill_n(part, kChains, neutral);
  Index i = 0;
  for (; i + kChains <= n; i += kChains) {
    for (Index k = 0; k < kChains; ++k)
      part[k] = f.merge(part[k], f.map(static_cast<Acc>(x[i + k])));
  }
  for (; i < n; ++i) part[0] = f.merge(part[0], f.map(static_cast<Acc>(x[i])));
  for (Index k = 1; k < kChains; ++k) part[0] = f.merge(part[0], part[k]);
  return part[0];
}

template <class F>
concept AddingReduction = requires(double n) {
  F::weight(n);
};
template <class F>
concept ExactReduction = requires(const RationalInterval& x) {
  F::exact(x, x);
};

template <class F>
class ReduceOp final : public Op, public WideMap, public MachineMap, public ExactMap {
 public:
  ReduceOp(Reduction shapes, bool real)
      : shapes_(std::move(shapes)),
        plan_(shapes_.in, {shapes_.kept}),
        n_(shapes_.entries()),
        real_(real) {}

  std::string_view name() const override { return F::kName; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{in[0].type, shapes_.out}};
  }

  void eval(const EvalArgs& args) const override {
    const ConstView x = args.in[0];
    const MutView y = args.out[0];
    for_storage(x.storage, [&](auto zero) {
      using T = decltype(zero);
      for_each_sample(args.count, x.size, [&](Index b) { eval_sample(x, y, x.sample<T>(b), b); });
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    const MutView out = args.tangent_out[0];
    if (!out) return;
    fill_zero(out, args.count);
    if (!args.tangent_in[0]) return;
    for_each_slope(args.in[0], args.out[0], args.count,
                   [&](Index b, Index i, Index o, double slope) {
                     out.sample<double>(b)[o] += slope * args.tangent_in[0].sample<double>(b)[i];
                   });
  }
  void vjp(const VjpArgs& args) const override {
    const MutView out = args.grad_in[0];
    if (!out) return;
    fill_zero(out, args.count);
    if (!args.grad_out[0]) return;
    for_each_slope(args.in[0], args.out[0], args.count,
                   [&](Index b, Index i, Index o, double slope) {
                     out.sample<double>(b)[i] = slope * args.grad_out[0].sample<double>(b)[o];
                   });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (!real_) return std::nullopt;
    BoxBuilder out(shapes_.out);
    for_each_group(in[0], [&](Index o, const Group& group) { out.set(o, F::range(group)); });
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    if (!real_) return std::nullopt;
    std::vector<double> blocks;
    for_each_group(query.in[0], [&](Index, const Group& group) {
      blocks.push_back(group.moves() ? F::gain(group, query.norms.in) : 0);
    });
    return Gain{diagonal_norm_up(blocks, query.norms), "pointwise-4"};
  }
  bool matrix(const MatrixQuery&, const EntryVisitor& visit) const override {
    if constexpr (AddingReduction<F>) {
      if (!real_) return false;
      const Interval weight = F::weight(n_);
      plan_.for_each_run([&](Index at, const auto& offset, Index n) {
        for (Index i = 0; i < n; ++i)
          visit(offset[0] + i * plan_.step(0), at + i, weight.lo, weight.hi);
      });
      return true;
    }
    return false;
  }
  const WideMap* wide_map() const override { return adds_up() ? this : nullptr; }
  bool push_wide([[maybe_unused]] std::span<const WideTensor* const> in,
                 [[maybe_unused]] std::span<WideTensor> out) const override {
    if constexpr (AddingReduction<F>) {
      if (!real_ || n_ == 0) return false;
      const WideTensor& x = *in[0];
      WideTensor& y = out[0];
      y.resize(static_cast<std::size_t>(element_count(shapes_.out)), x.moves());
      plan_.for_each_run([&](Index at, const auto& offset, Index n) {
        for (Index i = 0; i < n; ++i) {
          const auto o = static_cast<std::size_t>(offset[0] + i * plan_.step(0));
          y.set(o, y.at(o) + x.at(static_cast<std::size_t>(at + i)));
        }
      });
      const auto count = static_cast<std::uint64_t>(n_);
      for (std::size_t o = 0; F::kDivides && o < y.value.size(); ++o) {
        const WideDual sum = y.at(o);
        y.set(o, {over(sum.value, count), over(sum.tangent, count)});
      }
      return true;
    }
    return false;
  }
  const MachineMap* machine_map() const override { return adds_up() ? this : nullptr; }
  std::unique_ptr<const MachineStep> machine_step([[maybe_unused]] const Machine& machine,
                                                  std::size_t) const override {
    if constexpr (AddingReduction<F>) {
      if (!real_ || n_ == 0) return nullptr;
      EntrySum sum;
      sum.rows.resize(static_cast<std::size_t>(element_count(shapes_.out)));
      if (F::kDivides) sum.counts.assign(sum.rows.size(), n_);
      plan_.for_each_run([&](Index at, const auto& offset, Index n) {
        for (Index i = 0; i < n; ++i) {
          const auto o = static_cast<std::size_t>(offset[0] + i * plan_.step(0));
          sum.rows[o].push_back({0, static_cast<std::uint32_t>(at + i)});
        }
      });
      return entry_sum_step(machine, std::move(sum));
    } else {
      return nullptr;
    }
  }
  const ExactMap* exact_map() const override {
    return ExactReduction<F> && real_ && n_ > 0 ? this : nullptr;
  }
  bool push_exact([[maybe_unused]] std::span<const ExactTensor* const> in,
                  [[maybe_unused]] std::span<ExactTensor> out) const override {
    if constexpr (ExactReduction<F>) {
      if (!real_ || n_ == 0) return false;
      const auto results = static_cast<std::size_t>(element_count(shapes_.out));
      std::vector<ExactTensor> groups(results);
      plan_.for_each_run([&](Index at, const auto& offset, Index n) {
        for (Index i = 0; i < n; ++i) {
          groups[static_cast<std::size_t>(offset[0] + i * plan_.step(0))].push_back(
              (*in[0])[static_cast<std::size_t>(at + i)]);
        }
      });
      for (const ExactTensor& group : groups) {
        RationalInterval all = F::exact_map(group[0]);
        for (std::size_t i = 1; i < group.size(); ++i) all = F::exact(all, F::exact_map(group[i]));
        if constexpr (requires { F::kDivides; }) {
          if (F::kDivides) all = all / RationalInterval(n_);
        }
        out[0].push_back(all);
      }
      return true;
    } else {
      return false;
    }
  }
  std::optional<Relaxation> relax(std::span<const Box> in) const override {
    if constexpr (requires { F::relax; }) {
      if (!real_ || n_ == 0) return std::nullopt;
      const BoxEntries x(in[0]);
      RelaxedGroups groups(element_count(shapes_.out));
      plan_.for_each_run([&](Index at, const auto& offset, Index n) {
        for (Index i = 0; i < n; ++i) groups.add(offset[0] + i * plan_.step(0), x[at + i], at + i);
      });
      return groups.relax(F::relax);
    } else {
      return std::nullopt;
    }
  }

 private:
  // Sums and means of some entries.
  bool adds_up() const { return AddingReduction<F> && real_ && n_ > 0; }
  // body(result, the entries it is made of).
  template <class Body>
  void for_each_group(const Box& in, Body&& body) const {
    const BoxEntries x(in);
    const Index results = element_count(shapes_.out);
    const auto each = static_cast<std::size_t>(n_);
    std::vector<double> lower(static_cast<std::size_t>(x.size())), upper(lower.size());
    std::vector<std::size_t> filled(static_cast<std::size_t>(results), 0);
    plan_.for_each_run([&](Index at, const auto& offset, Index n) {
      for (Index i = 0; i < n; ++i) {
        const auto o = static_cast<std::size_t>(offset[0] + i * plan_.step(0));
        const std::size_t to = o * each + filled[o]++;
        lower[to] = x[at + i].lo, upper[to] = x[at + i].hi;
      }
    });
    for (Index o = 0; o < results; ++o) {
      const std::size_t begin = static_cast<std::size_t>(o) * each;
      body(o, Group{std::span<const double>(lower).subspan(begin, each),
                    std::span<const double>(upper).subspan(begin, each)});
    }
  }

  static constexpr bool kSelects = requires { F::kSelects; };
  static constexpr bool kProduct = requires { F::kProduct; };

  template <class T>
  void eval_sample(const ConstView& x, const MutView& y, const T* from, Index b) const {
    T* to = y.sample<T>(b);
    if constexpr (!std::is_same_v<T, Index>) {
      const std::vector<double> result = reduced(from, y.size);
      for (Index o = 0; o < y.size; ++o)
        to[o] = static_cast<T>(result[static_cast<std::size_t>(o)]);
    } else if constexpr (requires { typename F::Integer; }) {
      const typename F::Integer f{x.type};
      const auto acc = accumulated(f, f.start(), from, y.size);
      for (Index o = 0; o < y.size; ++o) {
        to[o] = wrap_integer(x.type,
                             f.finish(acc[static_cast<std::size_t>(o)], static_cast<Index>(n_)));
      }
    } else {
      check_failed("a reduction the importer refuses");
    }
  }

  template <class T>
  std::vector<double> reduced(const T* from, Index results) const {
    if constexpr (requires { F::kShifted; }) {
      return F::reduced(plan_, from, results);
    } else {
      std::vector<double> acc = accumulated(F{}, F::start(), from, results);
      for (double& a : acc) a = F::finish(a, n_);
      return acc;
    }
  }

  template <class G, class Acc, class T>
  std::vector<Acc> accumulated(const G& f, Acc neutral, const T* from, Index results) const {
    std::vector<Acc> acc(static_cast<std::size_t>(results), neutral);
    plan_.for_each_run([&](Index at, const auto& offset, Index n) {
      const T* x = from + at;
      Acc* to = acc.data() + offset[0];
      if (plan_.step(0) == 0) {
        *to = f.merge(*to, reduce_run(f, neutral, x, n));
      } else {
        for (Index i = 0; i < n; ++i) to[i] = f.merge(to[i], f.map(static_cast<Acc>(x[i])));
      }
    });
    return acc;
  }

  // body(sample, input entry, result, derivative) for each entry that has an influence.
  template <class Body>
  void for_each_slope(const ConstView& in, const ConstView& out, Index count, Body&& body) const {
    for_each_sample(count, in.size, [&](Index b) {
      const double* x = in.sample<double>(b);
      const double* y = out.sample<double>(b);
      std::vector<char> taken(kSelects ? static_cast<std::size_t>(out.size) : 0);
      const std::vector<double> others = products_without_zero(x, out.size);
      plan_.for_each_run([&](Index at, const auto& offset, Index n) {
        for (Index i = 0; i < n; ++i) {
          const Index o = offset[0] + i * plan_.step(0);
          const auto k = static_cast<std::size_t>(o);
          if constexpr (kSelects) {
            if (taken[k] != 0 || x[at + i] != y[o]) continue;
            taken[k] = 1;
            body(b, at + i, o, 1.0);
          } else if constexpr (kProduct) {
            body(b, at + i, o, x[at + i] != 0 ? y[o] / x[at + i] : others[k]);
          } else {
            body(b, at + i, o, F::slope(x[at + i], y[o], n_));
          }
        }
      });
    });
  }

  // For products: the derivative by an entry that is 0.
  std::vector<double> products_without_zero(const double* x, Index results) const {
    if constexpr (!kProduct) return {};
    const auto m = static_cast<std::size_t>(results);
    std::vector<double> product(m, 1.0);
    std::vector<char> zeros(m);
    plan_.for_each_run([&](Index at, const auto& offset, Index n) {
      for (Index i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(offset[0] + i * plan_.step(0));
        if (x[at + i] != 0) {
          product[k] *= x[at + i];
        } else if (zeros[k]++ != 0) {
          zeros[k] = 1;
          product[k] = 0;
        }
      }
    });
    return product;
  }

  Reduction shapes_;
  Broadcast<1> plan_;
  double n_;
  bool real_;
};

}  // namespace lipscope
