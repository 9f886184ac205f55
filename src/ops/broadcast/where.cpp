// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast/binary.h"

namespace lipscope {
namespace {

class Where final : public Op, public WideMap, public ExactMap {
 public:
  explicit Where(Broadcast<3> plan) : plan_(std::move(plan)) {}
  std::string_view name() const override { return "Where"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return {{in[1].type, plan_.shape()}};
  }

  void eval(const EvalArgs& args) const override {
    const ConstView condition = args.in[0];
    for_storage(args.out[0].storage, [&](auto zero) {
      using T = decltype(zero);
      plan_.for_each_piece(args.count, [&](Index s, Index at, const auto& from, Index n) {
        const Index* c = condition.sample<Index>(s) + from[0];
        const T* x = args.in[1].template sample<T>(s) + from[1];
        const T* y = args.in[2].template sample<T>(s) + from[2];
        T* to = args.out[0].template sample<T>(s) + at;
        const Index sc = plan_.step(0), sx = plan_.step(1), sy = plan_.step(2);
        for (Index i = 0; i < n; ++i) to[i] = c[i * sc] != 0 ? x[i * sx] : y[i * sy];
      });
    });
  }

  bool differentiable() const override { return true; }
  void jvp(const JvpArgs& args) const override {
    const MutView out = args.tangent_out[0];
    if (!out) return;
    fill_zero(out, args.count);
    for (const std::size_t k : {1, 2}) {
      const ConstView t = args.tangent_in[k];
      if (!t) continue;
      for_each_taken(args.in[0], args.count, k, [&](Index s, Index at, Index from) {
        out.sample<double>(s)[at] = t.sample<double>(s)[from];
      });
    }
  }
  void vjp(const VjpArgs& args) const override {
    const ConstView g = args.grad_out[0];
    for (const std::size_t k : {1, 2}) {
      const MutView out = args.grad_in[k];
      if (!out) continue;
      fill_zero(out, args.count);
      if (!g) continue;
      for_each_taken(args.in[0], args.count, k, [&](Index s, Index at, Index from) {
        out.sample<double>(s)[from] += g.sample<double>(s)[at];
      });
    }
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const BoxEntries c(in[0]), x(in[1]), y(in[2]);
    BoxBuilder out(plan_.shape());
    for_each_triple([&](Index o, Index k, Index i, Index j) {
      out.set(o, !contains(c[k], 0) ? x[i] : c.moves(k) ? hull(x[i], y[j]) : y[j]);
    });
    return std::vector<Box>{std::move(out).finish()};
  }
  // A condition that changes does so by 1.
  std::optional<Gain> gain(const GainQuery& query) const override {
    const BoxEntries c(query.in[0]), x(query.in[1]), y(query.in[2]);
    EntryGain gain(query.wrt == 0 ? c : query.wrt == 1 ? x : y);
    for_each_triple([&](Index, Index k, Index i, Index j) {
      if (query.wrt == 0) {
        gain.follow(k, contains(c[k], 0) ? magnitude(x[i] - y[j]) : 0);
      } else if (query.wrt == 1) {
        gain.follow(i, contains(c[k], 0) && !c.moves(k) ? 0 : 1);
      } else {
        gain.follow(j, contains(c[k], 0) ? 1 : 0);
      }
    });
    return Gain{gain.value(query.norms), "pointwise-2"};
  }
  // The identity on the entries taken.
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    if (query.wrt == 0 || !is_floating(query.in[1].lower.type())) return false;
    const BoxEntries c(query.in[0]);
    for_each_triple([&](Index o, Index k, Index i, Index j) {
      const bool sure = !c.moves(k), first = !contains(c[k], 0);
      if (sure && first != (query.wrt == 1)) return;
      visit(o, query.wrt == 1 ? i : j, sure ? 1 : 0, 1);
    });
    return true;
  }

