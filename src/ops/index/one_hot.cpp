// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/facets/entry_bounds.h"
#include "ops/integer/integers.h"
#include "ops/rows/rows.h"

namespace lipscope {
namespace {

// A new axis of size depth that holds `on` at the index and `off` elsewhere; indices count from the
// end when negative, and hit nothing outside [-depth, depth).
class OneHot final : public Op {
 public:
  OneHot(const Tensor& values, Index axis, Index depth)
      : values_(values), stored_{values, values}, axis_(axis), depth_(depth) {}

  std::string_view name() const override { return "OneHot"; }
  bool decides_exactly() const override { return true; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    Shape shape = in[0].shape;
    shape.insert(shape.begin() + axis_, depth_);
    return {{values_.type(), std::move(shape)}};
  }

  void eval(const EvalArgs& args) const override {
    const ConstView indices = args.in[0];
    const MutView out = args.out[0];
    const RowSplit split = RowSplit::of(*out.shape, axis_, axis_ + 1);
    for_storage(indices.storage, [&](auto from) {
      for_storage(out.storage, [&](auto to) {
        using From = decltype(from);
        using To = decltype(to);
        const To off = value<To>(0), on = value<To>(1);
        for (Index b = 0; b < args.count; ++b) {
          To* y = out.sample<To>(b);
          std::fill_n(y, out.size, off);
          for (Index row = 0; row < split.rows(); ++row) {
            const auto at = place(static_cast<double>(indices.sample<From>(b)[row]));
            if (at >= 0) y[split.start(row) + at * split.inner] = on;
          }
        }
      });
    });
  }

  // One of the two values; which, is known where the index is.
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const BoxEntries index(in[0]);
    const BoxEntries values(stored_);
    const Interval either = hull(values[0], values[1]);
    const std::vector<ValueType> types{{in[0].lower.type(), in[0].lower.shape()}};
    const Shape shape = infer(types).front().shape;
    const RowSplit split = RowSplit::of(shape, axis_, axis_ + 1);
    BoxBuilder out(shape);
    for (Index row = 0; row < split.rows(); ++row) {
      const double first = std::trunc(index[row].lo), last = std::trunc(index[row].hi);
      const Index at = place(first);
      for (Index i = 0; i < depth_; ++i) {
        out.set(split.start(row) + i * split.inner,
                first != last ? either : values[i == at ? 1 : 0]);
      }
    }
    return std::vector<Box>{std::move(out).finish()};
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    if (args.tangent_out[0]) fill_zero(args.tangent_out[0], args.count);
  }
  void vjp(const VjpArgs& args) const override {
    if (args.grad_in[0]) fill_zero(args.grad_in[0], args.count);
  }

 private:
  template <class T>
  T value(std::size_t k) const {
    if constexpr (std::is_same_v<T, Index>) {
      return values_.ints()[k];
    } else {
      return static_cast<T>(values_.doubles()[k]);
    }
  }
  // -1 when the index hits nothing.
  Index place(double index) const {
    const auto depth = static_cast<double>(depth_);
    const double whole = std::trunc(index);
    if (!(whole >= -depth && whole < depth)) return -1;
    return static_cast<Index>(whole) + (whole < 0 ? depth_ : 0);
  }

  Tensor values_;  // off, on
  Box stored_;     // the same as a box
  Index axis_, depth_;
};

Imported import_one_hot(const OnnxNode& node) {
  const Tensor& depth = node.constant(1);
  const Tensor& values = node.constant(2);
  if (depth.size() != 1) node.malformed("the depth has to be one number");
  if (values.size() != 2) node.malformed("there have to be two values");
  if (!(depth.at(0) >= 0 && depth.at(0) < 0x1p31)) node.malformed("the depth is out of range");
  const Index axis = OnnxNode::axis(node.integer("axis", -1), node.rank(0) + 1);
  return std::make_shared<OneHot>(values, axis, static_cast<Index>(depth.at(0)));
}

std::vector<OpCase> one_hot_cases(Rng& rng) {
  const Tensor indices = Tensor::integers({2, 2}, {0, -1, 7, 2});
  std::vector<OpCase> cases;
  for (const Index axis : {0, 1, -1}) {
    cases.push_back({.inputs = {{indices}, fixed_ints({3}), {random_tensor(rng, {2}), true}},
                     .attributes = {{"axis", axis}}});
  }
  cases.push_back({.inputs = {{Tensor::integers({}, {1})},
                              {Tensor::scalar(4), true},
                              {Tensor::integers({2}, {5, 6}), true}}});
  return cases;
}

// The positions of the entries that are not 0, as columns. Their number has to be known.
Imported import_non_zero(const OnnxNode& node) {
  Box x = node.constant_box(0);
  const Shape shape = x.lower.shape();
  if (shape.empty()) node.unsupported("a tensor without axes");
  const auto open = [&](Index i) {
    return x.lower.at(i) != x.upper.at(i) && x.lower.at(i) <= 0 && x.upper.at(i) >= 0;
  };
  std::vector<Index> found;
  for (Index i = 0; i < x.lower.size(); ++i) {
    if (open(i)) x = {node.constant(0), node.constant(0)};
    if (x.lower.at(i) != 0 || x.upper.at(i) != 0) found.push_back(i);
  }
  const auto rank = static_cast<Index>(shape.size()), n = static_cast<Index>(found.size());
  std::vector<Index> entries(static_cast<std::size_t>(rank * n));
  for (Index d = rank; d-- > 0;) {
    const Index extent = shape[static_cast<std::size_t>(d)];
    for (Index k = 0; k < n; ++k) {
      Index& rest = found[static_cast<std::size_t>(k)];
      entries[static_cast<std::size_t>(d * n + k)] = rest % extent;
      rest /= extent;
    }
  }
  return Tensor::integers({rank, n}, std::move(entries));
}

std::vector<OpCase> non_zero_cases(Rng&) {
  return {{.inputs = {{Tensor::integers({2, 3}, {0, 1, 2, 0, 0, 3}), true}}},
          {.inputs = {{Tensor::vector({0, 0}), true}}}};
}

}  // namespace

std::vector<OpKind> op_one_hot() {
  return {{"OneHot", import_one_hot, one_hot_cases}, {"NonZero", import_non_zero, non_zero_cases}};
}

}  // namespace lipscope
