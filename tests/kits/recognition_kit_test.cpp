// SPDX-License-Identifier: Apache-2.0
// Recognised patterns are the functions they were spelled out as, whatever shapes their constants
// have, in whatever order the operands stand: the same type and shape, the same values, and bounds
// that hold for both.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "bounds/boxes.h"
#include "lipscope/evaluate.h"
#include "ops/kind.h"
#include "passes/add_node.h"
#include "passes/merge_affine.h"
#include "passes/pass.h"

namespace lipscope {
namespace {

// Spells a pattern out: constants come with the shapes that are asked for, operands of sums and
// products in the order that is asked for.
class Speller {
 public:
  Speller(Shape x, ElementType type, std::vector<Shape> shapes, bool swapped)
      : type_(type), shapes_(std::move(shapes)), swapped_(swapped) {
    x_ = builder_.input("x", {type, std::move(x)});
  }

  [[nodiscard]] ValueId x() const { return x_; }
  // Constant number `slot` of the pattern.
  ValueId number(std::size_t slot, double value) {
    const Shape shape = slot < shapes_.size() ? shapes_[slot] : Shape{};
    const auto size = static_cast<std::size_t>(element_count(shape));
    return builder_.constant(
        "c" + std::to_string(++count_),
        Tensor(type_, shape, std::vector<double>(size, round_to(type_, value))));
  }
  ValueId vector(std::vector<double> entries) {
    const Shape shape{static_cast<Index>(entries.size())};
    return builder_.constant("w" + std::to_string(++count_),
                             Tensor(type_, shape, std::move(entries)));
  }
  ValueId add(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    if (swapped_ && (op == "Add" || op == "Mul")) std::swap(inputs[0], inputs[1]);
    return add_node(builder_, op, inputs, op + std::to_string(++count_), std::move(attributes));
  }
  ValueId mean(ValueId y) { return add("ReduceMean", {y}, {{"axes", std::vector<Index>{-1}}}); }
  Graph finish(ValueId y) { return builder_.finish({y}); }

