// SPDX-License-Identifier: Apache-2.0
// ScatterElements (Scatter before opset 11) and ScatterND: the data with some entries replaced by,
// or combined with, updates.
#include <algorithm>
#include <cmath>

#include "ops/index/gather_plan.h"
#include "ops/index/index_map.h"

namespace lipscope {
namespace {

enum class Combine { kReplace, kAdd, kMultiply, kMax, kMin };

// Integers are added and multiplied unsigned, where wrapping around is defined.
template <class T>
auto wide(T value) {
  if constexpr (std::is_same_v<T, Index>) {
    return static_cast<std::uint64_t>(value);
  } else {
    return value;
  }
}

// NaN wins in max and min.
template <class T>
T combined(Combine how, T old, T update) {
  switch (how) {
    case Combine::kReplace: return update;
    case Combine::kAdd: return static_cast<T>(wide(old) + wide(update));
    case Combine::kMultiply: return static_cast<T>(wide(old) * wide(update));
    case Combine::kMax: return update > old || update != update ? update : old;
    case Combine::kMin: return update < old || update != update ? update : old;
  }
  return old;
}

// Inputs: data and updates. Update i, a run of `inner` entries, goes to run targets[i] of the data;
// of several replacements of one run the last one stays.
class Scatter final : public Op {
 public:
  Scatter(std::string name, ValueType type, Combine how, Index inner, std::vector<Index> targets)
      : name_(std::move(name)),
        type_(std::move(type)),
        how_(how),
        inner_(inner),
        targets_(std::move(targets)) {
    if (how_ != Combine::kReplace) return;
    std::vector<Index> sorted = targets_;
    std::sort(sorted.begin(), sorted.end());
    distinct_ = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  }

  std::string_view name() const override { return name_; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override { return {type_}; }

  void eval(const EvalArgs& args) const override {
    for_storage(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      for_each_sample(args.count, args.out[0].size, [&](Index b) {
        T* y = args.out[0].sample<T>(b);
        std::copy_n(args.in[0].sample<T>(b), args.out[0].size, y);
        const T* updates = args.in[1].sample<T>(b);
        for_each_entry([&](Index from, Index to) {
          y[to] = combined(how_, y[to], updates[from]);
          if constexpr (std::is_same_v<T, Index>) y[to] = wrap_integer(type_.type, y[to]);
        });
      });
    });
  }

  // Replacements that overwrite each other would need the winner; products, maxima and minima their
  // own rules.
  bool differentiable() const override {
    return how_ == Combine::kAdd || (how_ == Combine::kReplace && distinct_);
  }
  void jvp(const JvpArgs& args) const override {
    const MutView& out = args.tangent_out[0];
    if (!out) return;
    for_each_sample(args.count, out.size, [&](Index b) {
      double* y = out.sample<double>(b);
      if (args.tangent_in[0]) {
        std::copy_n(args.tangent_in[0].sample<double>(b), out.size, y);
      } else {
        std::fill_n(y, out.size, 0.0);
      }
      const double* updates = args.tangent_in[1] ? args.tangent_in[1].sample<double>(b) : nullptr;
      for_each_entry([&](Index from, Index to) {
        y[to] = combined(how_, y[to], updates != nullptr ? updates[from] : 0.0);
      });
    });
  }
  void vjp(const VjpArgs& args) const override {
    const ConstView& grad = args.grad_out[0];
    for (const MutView& in : args.grad_in) {
      if (in && !grad) fill_zero(in, args.count);
    }
    if (!grad) return;
    for_each_sample(args.count, grad.size, [&](Index b) {
      const double* g = grad.sample<double>(b);
      double* data = args.grad_in[0] ? args.grad_in[0].sample<double>(b) : nullptr;
      double* updates = args.grad_in[1] ? args.grad_in[1].sample<double>(b) : nullptr;
      if (data != nullptr) std::copy_n(g, grad.size, data);
      for_each_entry([&](Index from, Index to) {
        if (updates != nullptr) updates[from] = g[to];
        if (data != nullptr && how_ == Combine::kReplace) data[to] = 0;
      });
    });
  }

 private:
  template <class Visit>
  void for_each_entry(Visit&& visit) const {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      for (Index k = 0; k < inner_; ++k) {
        visit(static_cast<Index>(i) * inner_ + k, targets_[i] * inner_ + k);
      }
    }
  }

  std::string name_;
  ValueType type_;
  Combine how_;
  Index inner_;
  std::vector<Index> targets_;
  bool distinct_ = true;
};

Combine read_combine(const OnnxNode& node) {
  const std::string text = node.text("reduction", "none");
  if (text == "none") return Combine::kReplace;
  if (text == "add") return Combine::kAdd;
  if (text == "mul") return Combine::kMultiply;
  if (text == "max") return Combine::kMax;
  if (text == "min") return Combine::kMin;
  node.malformed("reduction is '" + text + "'");
}

Imported import_scatter(const OnnxNode& node, const GatherPlan& plan) {
  const ValueType& data = node.input(0);
  if (node.input(2).shape != plan.output() || node.input(2).type != data.type) {
    node.malformed("the updates do not fit the indices or the data");
  }
  return {std::make_shared<Scatter>(node.type(), data, read_combine(node), plan.inner(),
                                    plan.constant_sources(node)),
          {0, 2}};
}

Imported import_scatter_elements(const OnnxNode& node) {
  return import_scatter(node, GatherPlan::elements(node));
}
Imported import_scatter_nd(const OnnxNode& node) {
  return import_scatter(node, GatherPlan::nd(node));
}

std::vector<OpCase> scatter_elements_cases(Rng& rng) {
  const Tensor indices = Tensor::integers({2, 3}, {0, -1, 2, 1, 0, 1});
  const auto make = [&](Attributes attributes) {
    return OpCase{
        .inputs = {{random_tensor(rng, {3, 3})}, {indices, true}, {random_tensor(rng, {2, 3})}},
        .attributes = std::move(attributes),
        .opset = 18};
  };
  return {make({}), make({{"axis", Index{1}}, {"reduction", std::string("add")}}),
          make({{"axis", Index{1}}, {"reduction", std::string("max")}}),
          make({{"axis", Index{-1}}})};
}

std::vector<OpCase> scatter_nd_cases(Rng& rng) {
  const Tensor rows = Tensor::integers({2, 1}, {2, 0}),
               pairs = Tensor::integers({2, 2}, {2, 0, 1, 1});
  return {{.inputs = {{random_tensor(rng, {3, 2})}, {rows, true}, {random_tensor(rng, {2, 2})}}},
          {.inputs = {{random_tensor(rng, {3, 2}), true}, {pairs, true}, {random_tensor(rng, {2})}},
           .attributes = {{"reduction", std::string("add")}},
           .opset = 16},
          {.inputs = {{Tensor::integers({3}, {1, 2, 3})},
                      {rows, true},
                      {Tensor::integers({2}, {7, 8})}},
           .attributes = {{"reduction", std::string("mul")}},
           .opset = 16}};
}

}  // namespace

std::vector<OpKind> op_scatter() {
  return {{"ScatterElements", import_scatter_elements, scatter_elements_cases},
          {"Scatter", import_scatter_elements, scatter_elements_cases},
          {"ScatterND", import_scatter_nd, scatter_nd_cases}};
}

}  // namespace lipscope
