// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/multilinear.h"

#include <algorithm>

#include "graph/exact_map.h"
#include "linalg/tensor/contraction.h"
#include "ops/dispatch.h"
#include "ops/facets/adjoint.h"
#include "ops/linear/multilinear_wide.h"

namespace lipscope {
namespace {

class MultilinearOp final : public Op,
                            public GraphAdjoint,
                            public WideMap,
                            public MachineMap,
                            public ExactMap {
 public:
  explicit MultilinearOp(Multilinear form) : form_(std::move(form)) {}

  const Multilinear* multilinear() const override { return &form_; }
  std::string_view name() const override { return form_.name; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override { return {form_.out}; }

  void eval(const EvalArgs& args) const override {
    const MutView out = args.out[0];
    if (out.size == 0) return;
    for_storage(out.storage, [&](auto zero) {
      using T = decltype(zero);
      bool overwrite = begin(out, form_.out_strides, args.count);
      for (const Multilinear::Term& term : form_.terms) {
        std::vector<Factor<T>> factors;
        for (const std::size_t k : term.inputs) factors.push_back(factor<T>(args.in[k], k));
        multiply(term, std::move(factors), form_.out_strides, out, args.count, overwrite);
        overwrite = false;
      }
      if (out.storage == Storage::kInt64) wrap(out, args.count);
    });
  }

  bool differentiable() const override { return true; }

  void jvp(const JvpArgs& args) const override {
    const MutView out = args.tangent_out[0];
    if (!out || out.size == 0) return;
    bool overwrite = begin(out, form_.out_strides, args.count);
    for (const Multilinear::Term& term : form_.terms) {
      for (const std::size_t moving : term.inputs) {
        if (!args.tangent_in[moving]) continue;
        std::vector<Factor<double>> factors;
        for (const std::size_t k : term.inputs) {
          factors.push_back(factor<double>(k == moving ? args.tangent_in[k] : args.in[k], k));
        }
        multiply(term, std::move(factors), form_.out_strides, out, args.count, overwrite);
        overwrite = false;
      }
    }
    if (overwrite) fill_zero(out, args.count);
  }

  void vjp(const VjpArgs& args) const override {
    for (std::size_t wanted = 0; wanted < form_.strides.size(); ++wanted) {
      const MutView grad = args.grad_in[wanted];
      if (!grad || grad.size == 0) continue;
      bool overwrite = begin(grad, form_.strides[wanted], args.count);
      for (const Multilinear::Term& term : form_.terms) {
        if (!args.grad_out[0] || std::ranges::count(term.inputs, wanted) == 0) continue;
        std::vector<Factor<double>> factors;
        for (const std::size_t k : term.inputs) {
          factors.push_back(k == wanted ? factor<double>(args.grad_out[0], form_.out_strides)
                                        : factor<double>(args.in[k], k));
        }
        multiply(term, std::move(factors), form_.strides[wanted], grad, args.count, overwrite);
        overwrite = false;
      }
      if (overwrite) fill_zero(grad, args.count);
    }
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    return multilinear_range(form_, in);
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    return multilinear_gain(form_, query);
  }
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    return multilinear_matrix(form_, query, visit);
  }
  std::optional<Relaxation> relax(std::span<const Box> in) const override {
    return multilinear_relax(form_, in);
  }

  const MachineMap* machine_map() const override { return this; }
  std::unique_ptr<const MachineStep> machine_step(const Machine& machine,
                                                  std::size_t) const override {
    return multilinear_step(form_, machine);
  }

  const WideMap* wide_map() const override { return this; }
  bool push_wide(std::span<const WideTensor* const> in, std::span<WideTensor> out) const override {
    return push_wide_products(form_, in, out[0]);
  }

  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    constexpr Index kMostProducts = Index{1} << 17;
    out[0].resize(static_cast<std::size_t>(element_count(form_.out.shape)));
    Index products = std::ssize(form_.terms);
    for (const Index extent : form_.extents) products *= std::max<Index>(1, extent);
    if (!is_floating(form_.out.type) || products > kMostProducts) return false;
    for (const Multilinear::Term& term : form_.terms) {
      for_each_product(form_, term, [&](Index row, std::span<const Index> place) {
        RationalInterval product(term.coefficient);
        for (const std::size_t k : term.inputs)
          product = product * (*in[k])[static_cast<std::size_t>(place[k])];
        RationalInterval& sum = out[0][static_cast<std::size_t>(row)];
        sum = sum + product;
      });
    }
    return true;
  }