 private:
  ElementType type_;
  std::vector<Shape> shapes_;
  bool swapped_;
  GraphBuilder builder_;
  ValueId x_;
  int count_ = 0;
};

struct Pattern {
  std::string name, recognised;
  std::size_t constants;
  std::function<ValueId(Speller&)> spell;
};

ValueId gate_erf(Speller& s, ValueId scaled) {
  return s.add("Add", {s.add("Erf", {scaled}), s.number(1, 1)});
}
ValueId gate_tanh(Speller& s, ValueId cube) {
  const ValueId inner = s.add("Add", {s.x(), s.add("Mul", {cube, s.number(1, 0.044715)})});
  const ValueId curve = s.add("Tanh", {s.add("Mul", {inner, s.number(2, 0.7978845608)})});
  return s.add("Add", {curve, s.number(3, 1)});
}
ValueId layer_norm(Speller& s, bool pow, bool affine) {
  const ValueId centred = s.add("Sub", {s.x(), s.mean(s.x())});
  const ValueId again = s.add("Sub", {s.x(), s.mean(s.x())});
  const ValueId square = pow ? s.add("Pow", {again, s.number(0, 2)}) : s.add("Mul", {again, again});
  const ValueId root = s.add("Sqrt", {s.add("Add", {s.mean(square), s.number(1, 0.01)})});
  const ValueId norm = s.add("Div", {centred, root});
  if (!affine) return norm;
  const ValueId scaled = s.add("Mul", {norm, s.vector({2, -1, 0.5})});
  return s.add("Add", {scaled, s.vector({1, 0, 3})});
}
ValueId rms_norm(Speller& s, const std::string& way) {
  const ValueId square = s.add("Pow", {s.x(), s.number(0, 2)});
  const ValueId sum = s.add("Add", {s.mean(square), s.number(1, 0.01)});
  if (way == "pow") return s.add("Mul", {s.x(), s.add("Pow", {sum, s.number(2, -0.5)})});
  const ValueId root = s.add("Sqrt", {sum});
  if (way == "divided") return s.add("Div", {s.x(), root});
  return s.add("Mul", {s.x(), s.add("Div", {s.number(2, 1), root})});
}

std::vector<Pattern> patterns() {
  using S = Speller;
  const double root = std::numbers::sqrt2;
  return {
      {"GeluDivided", "Gelu", 3,
       [=](S& s) {
         const ValueId gate = gate_erf(s, s.add("Div", {s.x(), s.number(0, root)}));
         return s.add("Mul", {s.add("Mul", {s.x(), gate}), s.number(2, 0.5)});
       }},
      {"GeluHalved", "Gelu", 3,
       [=](S& s) {
         const ValueId gate = gate_erf(s, s.add("Mul", {s.x(), s.number(0, 1 / root)}));
         return s.add("Mul", {s.add("Div", {s.x(), s.number(2, 2)}), gate});
       }},
      {"GeluTanhPower", "Gelu", 5,
       [](S& s) {
         const ValueId gate = gate_tanh(s, s.add("Pow", {s.x(), s.number(0, 3)}));
         return s.add("Mul", {s.add("Mul", {s.number(4, 0.5), s.x()}), gate});
       }},
      {"GeluTanhProduct", "Gelu", 5,
       [](S& s) {
         const ValueId cube = s.add("Mul", {s.add("Mul", {s.x(), s.x()}), s.x()});
         return s.add("Mul", {s.add("Mul", {s.x(), gate_tanh(s, cube)}), s.number(4, 0.5)});
       }},
      {"QuickGelu", "Swish", 1,
       [](S& s) {
         const ValueId inner = s.add("Mul", {s.x(), s.number(0, 1.702)});
         return s.add("Mul", {s.x(), s.add("Sigmoid", {inner})});
       }},
      {"HardSwish", "HardSwish", 2,
       [](S& s) {
         const ValueId shifted = s.add("Add", {s.x(), s.number(0, 3)});
         const ValueId gate = s.add("Clip", {shifted, s.number(9, 0), s.number(9, 6)});
         return s.add("Div", {s.add("Mul", {s.x(), gate}), s.number(1, 6)});
       }},
      {"LayerNormPower", "LayerNormalization", 2, [](S& s) { return layer_norm(s, true, false); }},
      {"LayerNormProduct", "LayerNormalization", 2,
       [](S& s) { return layer_norm(s, false, false); }},
      {"LayerNormAffine", "LayerNormalization", 2, [](S& s) { return layer_norm(s, true, true); }},
      {"RmsNormDivided", "RMSNormalization", 2, [](S& s) { return rms_norm(s, "divided"); }},
      {"RmsNormPower", "RMSNormalization", 3, [](S& s) { return rms_norm(s, "pow"); }},
      {"RmsNormOneOver", "RMSNormalization", 3, [](S& s) { return rms_norm(s, "one over"); }},
      {"ScaledAndShifted", "", 2,
       [](S& s) {
         return s.add("Add", {s.add("Mul", {s.x(), s.number(0, 3)}), s.number(1, 0.25)});
       }},
  };
}

class RecognitionKit : public testing::TestWithParam<Pattern> {
 protected:
  // Every constant in every shape, one after the other, and all of them at once.
  template <class Check>
  void for_each_variant(Check&& check) {
    const std::vector<Shape> constants{{},     {1},       {1, 1},       {4, 1},   {3},
                                       {4, 3}, {1, 1, 1}, {2, 1, 1, 1}, {1, 4, 1}};
    for (const Shape& x : std::vector<Shape>{{1, 3}, {4, 3}, {3}, {2, 4, 3}, {1, 1, 3}}) {
      for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
        for (const bool swapped : {false, true}) {
          for (const Shape& shape : constants) {
            for (std::size_t slot = 0; slot <= GetParam().constants; ++slot) {
              std::vector<Shape> shapes(GetParam().constants);
              if (slot < shapes.size()) shapes[slot] = shape;
              if (slot == shapes.size()) shapes.assign(shapes.size(), shape);
              SCOPED_TRACE(to_string(x) + " constant " + std::to_string(slot) + " of shape " +
                           to_string(shape) + (swapped ? " swapped" : ""));
              Speller speller(x, type, shapes, swapped);
              const ValueId y = GetParam().spell(speller);
              check(speller.finish(y), x);
            }
          }
        }
      }
    }
  }
};

void expect_same_function(const Graph& before, const Graph& after, const Shape& x, Rng& rng) {
  const ValueType &old = before.value(before.outputs()[0]).type,
                  &made = after.value(after.outputs()[0]).type;
  ASSERT_EQ(old.type, made.type);
  ASSERT_EQ(old.shape, made.shape);
  const Tensor at = random_tensor(rng, x, -3, 3).cast(ElementType::kFloat64);
  const std::vector<Tensor> point{at.cast(before.value(before.inputs()[0]).type.type)};
  const Tensor a = evaluate(before, point)[0], b = evaluate(after, point)[0];
  ASSERT_EQ(a.shape(), b.shape());
  const std::vector<Box> box{{at, at}};
  ValueBoxes first(before, box), second(after, box);
  const Box &one = first.at(before.outputs()[0]), &two = second.at(after.outputs()[0]);
  for (Index i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a.at(i), b.at(i), 1e-12 * (1 + std::abs(a.at(i))));
    ASSERT_LE(one.lower.at(i), two.upper.at(i));
    ASSERT_LE(two.lower.at(i), one.upper.at(i));
  }
}

