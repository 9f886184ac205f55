// SPDX-License-Identifier: Apache-2.0
#include "bounds/gradient_graph.h"

#include <algorithm>
#include <map>

#include "graph/copier.h"
#include "graph/usage.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/facets/adjoint.h"
#include "ops/facets/entry_bounds.h"
#include "ops/kind.h"

namespace lipscope {
namespace {

// The transposed matrix of an affine node times a value.
class TransposedRows final : public Op {
 public:
  // Keeps the matrix; `to` is the type of the result.
  TransposedRows(SparseRows rows, ValueType to) : rows_(std::move(rows)), to_(std::move(to)) {}

  std::string_view name() const override { return "Transposed"; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override { return {to_}; }
  void eval(const EvalArgs& args) const override {
    for_real(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      for (Index b = 0; b < args.count; ++b) {
        T* to = args.out[0].sample<T>(b);
        std::fill_n(to, element_count(to_.shape), T(0));
        const T* from = args.in[0].sample<T>(b);
        each([&](std::size_t i, std::size_t k) {
          to[rows_.columns[k]] += static_cast<T>(rows_.weights[k]) * from[i];
        });
      }
    });
  }
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const BoxEntries x(in[0]);
    std::vector<Interval> sums(static_cast<std::size_t>(element_count(to_.shape)), point(0));
    each([&](std::size_t i, std::size_t k) {
      sums[rows_.columns[k]] += weight(k) * x[static_cast<Index>(i)];
    });
    BoxBuilder out(to_.shape);
    for (std::size_t j = 0; j < sums.size(); ++j) out.set(static_cast<Index>(j), sums[j]);
    return std::vector<Box>{std::move(out).finish()};
  }
  bool matrix(const MatrixQuery&, const EntryVisitor& visit) const override {
    each([&](std::size_t i, std::size_t k) {
      const Interval w = weight(k);
      visit(static_cast<Index>(rows_.columns[k]), static_cast<Index>(i), w.lo, w.hi);
    });
    return true;
  }

 private:
  [[nodiscard]] Interval weight(std::size_t k) const {
    const double w = rows_.weights[k];
    if (rows_.width.empty() || rows_.width[k] == 0) return point(w);
    return {sub_down(w, rows_.width[k]), add_up(w, rows_.width[k])};
  }
  template <class Body>
  void each(Body&& body) const {
    for (std::size_t i = 0; i < rows_.rows(); ++i) {
      for (auto k = static_cast<std::size_t>(rows_.begin[i]);
           k < static_cast<std::size_t>(rows_.begin[i + 1]); ++k)
        body(i, k);
    }
  }

  SparseRows rows_;
  ValueType to_;
};

// The slope of a function of single entries, entry by entry.
class SlopeOf final : public Elementwise {
 public:
  SlopeOf(std::shared_ptr<const Op> op, ValueType type)
      : op_(std::move(op)), curve_(*op_->elementwise()), type_(std::move(type)) {}

  std::string_view name() const override { return "Slope"; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override { return {type_}; }
  void eval(const EvalArgs& args) const override {
    for_real(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      for (Index b = 0; b < args.count; ++b) {
        for (Index i = 0; i < element_count(type_.shape); ++i) {
          const auto x = static_cast<double>(args.in[0].sample<T>(b)[i]);
          args.out[0].sample<T>(b)[i] = static_cast<T>(midpoint(*curve_.slopes(point(x))));
        }
      }
    });
  }
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const BoxEntries x(in[0]);
    BoxBuilder out(in[0].lower.shape());
    for (Index i = 0; i < x.size(); ++i) out.set(i, curve_.slopes(x[i]).value_or(kEntire));
    return std::vector<Box>{std::move(out).finish()};
  }
  // Of the slope nothing is said but its range on every part of an interval: enough for lines.
  [[nodiscard]] std::optional<Interval> slopes(const Interval&) const override { return kEntire; }

 private:
  std::shared_ptr<const Op> op_;
  const Elementwise& curve_;
  ValueType type_;
};

class GradientBuilder {
 public:
  GradientBuilder(const Graph& graph, const AffineNodes& nodes) : graph_(graph), nodes_(nodes) {
    copies_.constants();
    copies_.inputs();
    copies_.add_rest();
  }

