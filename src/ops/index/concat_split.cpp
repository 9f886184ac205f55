// SPDX-License-Identifier: Apache-2.0
// Split takes slices of one tensor along an axis; Concat is its adjoint.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "linalg/norm/operator_norm.h"
#include "ops/box.h"
#include "ops/index/index_map.h"

namespace lipscope {
namespace {

// One map per piece, from a tensor of shape `whole` to its slice of the given length on the axis.
std::vector<IndexMap> slices(const Shape& whole, Index axis, const std::vector<Index>& lengths) {
  const std::vector<Index> strides = row_major_strides(whole);
  const auto a = static_cast<std::size_t>(axis);
  std::vector<IndexMap> maps;
  Index start = 0;
  for (const Index length : lengths) {
    Shape piece = whole;
    piece[a] = length;
    const Index offset = length > 0 ? start * strides[a] : 0;
    maps.push_back(IndexMap::strided(element_count(whole), piece, strides, offset));
    start += length;
  }
  return maps;
}

class Concat final : public Op, public WideMap, public MachineMap, public ExactMap {
 public:
  Concat(ValueType type, std::vector<IndexMap> maps)
      : type_(std::move(type)), slices_(std::move(maps)) {}

  std::string_view name() const override { return "Concat"; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override { return {type_}; }

  void eval(const EvalArgs& args) const override {
    for_storage(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      place_all<T>(args.in, args.out[0], args.count);
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    if (!args.tangent_out[0]) return;
    fill_zero(args.tangent_out[0], args.count);
    place_all<double>(args.tangent_in, args.tangent_out[0], args.count);
  }
  void vjp(const VjpArgs& args) const override {
    for (std::size_t k = 0; k < slices_.size(); ++k) {
      if (!args.grad_in[k]) continue;
      if (!args.grad_out[0]) {
        fill_zero(args.grad_in[k], args.count);
        continue;
      }
      for_each_sample(args.count, slices_[k].rows(), [&](Index b) {
        slices_[k].apply(args.grad_out[0].sample<double>(b), args.grad_in[k].sample<double>(b),
                         false);
      });
    }
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    Box out{Tensor::zeros(in[0].lower.type(), type_.shape),
            Tensor::zeros(in[0].lower.type(), type_.shape)};
    for (std::size_t k = 0; k < slices_.size(); ++k) {
      if (in[k].lower.storage() != out.lower.storage()) return std::nullopt;
      for_storage(out.lower.storage(), [&](auto zero) {
        using T = decltype(zero);
        slices_[k].place(static_cast<const T*>(in[k].lower.data()),
                         static_cast<T*>(out.lower.data()));
        slices_[k].place(static_cast<const T*>(in[k].upper.data()),
                         static_cast<T*>(out.upper.data()));
      });
    }
    return {{std::move(out)}};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    if (!is_floating(type_.type)) return std::nullopt;
    const Box& in = query.in[static_cast<std::size_t>(query.wrt)];
    if (is_point(in)) return Gain{0, "linear-3"};
    return Gain{norm_equivalence_up(in.lower.size(), query.norms.in, query.norms.out), "linear-3"};
  }
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    slices_[static_cast<std::size_t>(query.wrt)].visit_entries(true, visit);
    return true;
  }
  const MachineMap* machine_map() const override { return this; }
  std::unique_ptr<const MachineStep> machine_step(const Machine& machine,
                                                  std::size_t) const override {
    if (!is_floating(type_.type)) return nullptr;
    return copy_step(machine, [this](const CopyVisitor& visit) {
      for (std::size_t k = 0; k < slices_.size(); ++k) {
        slices_[k].for_each_entry(
            [&](Index from, Index to, const Interval&) { visit(to, static_cast<Index>(k), from); });
      }
    });
  }
  bool inputs_move_disjoint_outputs() const override { return true; }
  const WideMap* wide_map() const override { return this; }
  bool push_wide(std::span<const WideTensor* const> in, std::span<WideTensor> out) const override {
    const bool moving = std::ranges::any_of(in, [](const WideTensor* x) { return x->moves(); });
    out[0].resize(static_cast<std::size_t>(element_count(type_.shape)), moving);
    for (std::size_t k = 0; k < slices_.size(); ++k) {
      slices_[k].for_each_entry([&](Index from, Index to, const Interval&) {
        out[0].set(static_cast<std::size_t>(to), in[k]->at(static_cast<std::size_t>(from)));
      });
    }
    return true;
  }

  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    out[0].resize(static_cast<std::size_t>(element_count(type_.shape)));
    for (std::size_t k = 0; k < slices_.size(); ++k) {
      slices_[k].for_each_entry([&](Index from, Index to, const Interval&) {
        out[0][static_cast<std::size_t>(to)] = (*in[k])[static_cast<std::size_t>(from)];
      });
    }
    return true;
  }

 private:
  // Inputs without data are left out.
  template <class T>
  void place_all(std::span<const ConstView> in, const MutView& out, Index count) const {
    for_each_sample(count, out.size, [&](Index b) {
      for (std::size_t k = 0; k < slices_.size(); ++k) {
        if (in[k]) slices_[k].place(in[k].sample<T>(b), out.sample<T>(b));
      }
    });
  }