TEST_P(RecognitionKit, KeepsTheFunction) {
  Rng rng(11);
  Index recognised = 0, variants = 0;
  for_each_variant([&](const Graph& before, const Shape& x) {
    const Graph after = run_passes(before);
    ++variants;
    recognised += after.nodes().size() < before.nodes().size() ? 1 : 0;
    expect_same_function(before, after, x, rng);
    expect_same_function(before, merge_affine(before), x, rng);
  });
  EXPECT_GT(recognised, GetParam().recognised.empty() ? -1 : variants / 4);
}

INSTANTIATE_TEST_SUITE_P(Patterns, RecognitionKit, testing::ValuesIn(patterns()),
                         [](const auto& p) { return p.param.name; });

// 2^-1074 / 2 is no double: the pattern with it has no factor.
TEST(Recognition, AFactorThatUnderflowsIsNone) {
  for (const double factor : {0x1p-1074, 0x1p-1073}) {
    GraphBuilder builder;
    const ValueId x = builder.input("x", {ElementType::kFloat64, {1}});
    const auto number = [&](double value) {
      return builder.constant("c", Tensor(ElementType::kFloat64, {}, std::vector<double>{value}));
    };
    const auto add = [&](const std::string& op, const std::vector<ValueId>& in) {
      return add_node(builder, op, in, op);
    };
    const ValueId gate = add("Add", {add("Erf", {add("Div", {x, number(1.5)})}), number(1)});
    const ValueId small = add("Div", {add("Mul", {x, number(factor)}), number(2)});
    const Graph before = builder.finish({add("Mul", {small, gate})});
    const Graph after = run_passes(before);
    EXPECT_EQ(after.nodes().size() == 1, factor == 0x1p-1073);
  }
}

// Rewriting cannot change what a value is.
TEST(Recognition, AReplacementOfAnotherShapeIsDropped) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", {ElementType::kFloat32, {2, 3}});
  const Graph before = builder.finish({add_node(builder, "Relu", {x}, "relu")});
  const Graph after =
      rewrite_nodes(before, [](const Node& node, const MappedValue& mapped, GraphBuilder& b) {
        return std::vector<ValueId>{reshaped(b, mapped(node.inputs[0]), {3, 2})};
      });
  ASSERT_EQ(after.nodes().size(), 1U);
  EXPECT_EQ(after.nodes()[0].op->name(), "Relu");
}

}  // namespace
}  // namespace lipscope