  // Adds the outputs of one row.
  bool pull(std::span<const double> weights, std::string& reason) {
    gradients_.clear();
    const ValueId out = graph_.outputs()[0];
    Tensor row = Tensor::zeros(ElementType::kFloat64, graph_.value(out).type.shape);
    std::ranges::copy(weights, row.doubles().begin());
    gradients_[out.index] = builder_.constant("gradient", std::move(row));
    for (std::size_t n = graph_.nodes().size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        const auto found = gradients_.find(node.outputs[o].index);
        if (found == gradients_.end()) continue;
        if (!pull_node(n, o, found->second)) {
          reason = "node '" + node.name + "' (" + std::string(node.op->name()) +
                   ") does not tell its derivative as a graph";
          return false;
        }
      }
    }
    for (const ValueId id : graph_.inputs()) {
      const ValueType& type = graph_.value(id).type;
      if (!is_floating(type.type)) continue;
      const auto found = gradients_.find(id.index);
      const auto zero = [&] { return Tensor::zeros(ElementType::kFloat64, type.shape); };
      outputs_.push_back(found != gradients_.end() ? found->second
                                                   : builder_.constant("gradient", zero()));
    }
    return true;
  }

  [[nodiscard]] Graph finish() { return builder_.finish(outputs_); }

 private:
  bool pull_node(std::size_t n, std::size_t o, ValueId gradient) {
    const Node& node = graph_.nodes()[n];
    const AffineNode* affine = nodes_.at(n);
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(copies_[id]);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId id = node.inputs[k];
      if (!nodes_.moves(id)) continue;
      const ValueType type{ElementType::kFloat64, graph_.value(id).type.shape};
      if (affine != nullptr) {
        const auto block = std::ranges::find_if(affine->blocks, [&](const AffineNode::Block& p) {
          return p.input == k && p.output == o;
        });
        add(id, builder_.add(std::make_shared<TransposedRows>(block->matrix, type), {gradient},
                             "gradient")[0]);
        continue;
      }
      if (o > 0) return false;
      if (const Elementwise* curve = node.op->elementwise()) {
        if (!curve->slopes(kEntire)) return false;
        const ValueId slope =
            builder_.add(std::make_shared<SlopeOf>(node.op, type), {inputs[k]}, "gradient")[0];
        add(id, add_product(builder_, slope, gradient));
        continue;
      }
      const GraphAdjoint* told = node.op->graph_adjoint();
      if (told == nullptr) return false;
      const auto found =
          told->add_adjoint({builder_, inputs, copies_[node.outputs[0]], gradient, k});
      if (!found) return false;
      add(id, *found);
    }
    return true;
  }

  // All that comes from several users of a value adds up.
  void add(ValueId id, ValueId more) {
    const auto found = gradients_.find(id.index);
    if (found == gradients_.end()) {
      gradients_[id.index] = more;
      return;
    }
    const ValueType type = builder_.value(more).type;
    found->second = add_products(builder_,
                                 {.name = "Add",
                                  .out = type,
                                  .extents = {element_count(type.shape)},
                                  .strides = {{1}, {1}},
                                  .out_strides = {1},
                                  .terms = {{1, {0}}, {1, {1}}}},
                                 {found->second, more});
  }

  const Graph& graph_;
  const AffineNodes& nodes_;
  GraphBuilder builder_;
  GraphCopier copies_{graph_, builder_};
  std::map<std::uint32_t, ValueId> gradients_;  // by value of the graph
  std::vector<ValueId> outputs_;
};

}  // namespace

std::optional<Graph> gradient_graph(const Graph& graph, const AffineNodes& nodes,
                                    std::span<const double> rows, std::string& reason) {
  const auto size =
      static_cast<std::size_t>(element_count(graph.value(graph.outputs()[0]).type.shape));
  if (const Node* step = first_step(graph)) {
    reason = "node '" + step->name + "' makes integers of what moves";
    return std::nullopt;
  }
  GradientBuilder builder(graph, nodes);
  for (std::size_t r = 0; r + size <= rows.size() && size > 0; r += size) {
    if (!builder.pull(rows.subspan(r, size), reason)) return std::nullopt;
  }
  return builder.finish();
}

Graph with_sums_of_sizes(const Graph& gradients, std::size_t rows) {
  GraphBuilder builder;
  GraphCopier copies(gradients, builder);
  copies.constants();
  copies.inputs();
  copies.add_rest();
  const std::size_t parts = gradients.outputs().size() / rows;
  std::vector<ValueId> sums;
  for (std::size_t r = 0; r < rows; ++r) {
    Multilinear total{.name = "Sum", .out = {ElementType::kFloat64, {1}}};
    std::vector<ValueId> sizes;
    for (std::size_t p = 0; p < parts; ++p) {
      const ValueId g = copies[gradients.outputs()[r * parts + p]];
      const ValueType type = builder.value(g).type;
      const OnnxNode node("Abs", 13, {}, {NodeInput{type, nullptr}});
      sizes.push_back(builder.add(find_op_kind("Abs")->import(node).op, {g}, "size")[0]);
      total.extents.push_back(element_count(type.shape));
    }
    for (std::size_t p = 0; p < parts; ++p) {
      total.strides.emplace_back(parts, 0)[p] = 1;
      total.terms.push_back({1, {p}});
    }
    total.out_strides.assign(parts, 0);
    sums.push_back(add_products(builder, std::move(total), std::move(sizes)));
  }
  return builder.finish(sums);
}

}  // namespace lipscope
