// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND. Constant indices make a linear index map; indices that depend
// on an input (token ids) are looked up in every sample.
#include <algorithm>

#include "ops/box.h"
#include "ops/index/gather_plan.h"
#include "ops/index/index_map.h"
#include "ops/linear/linear_gain.h"

namespace lipscope {
namespace {

// Inputs: data and integer indices; linear in the data.
class Lookup final : public Op {
 public:
  Lookup(std::string name, ElementType type, GatherPlan plan)
      : name_(std::move(name)), type_(type), plan_(std::move(plan)) {}

  std::string_view name() const override { return name_; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override {
    return {{type_, plan_.output()}};
  }

  void eval(const EvalArgs& args) const override {
    for_storage(args.out[0].storage, [&](auto zero) {
      look_up<decltype(zero)>(args.in[0], args.in[1], args.out[0], args.count);
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    if (!args.tangent_out[0]) return;
    if (!args.tangent_in[0]) return fill_zero(args.tangent_out[0], args.count);
    look_up<double>(args.tangent_in[0], args.in[1], args.tangent_out[0], args.count);
  }
  void vjp(const VjpArgs& args) const override {
    if (!args.grad_in[0]) return;
    fill_zero(args.grad_in[0], args.count);
    if (!args.grad_out[0]) return;
    for_each_sample(args.count, args.grad_out[0].size, [&](Index b) {
      double* to = args.grad_in[0].sample<double>(b);
      const double* from = args.grad_out[0].sample<double>(b);
      for_each_run(args.in[1].sample<Index>(b), [&](Index row, Index source, Index n) {
        for (Index k = 0; k < n; ++k) to[source + k] += from[row + k];
      });
    });
  }

  // Where the indices are unknown, any run of the block.
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (!holds_doubles(in[0])) return std::nullopt;
    const auto n = static_cast<std::size_t>(element_count(plan_.output()));
    std::vector<double> lower(n), upper(n);
    const auto from_lower = in[0].lower.doubles(), from_upper = in[0].upper.doubles();
    if (is_point(in[1])) {
      const std::vector<Index> indices = known_indices(in[1]);
      for_each_run(indices.data(), [&](Index row, Index source, Index length) {
        std::copy_n(from_lower.begin() + source, length, lower.begin() + row);
        std::copy_n(from_upper.begin() + source, length, upper.begin() + row);
      });
      return {{make_box(plan_.output(), std::move(lower), std::move(upper))}};
    }
    const Index inner = plan_.inner(), block = plan_.cols() * inner;
    for (Index o = 0; n > 0 && o < plan_.outer(); ++o) {
      for (Index k = 0; k < inner; ++k) {
        Interval all{kInf, -kInf};
        for (Index i = o * block + k; i < (o + 1) * block; i += inner) {
          all.lo = std::min(all.lo, from_lower[static_cast<std::size_t>(i)]);
          all.hi = std::max(all.hi, from_upper[static_cast<std::size_t>(i)]);
        }
        for (Index i = 0; i < plan_.rows(); ++i) {
          const auto to = static_cast<std::size_t>((o * plan_.rows() + i) * inner + k);
          lower[to] = std::min(all.lo, all.hi);
          upper[to] = std::max(all.lo, all.hi);
        }
      }
    }
    return {{make_box(plan_.output(), std::move(lower), std::move(upper))}};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    if (!holds_doubles(query.in[0])) return std::nullopt;
    Gain gain{0, "linear-3"};
    if (is_point(query.in[static_cast<std::size_t>(query.wrt)])) return gain;
    if (query.wrt == 1) {
      gain.value = element_count(plan_.output()) == 0 ? 0 : kInf;
      return gain;
    }
    // At worst all rows are copies of one.
    double block = copied_norm_up(plan_.rows(), query.norms.out);
    if (is_point(query.in[1])) {
      const std::vector<Index> sources = plan_.sources(known_indices(query.in[1]).data());
      block = IndexMap::gather(plan_.cols(), sources).norm_up(query.norms, query.steps);
    }
    gain.value = repeated_norm_up(block, plan_.outer() * plan_.inner(), query.norms);
    return gain;
  }

 private:
  static std::vector<Index> known_indices(const Box& box) {
    std::vector<Index> indices;
    for (Index i = 0; i < box.lower.size(); ++i) {
      indices.push_back(static_cast<Index>(box.lower.at(i)));
    }
    return indices;
  }

  // visit(output entry, data entry, length of the run)
  template <class Visit>
  void for_each_run(const Index* indices, Visit&& visit) const {
    const std::vector<Index> sources = plan_.sources(indices);
    const Index inner = plan_.inner();
    for (Index o = 0; o < plan_.outer(); ++o) {
      for (Index i = 0; i < plan_.rows(); ++i) {
        const Index source = sources[static_cast<std::size_t>(i)];
        visit((o * plan_.rows() + i) * inner, (o * plan_.cols() + source) * inner, inner);
      }
    }
  }

  template <class T>
  void look_up(const ConstView& data, const ConstView& indices, const MutView& out,
               Index count) const {
    for_each_sample(count, out.size, [&](Index b) {
      const T* from = data.sample<T>(b);
      T* to = out.sample<T>(b);
      for_each_run(indices.sample<Index>(b), [&](Index row, Index source, Index n) {
        std::copy_n(from + source, n, to + row);
      });
    });
  }

  std::string name_;
  ElementType type_;
  GatherPlan plan_;
};

Imported import_gather(const OnnxNode& node, GatherPlan plan) {
  if (!node.is_constant(1)) {
    const ElementType type = node.input(0).type;
    return {std::make_shared<Lookup>(node.type(), type, std::move(plan)), {0, 1}};
  }
  return index_map_op(
      node, plan.output(),
      IndexMap::gather(plan.cols(), plan.constant_sources(node), {plan.outer(), plan.inner()}));
}

Imported import_gather(const OnnxNode& node) {
  return import_gather(node, GatherPlan::along_axis(node));
}
Imported import_gather_elements(const OnnxNode& node) {
  return import_gather(node, GatherPlan::elements(node));
}
Imported import_gather_nd(const OnnxNode& node) {
  return import_gather(node, GatherPlan::nd(node));
}

std::vector<OpCase> gather_cases(Rng& rng) {
  const Tensor indices = Tensor::integers({2, 2}, {0, -1, 2, 0});
  const Attributes last{{"axis", Index{-1}}};
  return {
      {.inputs = {{random_tensor(rng, {3, 4})}, {indices, true}}},
      {.inputs = {{random_tensor(rng, {3, 4})}, {indices, true}}, .attributes = last},
      {.inputs = {{random_tensor(rng, {3, 4})}, {Tensor::integers({}, {1}), true}}},
      {.inputs = {{random_tensor(rng, {3, 4}), true}, {indices}}},
      {.inputs = {{random_tensor(rng, {2, 3, 4})}, {indices}}, .attributes = {{"axis", Index{1}}}},
      {.inputs = {{random_tensor(rng, {3, 4})}, fixed_ints({})}},
      {.inputs = {{Tensor::integers({3}, {4, 5, 6})}, {indices}}}};
}

std::vector<OpCase> gather_elements_cases(Rng& rng) {
  const Tensor indices = Tensor::integers({2, 3}, {0, -1, 2, 0, 1, 1});
  return {{.inputs = {{random_tensor(rng, {3, 4})}, {indices, true}}},
          {.inputs = {{random_tensor(rng, {3, 4})}, {indices, true}},
           .attributes = {{"axis", Index{1}}}},
          {.inputs = {{random_tensor(rng, {3, 4})}, {indices}}}};
}

std::vector<OpCase> gather_nd_cases(Rng& rng) {
  return {
      {.inputs = {{random_tensor(rng, {3, 4})}, {Tensor::integers({2, 2}, {0, 1, -1, 2}), true}}},
      {.inputs = {{random_tensor(rng, {3, 4})}, {Tensor::integers({2, 1}, {2, 0})}}},
      {.inputs = {{random_tensor(rng, {2, 3, 2})}, {Tensor::integers({2, 1}, {2, 0}), true}},
       .attributes = {{"batch_dims", Index{1}}}}};
}

}  // namespace

std::vector<OpKind> op_gather() {
  return {{"Gather", import_gather, gather_cases},
          {"GatherElements", import_gather_elements, gather_elements_cases},
          {"GatherND", import_gather_nd, gather_nd_cases}};
}

}  // namespace lipscope