  const GraphAdjoint* graph_adjoint() const override { return this; }
  // The same sum with the roles of the output and the input exchanged.
  std::optional<ValueId> add_adjoint(const AdjointArgs& args) const override {
    Multilinear part = form_;
    for (const Multilinear::Term& term : part.terms) {
      if (std::ranges::count(term.inputs, args.wrt) > 1) return std::nullopt;
    }
    std::erase_if(part.terms, [&](const Multilinear::Term& term) {
      return std::ranges::count(term.inputs, args.wrt) == 0;
    });
    std::swap(part.out_strides, part.strides[args.wrt]);
    part.out = args.builder.value(args.inputs[args.wrt]).type;
    std::vector<ValueId> inputs(args.inputs.begin(), args.inputs.end());
    inputs[args.wrt] = args.gradient;
    return add_products(args.builder, std::move(part), std::move(inputs));
  }

 private:
  // Whether the first term may overwrite: the labels reach every entry. Otherwise the view is
  // cleared.
  bool begin(const MutView& out, const std::vector<Index>& strides, Index count) const {
    Index reached = 1;
    for (std::size_t l = 0; l < strides.size(); ++l)
      reached *= strides[l] != 0 ? form_.extents[l] : 1;
    if (reached == out.size) return true;
    fill_zero(out, count);
    return false;
  }

  template <class T>
  Factor<T> factor(const ConstView& view, std::size_t k) const {
    return factor<T>(view, form_.strides[k]);
  }
  template <class T>
  static Factor<T> factor(const ConstView& view, std::vector<Index> strides) {
    strides.insert(strides.begin(), view.stride);
    return {static_cast<const T*>(view.data), std::move(strides)};
  }

  // Samples are one more label.
  template <class T>
  void multiply(const Multilinear::Term& term, std::vector<Factor<T>> factors,
                std::vector<Index> out_strides, const MutView& out, Index count,
                bool overwrite) const {
    std::vector<Index> extents = form_.extents;
    extents.insert(extents.begin(), count);
    out_strides.insert(out_strides.begin(), out.stride);
    // A label that neither a factor nor the output has belongs to other terms.
    for (std::size_t l = 0; l < extents.size(); ++l) {
      bool used = out_strides[l] != 0;
      for (const Factor<T>& f : factors) used = used || f.strides[l] != 0;
      if (!used) extents[l] = 1;
    }
    contract_all(extents, std::move(factors), static_cast<T>(term.coefficient), out_strides,
                 out.sample<T>(0), overwrite);
  }

  static void wrap(const MutView& out, Index count) {
    for (Index b = 0; b < count; ++b) {
      Index* to = out.sample<Index>(b);
      for (Index i = 0; i < out.size; ++i) to[i] = wrap_integer(out.type, to[i]);
    }
  }

  Multilinear form_;
};

}  // namespace

std::shared_ptr<const Op> make_multilinear(Multilinear form) {
  return std::make_shared<MultilinearOp>(std::move(form));
}

std::vector<Index> label_strides(const Shape& shape) {
  (void)element_count(shape);  // throws where a stride would overflow
  std::vector<Index> strides(shape.size());
  Index stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = shape[i] == 1 ? 0 : stride;
    stride *= std::max<Index>(shape[i], 1);
  }
  return strides;
}

}  // namespace lipscope