  ValueType type_;
  std::vector<IndexMap> slices_;  // of the output: input k is slice k
};

Imported import_concat(const OnnxNode& node) {
  if (node.num_inputs() == 0) node.malformed("no inputs");
  const Index given = node.opset() < 4 ? node.integer("axis", 1) : node.integer("axis");
  const Index axis = OnnxNode::axis(given, node.rank(0));
  const auto a = static_cast<std::size_t>(axis);
  ValueType type = node.input(0);
  type.shape[a] = 0;
  std::vector<Index> lengths, uses;
  for (Index k = 0; k < node.num_inputs(); ++k) {
    Shape shape = node.input(k).shape;
    if (shape.size() != type.shape.size() || node.input(k).type != type.type) {
      node.malformed("inputs of different rank or type");
    }
    lengths.push_back(shape[a]);
    uses.push_back(k);
    shape[a] = type.shape[a];
    if (shape != type.shape) {
      node.malformed(fmt::format("inputs {} and {} do not fit together on axis {}",
                                 to_string(node.input(0).shape), to_string(node.input(k).shape),
                                 axis));
    }
    type.shape[a] += lengths.back();
  }
  check_output_size(node, type.shape);
  std::vector<IndexMap> maps = slices(type.shape, axis, lengths);
  return {std::make_shared<Concat>(std::move(type), std::move(maps)), uses};
}

std::vector<Index> read_lengths(const OnnxNode& node, Index length) {
  const Index parts = node.integer("num_outputs", node.num_outputs());
  if (parts < 1 || parts != node.num_outputs()) {
    node.malformed(fmt::format("{} parts for {} outputs", parts, node.num_outputs()));
  }
  auto given = node.integers("split");
  if (!given) given = node.constant_ints(1);
  if (given) return *given;
  // Since opset 18 the last part may be smaller.
  if (node.opset() < 18 && length % parts != 0) {
    node.malformed(fmt::format("{} entries do not divide into {} equal parts", length, parts));
  }
  const Index each = (length + parts - 1) / parts;
  std::vector<Index> lengths(static_cast<std::size_t>(parts), each);
  lengths.back() = length - each * (parts - 1);
  return lengths;
}

Imported import_split(const OnnxNode& node) {
  const ValueType& in = node.input(0);
  const Index axis = OnnxNode::axis(node.integer("axis", 0), node.rank(0));
  const auto a = static_cast<std::size_t>(axis);
  const std::vector<Index> lengths = read_lengths(node, in.shape[a]);
  Index left = in.shape[a];
  for (const Index length : lengths) {
    if (length < 0 || length > left) node.malformed("split does not add up to the axis");
    left -= length;
  }
  if (left != 0 || static_cast<Index>(lengths.size()) != node.num_outputs()) {
    node.malformed("split does not fit the axis or the outputs");
  }
  std::vector<IndexMap> maps = slices(in.shape, axis, lengths);
  std::vector<IndexMapOp::Output> outputs;
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    ValueType type = in;
    type.shape[a] = lengths[k];
    outputs.push_back({std::move(type), std::move(maps[k])});
  }
  return std::make_shared<IndexMapOp>("Split", std::move(outputs));
}

std::vector<OpCase> concat_cases(Rng& rng) {
  return {
      {.inputs = {{random_tensor(rng, {2, 3})}, {random_tensor(rng, {2, 1})}},
       .attributes = {{"axis", Index{1}}}},
      {.inputs = {{random_tensor(rng, {2, 3})},
                  {random_tensor(rng, {0, 3})},
                  {random_tensor(rng, {1, 3}), true}},
       .attributes = {{"axis", Index{-2}}}},
      {.inputs = {{random_tensor(rng, {2, 3, 2})}, {random_tensor(rng, {2, 2, 2})}}, .opset = 1},
      {.inputs = {{Tensor::integers({2}, {1, 2})}, {Tensor::integers({1}, {3})}},
       .attributes = {{"axis", Index{0}}}},
      {.inputs = {{random_tensor(rng, {2})}}, .attributes = {{"axis", Index{0}}}}};
}

std::vector<OpCase> split_cases(Rng& rng) {
  return {{.inputs = {{random_tensor(rng, {6, 2})}}, .outputs = 3},
          {.inputs = {{random_tensor(rng, {2, 5})}, fixed_ints({1, 0, 4})},
           .attributes = {{"axis", Index{1}}},
           .outputs = 3},
          {.inputs = {{random_tensor(rng, {2, 5, 2})}},
           .attributes = {{"axis", Index{-2}}, {"split", std::vector<Index>{2, 3}}},
           .opset = 2,
           .outputs = 2},
          {.inputs = {{random_tensor(rng, {7})}},
           .attributes = {{"num_outputs", Index{4}}},
           .opset = 18,
           .outputs = 4},
          {.inputs = {{random_tensor(rng, {3})}}}};
}

}  // namespace

std::vector<OpKind> op_concat_split() {
  return {{"Concat", import_concat, concat_cases}, {"Split", import_split, split_cases}};
}

}  // namespace lipscope
