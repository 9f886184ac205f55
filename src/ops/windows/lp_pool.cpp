// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/box.h"
#include "ops/dispatch.h"
#include "ops/elementwise/unary.h"
#include "ops/kind.h"
#include "ops/windows/taps.h"

namespace lipscope {
namespace {

// The p-norm of every window; padding counts as zero.
class LpPool final : public Op {
 public:
  LpPool(std::string name, ValueType type, double p, Index planes, const Window& window)
      : name_(std::move(name)),
        type_(std::move(type)),
        p_(p),
        planes_(planes),
        taps_(lay_out(window)) {}

  std::string_view name() const override { return name_; }
  std::vector<ValueType> infer(std::span<const ValueType>) const override { return {type_}; }

  void eval(const EvalArgs& args) const override {
    for_real(args.in[0].storage, [&](auto zero) {
      using T = decltype(zero);
      const T p = static_cast<T>(p_);
      for_each_plane(args.count, [&](Index b, Index plane) {
        const T* x = args.in[0].sample<T>(b) + plane * taps_.in_size;
        T* y = args.out[0].sample<T>(b) + plane * taps_.out_size;
        std::fill_n(y, taps_.out_size, T{});
        for_each_pair([&](Index to, Index from) {
          const T size = std::abs(x[from]);
          y[to] += p_ == 2 ? size * size : p_ == 1 ? size : std::pow(size, p);
        });
        for (Index i = 0; i < taps_.out_size; ++i) {
          y[i] = p_ == 2 ? std::sqrt(y[i]) : p_ == 1 ? y[i] : std::pow(y[i], 1 / p);
        }
      });
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    const MutView& out = args.tangent_out[0];
    if (!out) return;
    fill_zero(out, args.count);
    if (!args.tangent_in[0]) return;
    for_each_plane(args.count, [&](Index b, Index plane) {
      const Index in = plane * taps_.in_size, at = plane * taps_.out_size;
      const double* x = args.in[0].sample<double>(b) + in;
      const double* y = args.out[0].sample<double>(b) + at;
      const double* from = args.tangent_in[0].sample<double>(b) + in;
      double* to = out.sample<double>(b) + at;
      for_each_pair([&](Index o, Index i) { to[o] += slope(x[i], y[o]) * from[i]; });
    });
  }
  void vjp(const VjpArgs& args) const override {
    const MutView& grad = args.grad_in[0];
    if (!grad) return;
    fill_zero(grad, args.count);
    if (!args.grad_out[0]) return;
    for_each_plane(args.count, [&](Index b, Index plane) {
      const Index in = plane * taps_.in_size, at = plane * taps_.out_size;
      const double* x = args.in[0].sample<double>(b) + in;
      const double* y = args.out[0].sample<double>(b) + at;
      const double* from = args.grad_out[0].sample<double>(b) + at;
      double* to = grad.sample<double>(b) + in;
      for_each_pair([&](Index o, Index i) { to[i] += slope(x[i], y[o]) * from[o]; });
    });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (!holds_doubles(in[0])) return std::nullopt;
    const auto n = static_cast<std::size_t>(planes_ * taps_.out_size);
    std::vector<double> lower(n), upper(n);
    std::vector<std::vector<Index>> windows(static_cast<std::size_t>(taps_.out_size));
    for_each_pair([&](Index o, Index i) { windows[static_cast<std::size_t>(o)].push_back(i); });
    for_each_plane(1, [&](Index, Index plane) {
      std::vector<double> least, most;
      for (std::size_t o = 0; o < windows.size(); ++o) {
        least.clear();
        most.clear();
        for (const Index i : windows[o]) {
          const Interval x = entry(in[0], plane * taps_.in_size + i);
          least.push_back(mignitude(x));
          most.push_back(magnitude(x));
        }
        const std::size_t to = static_cast<std::size_t>(plane * taps_.out_size) + o;
        lower[to] = pnorm_down(least, p_);
        upper[to] = pnorm_up(most, p_);
      }
    });
    return {{make_box(type_.shape, std::move(lower), std::move(upper))}};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    if (!holds_doubles(query.in[0])) return std::nullopt;
    if (is_point(query.in[0])) return Gain{0, "linear-7"};
    return Gain{window_gain_up(taps_, planes_, Norm(p_), query.norms), "linear-7"};
  }

 private:
  template <class Body>
  void for_each_plane(Index count, Body&& body) const {
    if (planes_ == 0) return;
    for_each_sample(count * planes_, taps_.in_size,
                    [&](Index i) { body(i / planes_, i % planes_); });
  }
  // visit(output entry, input entry) of a plane
  template <class Visit>
  void for_each_pair(Visit&& visit) const {
    for (const Tap& tap : taps_.taps) {
      for (Index i = 0; i < tap.length; ++i) visit(tap.out + i, tap.in + i * taps_.step);
    }
  }
  double slope(double x, double y) const {
    if (y == 0 || x == 0) return 0;
    return std::copysign(std::pow(std::abs(x) / y, p_ - 1), x);
  }

  std::string name_;
  ValueType type_;
  double p_;
  Index planes_;
  Taps taps_;
};

double read_order(const OnnxNode& node) {
  const double p = node.opset() < 2 ? node.real("p") : static_cast<double>(node.integer("p", 2));
  if (!(p >= 1)) node.malformed("p has to be at least 1");
  return p;
}

Imported import_lp_pool(const OnnxNode& node) {
  require_real(node);
  const Shape& in = node.input(0).shape;
  if (in.size() < 3) node.malformed("the input has no spatial axes");
  const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
  const Window window = read_window(node, std::span(in).subspan(2), {}, ceil_mode);
  ValueType type{node.input(0).type, {in[0], in[1]}};
  type.shape.insert(type.shape.end(), window.output.begin(), window.output.end());
  return std::make_shared<LpPool>(node.type(), std::move(type), read_order(node), in[0] * in[1],
                                  window);
}

Imported import_global_lp_pool(const OnnxNode& node) {
  require_real(node);
  const Shape& in = node.input(0).shape;
  if (in.size() < 2) node.malformed("the input has no channels");
  ValueType type{node.input(0).type, Shape(in.size(), 1)};
  std::copy_n(in.begin(), 2, type.shape.begin());
  Index plane = 1;
  for (std::size_t a = 2; a < in.size(); ++a) plane *= in[a];
  if (plane == 0) node.malformed("the norm of nothing");
  const Window window{{plane}, {1}, {1}, {0}, {0}, {plane}, {1}};
  return std::make_shared<LpPool>(node.type(), std::move(type), read_order(node), in[0] * in[1],
                                  window);
}

std::vector<OpCase> lp_pool_cases(Rng& rng) {
  using List = std::vector<Index>;
  const auto input = [&](Shape shape) {
    return std::vector<OpCase::Input>{{random_tensor_avoiding(rng, std::move(shape), {0})}};
  };
  return {{.inputs = input({1, 2, 5, 6}),
           .attributes = {{"kernel_shape", List{3, 2}},
                          {"strides", List{2, 1}},
                          {"pads", List{1, 0, 1, 1}}}},
          {.inputs = input({1, 2, 7}), .attributes = {{"kernel_shape", List{3}}, {"p", Index{3}}}},
          {.inputs = input({1, 2, 7}), .attributes = {{"kernel_shape", List{2}}, {"p", Index{1}}}}};
}

std::vector<OpCase> global_lp_pool_cases(Rng& rng) {
  return {
      {.inputs = {{random_tensor_avoiding(rng, {1, 2, 3, 3}, {0})}}},
      {.inputs = {{random_tensor_avoiding(rng, {2, 2, 3}, {0})}}, .attributes = {{"p", Index{3}}}}};
}

}  // namespace

std::vector<OpKind> op_lp_pool() {
  return {{"LpPool", import_lp_pool, lp_pool_cases},
          {"GlobalLpPool", import_global_lp_pool, global_lp_pool_cases}};
}

}  // namespace lipscope
