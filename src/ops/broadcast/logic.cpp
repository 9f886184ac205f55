// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast/binary.h"

namespace lipscope {
namespace {

// Of bools, held as 0 and 1, and of integers bit by bit.
struct And {
  static constexpr std::string_view kName = "And";
  Index integer(ElementType, Index a, Index b) const { return a & b; }
};
struct Or {
  static constexpr std::string_view kName = "Or";
  Index integer(ElementType, Index a, Index b) const { return a | b; }
};
struct Xor {
  static constexpr std::string_view kName = "Xor";
  Index integer(ElementType, Index a, Index b) const { return a ^ b; }
};
struct BitwiseAnd : And {
  static constexpr std::string_view kName = "BitwiseAnd";
};
struct BitwiseOr : Or {
  static constexpr std::string_view kName = "BitwiseOr";
};
struct BitwiseXor : Xor {
  static constexpr std::string_view kName = "BitwiseXor";
};

struct BitShift {
  static constexpr std::string_view kName = "BitShift";
  bool left;
  Index integer(ElementType, Index a, Index b) const {
    if (bits_of(b) >= 64) return 0;
    return from_bits(left ? bits_of(a) << b : bits_of(a) >> b);
  }
};

// Not of bools and of integers bit by bit.
class NotOp final : public Op {
 public:
  explicit NotOp(bool bitwise) : bitwise_(bitwise) {}
  std::string_view name() const override { return bitwise_ ? "BitwiseNot" : "Not"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override { return {in[0]}; }
  void eval(const EvalArgs& args) const override {
    const ConstView x = args.in[0];
    for_each_sample(args.count, x.size, [&](Index b) {
      const Index* from = x.sample<Index>(b);
      Index* to = args.out[0].sample<Index>(b);
      for (Index i = 0; i < x.size; ++i) {
        to[i] = bitwise_ ? wrap_integer(x.type, ~from[i]) : 1 - from[i];
      }
    });
  }

  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    if (bitwise_) return std::nullopt;
    const BoxEntries x(in[0]);
    BoxBuilder out(in[0].lower.shape());
    for (Index i = 0; i < x.size(); ++i) out.set(i, 1 - x[i]);
    return std::vector<Box>{std::move(out).finish()};
  }
  std::optional<Gain> gain(const GainQuery& query) const override {
    if (bitwise_) return std::nullopt;
    const BoxEntries x(query.in[0]);
    EntryGain gain(x);
    for (Index i = 0; i < x.size(); ++i) gain.follow(i, 1);
    return Gain{gain.value(query.norms), "pointwise-3"};
  }

 private:
  bool bitwise_;
};

void require_bool(const OnnxNode& node, bool wanted) {
  const ElementType type = node.input(0).type;
  if (is_floating(type) || (type == ElementType::kBool) != wanted) {
    node.malformed("element type " + std::string(to_string(type)));
  }
}

template <class F, bool kBool>
OpKind logic_kind() {
  constexpr auto kImport = [](const OnnxNode& node) {
    require_bool(node, kBool);
    return import_binary<F>(node);
  };
  constexpr auto kCases = [](Rng&) -> std::vector<OpCase> {
    if (!kBool)
      return {integer_operands(ElementType::kInt32), integer_operands(ElementType::kUInt8)};
    const auto bools = [](Shape shape, std::vector<Index> entries) {
      return Tensor(ElementType::kBool, std::move(shape), std::move(entries));
    };
    return {{.inputs = {{bools({2, 2}, {0, 1, 0, 1})}, {bools({2, 2}, {0, 0, 1, 1})}}},
            {.inputs = {{bools({2, 1}, {0, 1})}, {bools({2}, {0, 1}), true}}},
            {.inputs = {{bools({2, 2}, {0, 1, 1, 0})}, {bools({2}, {0, 1})}},
             .attributes = {{"broadcast", Index{1}}, {"axis", Index{0}}},
             .opset = 1}};
  };
  return {F::kName, kImport, kCases};
}

Imported import_not(const OnnxNode& node) {
  const bool bitwise = node.type() == "BitwiseNot";
  require_bool(node, !bitwise);
  return std::make_shared<NotOp>(bitwise);
}

Imported import_bit_shift(const OnnxNode& node) {
  const std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") node.malformed("unknown direction");
  if (!is_unsigned(node.input(0).type)) node.malformed("operands have to be unsigned integers");
  return import_binary(node, BitShift{direction == "LEFT"});
}

}  // namespace

std::vector<OpKind> op_logic() {
  return {logic_kind<And, true>(),
          logic_kind<Or, true>(),
          logic_kind<Xor, true>(),
          logic_kind<BitwiseAnd, false>(),
          logic_kind<BitwiseOr, false>(),
          logic_kind<BitwiseXor, false>(),
          {"Not", import_not,
           [](Rng&) -> std::vector<OpCase> {
             return {{.inputs = {{Tensor(ElementType::kBool, {3}, std::vector<Index>{0, 1, 1})}}}};
           }},
          {"BitwiseNot", import_not,
           [](Rng&) -> std::vector<OpCase> {
             return {{.inputs = {{Tensor(ElementType::kUInt8, {3}, std::vector<Index>{0, 1, 255})}},
                      .opset = 18}};
           }},
          {BitShift::kName, import_bit_shift, [](Rng&) -> std::vector<OpCase> {
             std::vector<OpCase> cases(2, integer_operands(ElementType::kUInt8));
             cases[0].attributes = {{"direction", std::string("LEFT")}};
             cases[1].attributes = {{"direction", std::string("RIGHT")}};
             return cases;
           }}};
}

}  // namespace lipscope