  const WideMap* wide_map() const override { return this; }
  bool push_wide(std::span<const WideTensor* const> in, std::span<WideTensor> out) const override {
    out[0].resize(static_cast<std::size_t>(plan_.size()), in[1]->moves() || in[2]->moves());
    for_each_triple([&](Index o, Index k, Index i, Index j) {
      const bool first = !in[0]->value[static_cast<std::size_t>(k)].is_zero();
      out[0].set(static_cast<std::size_t>(o), first ? in[1]->at(static_cast<std::size_t>(i))
                                                    : in[2]->at(static_cast<std::size_t>(j)));
    });
    return true;
  }

  const ExactMap* exact_map() const override { return this; }
  bool push_exact(std::span<const ExactTensor* const> in,
                  std::span<ExactTensor> out) const override {
    out[0].resize(static_cast<std::size_t>(plan_.size()));
    for_each_triple([&](Index o, Index k, Index i, Index j) {
      const bool first = !(*in[0])[static_cast<std::size_t>(k)].is(Rational());
      out[0][static_cast<std::size_t>(o)] =
          first ? (*in[1])[static_cast<std::size_t>(i)] : (*in[2])[static_cast<std::size_t>(j)];
    });
    return true;
  }

 private:
  // body(output entry, entries of the three inputs).
  template <class Body>
  void for_each_triple(Body&& body) const {
    plan_.for_each_run([&](Index at, const auto& from, Index n) {
      for (Index i = 0; i < n; ++i) {
        body(at + i, from[0] + i * plan_.step(0), from[1] + i * plan_.step(1),
             from[2] + i * plan_.step(2));
      }
    });
  }

  // body(sample, output position, position in input k) for the entries taken from input k.
  template <class Body>
  void for_each_taken(const ConstView& condition, Index count, std::size_t k, Body&& body) const {
    for_each_sample(count, plan_.size(), [&](Index s) {
      plan_.for_each_run([&](Index at, const auto& from, Index n) {
        const Index* c = condition.sample<Index>(s) + from[0];
        for (Index i = 0; i < n; ++i) {
          if ((c[i * plan_.step(0)] != 0) == (k == 1)) body(s, at + i, from[k] + i * plan_.step(k));
        }
      });
    });
  }

  Broadcast<3> plan_;
};

Imported import_where(const OnnxNode& node) {
  if (node.input(0).type != ElementType::kBool) node.malformed("the condition has to be bool");
  require_same_type(node, 1);
  const std::array<Shape, 3> shapes = {node.input(0).shape, node.input(1).shape,
                                       node.input(2).shape};
  auto full = broadcast_shape(shapes[0], shapes[1]);
  if (full) full = broadcast_shape(*full, shapes[2]);
  if (!full) node.malformed("the shapes of the inputs do not fit together");
  return {std::make_shared<Where>(Broadcast<3>(*full, shapes)), {0, 1, 2}};
}

std::vector<OpCase> where_cases(Rng& rng) {
  const Tensor c(ElementType::kBool, {2, 2}, std::vector<Index>{1, 0, 0, 1});
  const Tensor row(ElementType::kBool, {2, 1}, std::vector<Index>{1, 0});
  const Tensor none(ElementType::kBool, {0}, std::vector<Index>{});
  const auto x = [&](Shape shape) { return random_tensor(rng, std::move(shape)); };
  return {{.inputs = {{c}, {x({2, 2})}, {x({2, 2})}}},
          {.inputs = {{c, true}, {x({2, 2})}, {x({}), true}}},
          {.inputs = {{row}, {x({3})}, {x({4, 1, 1})}}},
          {.inputs = {{c, true}, {x({3, 1, 2}), true}, {x({2, 2})}}},
          {.inputs = {{none}, {x({1})}, {x({})}}},
          {.inputs = {{c}, {Tensor::integers({}, {4})}, {Tensor::integers({2}, {5, 6}), true}}}};
}

}  // namespace

std::vector<OpKind> op_where() { return {{"Where", import_where, where_cases}}; }

}  // namespace lipscope
