// SPDX-License-Identifier: Apache-2.0
// Constants that the graph computes, and decisions that hang on their last bits: y = c x with c
// made of a few nodes, whose exact value is derived beside it. e is 2^-60, so that 1 + e rounds
// to 1.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "estimate/counted_for_test.h"
#include "lipscope/bound.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/robustness.h"
#include "lipscope/select.h"
#include "tests/support/model_writer.h"

namespace lipscope {
namespace {

using testing_support::ModelWriter;
using testing_support::set_attribute;
using Type = onnx::TensorProto;
using Name = std::string;
using Dims = std::vector<Index>;

constexpr double kE = 0x1p-60;

// A model of one input x, written node by node; results are called after their number.
class Sheet {
 public:
  explicit Sheet(int type = Type::DOUBLE, int opset = 15) : type_(type), writer_(opset) {}

  Name input(const Name& name, const Dims& dims, int type) {
    writer_.input(name, dims, type);
    return name;
  }
  Name x(const Dims& dims = {1, 1}) { return input("x", dims, type_); }
  Name numbers(const Dims& dims, const std::vector<double>& entries) {
    auto* tensor = stored(dims, type_);
    for (const double e : entries) {
      if (type_ == Type::DOUBLE) {
        tensor->add_double_data(e);
      } else {
        tensor->add_float_data(static_cast<float>(e));
      }
    }
    return tensor->name();
  }
  Name number(double value) { return numbers({}, {value}); }
  Name integers(const Dims& dims, const std::vector<Index>& entries) {
    auto* tensor = stored(dims, Type::INT64);
    for (const Index e : entries) tensor->add_int64_data(e);
    return tensor->name();
  }
  Name add(const Name& op, const std::vector<Name>& inputs, const Dims& numbers = {}) {
    const Name made = next();
    last_ = writer_.node(op, inputs, {made}, op + "_" + made);
    if (op == "Cast") set_attribute(last_, "to", numbers.at(0));
    return made;
  }
  std::vector<Name> add_two(const Name& op, const std::vector<Name>& inputs) {
    const Name first = next(), second = next();
    last_ = writer_.node(op, inputs, {first, second}, op + "_" + first);
    return {first, second};
  }
  template <class T>
  void with(const Name& attribute, const T& value) {
    set_attribute(last_, attribute, value);
  }
  // As a number of the model's type.
  Name real(const Name& value) { return add("Cast", {value}, {type_}); }
  Name choose(const Name& condition, double yes, double no) {
    return add("Where", {condition, number(yes), number(no)});
  }
  // 1 + e and e itself, the way a computer gets them wrong.
  Name one_and() { return add("Add", {number(1), number(kE)}); }
  Name small() { return add("Sub", {one_and(), number(1)}); }

  [[nodiscard]] Graph finish(const Name& output) {
    writer_.output(output);
    return writer_.read().graph();
  }
  // y = c x; the sum of its entries where c has several.
  [[nodiscard]] Graph times_x(const Name& c) {
    const Name y = add("Mul", {x(), c});
    return finish(add("ReduceSum", {y}));
  }

 private:
  Name next() { return "v" + std::to_string(++count_); }
  onnx::TensorProto* stored(const Dims& dims, int type) {
    auto* tensor = writer_.model.mutable_graph()->add_initializer();
    tensor->set_name(next());
    tensor->set_data_type(type);
    for (const Index d : dims) tensor->add_dims(d);
    return tensor;
  }

  int type_;
  ModelWriter writer_;
  onnx::NodeProto* last_ = nullptr;
  int count_ = 0;
};

struct Proved {
  double lower, upper;
};
Proved proved_bracket(const Graph& graph, const Selection& selection = {}, Domain domain = {}) {
  const Selected selected = select(graph, selection);
  const Query query{&selected.graph, parse_norms("2"), std::move(domain)};
  const Answer answer = find_bracket(query, {.time = std::chrono::duration<double>(5)}, counted());
  const auto lower = answer.bracket.lower(Guarantee::kProved),
             upper = answer.bracket.upper(Guarantee::kProved);
  return {lower ? lower->value : 0, upper ? upper->value : HUGE_VAL};
}

void expect_constant(const Graph& graph, double exact, const std::string& what = "") {
  const Proved b = proved_bracket(graph);
  EXPECT_LE(b.lower, exact) << what;
  EXPECT_GE(b.upper, exact) << what;
  EXPECT_GE(b.lower, exact * (1 - 1e-9)) << what;
  EXPECT_LE(b.upper, exact * (1 + 1e-9)) << what;
}

TEST(ComputedConstants, ComparisonsSeeTheLastBit) {
  struct Row {
    const char* op;
    bool above, equal, below;  // what it says of 1 + e, 1 and 1 - e against 1
  };
  for (const Row& row : {Row{"Greater", true, false, false}, Row{"Less", false, false, true},
                         Row{"GreaterOrEqual", true, true, false},
                         Row{"LessOrEqual", false, true, true}, Row{"Equal", false, true, false}}) {
    for (const bool turned : {false, true}) {
      const auto check = [&](const char* arithmetic, double by, bool holds) {
        Sheet s;
        const Name a = s.add(arithmetic, {s.number(1), s.number(by)}), b = s.number(1);
        const Name c = turned ? s.add(row.op, {b, a}) : s.add(row.op, {a, b});
        expect_constant(s.times_x(s.choose(c, 10, 1)), holds ? 10 : 1, row.op);
      };
      check(turned ? "Sub" : "Add", kE, row.above);
      check("Add", 0, row.equal);
      check(turned ? "Add" : "Sub", kE, row.below);
    }
  }
}

// The whole layer is chosen.
TEST(ComputedConstants, ABranchIsChosen) {
  Sheet s;
  const Name x = s.x(), ten = s.add("Mul", {x, s.number(10)});
  const Name c = s.add("Greater", {s.one_and(), s.number(1)});
  expect_constant(s.finish(s.add("Where", {c, ten, x})), 10);
}

// Four numbers 1 + k e, k = -1 ... 2, against 1: two are above. Shapes [2, 2], [2, 1] and [2].
TEST(ComputedConstants, ComparisonsWithBroadcasting) {
  for (const Dims& shape : {Dims{2, 2}, Dims{2, 1}, Dims{2}}) {
    Sheet s;
    const Name steps = s.numbers({2, 2}, {-kE, 0, kE, 2 * kE});
    const Name ones = s.numbers(shape, std::vector<double>(shape == Dims{2, 2} ? 4 : 2, 1.0));
    const Name c = s.add("Greater", {s.add("Add", {ones, steps}), ones});
    expect_constant(s.times_x(s.choose(c, 1, 0)), 2, to_string(shape));
  }
}

// In float32 models, too, constants are real numbers.
TEST(ComputedConstants, ComparisonsInFloat32) {
  Sheet s(Type::FLOAT);
  const Name c = s.add("Greater", {s.one_and(), s.number(1)});
  expect_constant(s.times_x(s.choose(c, 10, 1)), 10);
}

// 1/3 is no double, three thirds are 1.
TEST(ComputedConstants, ExactTiesAreTies) {
  const auto third = [](Sheet& s) { return s.add("Div", {s.number(1), s.number(3)}); };
  {
    Sheet s;
    const Name c = s.add("Equal", {s.add("Mul", {third(s), s.number(3)}), s.number(1)});
    expect_constant(s.times_x(s.choose(c, 10, 1)), 10);
  }
  {
    Sheet s;
    const Name sum = s.add("Sum", {third(s), third(s), third(s)});
    expect_constant(s.times_x(s.add("Floor", {sum})), 1);
  }
  {
    Sheet s;
    // 1/3 is above the double next to it: a third of 1 is more than what it is rounded to.
    const Name c = s.add("Greater", {third(s), s.number(1.0 / 3)});
    expect_constant(s.times_x(s.choose(c, 10, 1)), 10);
  }
  {
    Sheet s;
    const Name whole = s.add("Cast", {s.add("Mul", {third(s), s.number(3)})}, {Type::INT64});
    expect_constant(s.times_x(s.real(whole)), 1);
  }
}

// Cast cuts towards zero; 2 - e is 1, -1 + e is 0, and e is not false.
TEST(ComputedConstants, CastsToIntegers) {
  for (const int type : {Type::INT64, Type::INT32, Type::INT8, Type::UINT8, Type::UINT64}) {
    Sheet s;
    const Name cut = s.add("Cast", {s.add("Sub", {s.number(2), s.number(kE)})}, {type});
    expect_constant(s.times_x(s.add("Sub", {s.real(cut), s.number(2)})), 1, std::to_string(type));
  }
  {
    Sheet s;
    const Name cut = s.add("Cast", {s.add("Add", {s.number(-1), s.number(kE)})}, {Type::INT64});
    expect_constant(s.times_x(s.add("Add", {s.real(cut), s.number(3)})), 3);
  }
  {
    Sheet s;
    expect_constant(s.times_x(s.real(s.add("Cast", {s.small()}, {Type::BOOL}))), 1);
  }
  {
    // 256 - e as uint8 is 255, and 256 is 0.
    Sheet s;
    const Name cut = s.add("Cast", {s.add("Sub", {s.number(256), s.number(kE)})}, {Type::UINT8});
    expect_constant(s.times_x(s.real(cut)), 255);
  }
}

// Subnormal and huge numbers are numbers.
TEST(ComputedConstants, ExtremeMagnitudes) {
  {
    Sheet s;
    const Name sum = s.add("Add", {s.number(1), s.number(0x1p-1074)});
    expect_constant(s.times_x(s.choose(s.add("Greater", {sum, s.number(1)}), 10, 1)), 10);
  }
  {
    Sheet s;
    const Name sum = s.add("Add", {s.number(1e308), s.number(1e-308)});
    const Name rest = s.add("Sub", {sum, s.number(1e308)});
    expect_constant(s.times_x(s.choose(s.add("Greater", {rest, s.number(0)}), 10, 1)), 10);
  }
  {
    // 2^-1074 / 2 rounds to 0 but is not.
    Sheet s;
    const Name half = s.add("Mul", {s.number(0x1p-1074), s.number(0.5)});
    expect_constant(s.times_x(s.choose(s.add("Equal", {half, s.number(0)}), 10, 1)), 1);
    Sheet t;
    const Name tiny = t.add("Div", {t.number(0x1p-1074), t.number(2)});
    expect_constant(
        t.times_x(t.add("Mul", {t.add("Mul", {tiny, t.number(0x1p1000)}), t.number(0x1p75)})), 1);
  }
  {
    // 1e308 * 10 is beyond the doubles; a hundredth of that is not.
    Sheet s;
    const Name large = s.add("Mul", {s.number(0x1p1023), s.number(4)});
    expect_constant(s.times_x(s.add("Div", {large, s.number(0x1p1020)})), 32);
  }
}

TEST(ComputedConstants, PlacesOfExtremes) {
  struct Row {
    const char* op;
    Index last;
    double best;
  };
  for (const Row& row : {Row{"ArgMax", 0, 10}, Row{"ArgMax", 1, 100}, Row{"ArgMin", 0, 1}}) {
    Sheet s;
    const Name list = s.add("Add", {s.numbers({3}, {1, 1, 1}), s.numbers({3}, {0, kE, kE})});
    const Name at = s.add(row.op, {list});
    s.with("axis", Index{0});
    s.with("select_last_index", row.last);
    s.with("keepdims", Index{0});
    expect_constant(s.times_x(s.add("Gather", {s.numbers({3}, {1, 10, 100}), at})), row.best,
                    row.op);
  }
  for (const Index largest : {0, 1}) {
    Sheet s;
    const Name list = s.add("Add", {s.numbers({3}, {1, 1, 1}), s.numbers({3}, {kE, -kE, 2 * kE})});
    const Name at = s.add_two("TopK", {list, s.integers({1}, {1})})[1];
    s.with("largest", largest);
    expect_constant(s.times_x(s.add("Gather", {s.numbers({3}, {1, 10, 100}), at})),
                    largest != 0 ? 100 : 10);
  }
}

TEST(ComputedConstants, StepsStayNumbers) {
  const auto step = [](const char* op, double near, double by) {
    Sheet s;
    return s.times_x(s.add(op, {s.add("Add", {s.number(near), s.number(by)})}));
  };
  expect_constant(step("Floor", 2, -kE), 1);
  expect_constant(step("Floor", 2, kE), 2);
  expect_constant(step("Ceil", 1, kE), 2);
  expect_constant(step("Round", 2.5, kE), 3);
  expect_constant(step("Round", 2.5, -kE), 2);
  expect_constant(step("Round", 3.5, -kE), 3);
  Sheet s;
  expect_constant(s.times_x(s.add("Sign", {s.small()})), 1);
  Sheet t;  // 2 - e modulo 1 is 1 - e
  const Name rest = t.add("Mod", {t.add("Sub", {t.number(2), t.number(kE)}), t.number(1)});
  t.with("fmod", Index{1});
  const Proved b = proved_bracket(t.times_x(rest));
  EXPECT_GE(b.upper, 1 - 0x1p-53);
  EXPECT_LE(b.upper, 1 + 1e-9);
}

// The level of x = 2.5 + 2^-49 on the grid of scale 1 + 3 2^-52 is above 2.5 by less than half an
// ulp: 3, not the even 2.
TEST(ComputedConstants, QuantisationRoundsTheTrueQuotient) {
  Sheet s;
  const Name level = s.add("QuantizeLinear", {s.number(2.5 + 0x1p-49), s.number(1 + 3 * 0x1p-52)});
  expect_constant(s.times_x(s.real(level)), 3);
  Sheet t;
  const Name tie = t.add("Add", {t.number(2.5), t.number(kE)});
  expect_constant(t.times_x(t.real(t.add("QuantizeLinear", {tie, t.number(1)}))), 3);
}

// 1 + e > 1, hence 1 + e is rounded up, hence the last of the weights.
TEST(ComputedConstants, DecisionsFollowDecisions) {
  Sheet s;
  const Name yes = s.real(s.add("Greater", {s.one_and(), s.number(1)}));
  const Name more = s.add("Ceil", {s.add("Add", {yes, s.number(kE)})});
  const Name at = s.add("Cast", {more}, {Type::INT32});
  expect_constant(s.times_x(s.add("Gather", {s.numbers({3}, {1, 10, 100}), at})), 100);
}

// Shapes, too: a Reshape to [Cast(2 - e), 2], and a Slice.
TEST(ComputedConstants, ShapesFollowDecisions) {
  Sheet s;
  const Name rows =
      s.add("Cast", {s.add("Sub", {s.numbers({1}, {2}), s.number(kE)})}, {Type::INT64});
  const Name ends = s.add("Add", {rows, s.integers({1}, {1})});
  const Name part = s.add("Slice", {s.numbers({4}, {1, 10, 100, 1000}), rows, ends});
  expect_constant(s.times_x(part), 10);
}

// (1 + e) - 1 as an argument of an operator.
TEST(ComputedConstants, ArgumentsThatAreComputed) {
  {
    Sheet s;
    const Name cut = s.add("Clip", {s.number(7), "", s.small()});
    expect_constant(s.times_x(s.add("Mul", {cut, s.number(0x1p60)})), 1, "Clip");
  }
  {
    // A slope of 3 up to x = 2^-60.
    Sheet s;
    const Name cut = s.add("Clip", {s.x(), s.number(0), s.small()});
    EXPECT_GE(proved_bracket(s.finish(s.add("Mul", {cut, s.number(3)}))).upper, 3);
  }
  {
    Sheet s;
    const Name wide = s.add("Pad", {s.numbers({1}, {0}), s.integers({2}, {0, 1}), s.small()});
    expect_constant(s.times_x(s.add("Mul", {wide, s.number(0x1p60)})), 1, "Pad");
  }
  {
    Sheet s;
    const Name wide = s.add("Reshape", {s.small(), s.integers({1}, {1})});
    const Name values = s.add("Concat", {s.numbers({1}, {0}), wide});
    s.with("axis", Index{0});
    const Name hot = s.add("OneHot", {s.integers({1}, {1}), s.integers({}, {3}), values});
    expect_constant(s.times_x(s.add("Mul", {hot, s.number(0x1p60)})), 1, "OneHot");
  }
  {
    // Only the second is not 0.
    Sheet s;
    const Name list =
        s.add("Sub",
              {s.add("Add", {s.numbers({3}, {1, 1, 1}), s.numbers({3}, {0, kE, 0})}), s.number(1)});
    const Name at = s.add("NonZero", {list});
    expect_constant(s.times_x(s.add("Gather", {s.numbers({3}, {1, 10, 100}), at})), 10, "NonZero");
  }
}

// 1 + 3 * 0.1 is 2^-55 below the double next to 1.3.
TEST(ComputedConstants, RangeIsNotRounded) {
  Sheet s;
  const Name list = s.add("Range", {s.number(1), s.number(1.55), s.number(0.1)});
  const Name rest = s.add("Sub", {s.add("Gather", {list, s.integers({}, {3})}), s.number(1.3)});
  expect_constant(s.times_x(s.add("Mul", {rest, s.number(0x1p55)})), 1);
}
TEST(ComputedConstants, RangeFromNumbersThatAreComputed) {
  Sheet s;
  const Name delta = s.small(), limit = s.add("Mul", {delta, s.number(2.5)});
  const Name list = s.add("Range", {s.number(0), limit, delta});  // 0, e, 2 e
  const Name last = s.add("Gather", {list, s.integers({}, {-1})});
  expect_constant(s.times_x(s.add("Mul", {last, s.number(0x1p60)})), 2);
}

// What rounding leaves open and rational arithmetic does not know is refused by name: e^1 e^-1 = 1.
TEST(ComputedConstants, WhatIsNotDecidedIsRefused) {
  const auto refused = [](Sheet& s, const Name& c, const Name& node) {
    try {
      const Graph graph = s.times_x(c);
      ADD_FAILURE() << "not refused: " << node;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << error.what();
      EXPECT_NE(std::string(error.what()).find(node), std::string::npos) << error.what();
    }
  };
  const auto open = [](Sheet& s) {
    return s.add("Mul", {s.add("Exp", {s.number(1)}), s.add("Exp", {s.number(-1)})});
  };
  {
    Sheet s;
    refused(s, s.choose(s.add("Greater", {open(s), s.number(1)}), 10, 1), "Greater_");
  }
  {
    Sheet s;
    refused(s, s.real(s.add("Cast", {open(s)}, {Type::INT64})), "Cast_");
  }
  {
    Sheet s;
    const Name at =
        s.add("Cast", {s.add("Reshape", {open(s), s.integers({1}, {1})})}, {Type::INT64});
    refused(s, s.add("Slice", {s.numbers({2}, {1, 10}), at, s.integers({1}, {2})}), "Slice_");
  }
  {
    // A third is no number of a file.
    Sheet s;
    const Name third = s.add("Div", {s.number(1), s.number(3)});
    refused(s, s.add("Clip", {s.number(7), "", third}), "Clip_");
  }
  {
    // A sum beyond its type: some runtimes add in float64, others wrap around.
    Sheet s;
    const Index most = std::numeric_limits<Index>::max();
    refused(s, s.real(s.add("ReduceMean", {s.integers({2}, {most, most})})), "ReduceMean");
  }
}

// Histories end somewhere.
TEST(ComputedConstants, LongHistoriesAreRefused) {
  for (const int length : {900, 100000}) {
    Sheet s;
    Name sum = s.number(1);
    const Name more = s.number(kE);
    for (int i = 0; i < length; ++i) sum = s.add("Add", {sum, more});
    const Name c = s.choose(s.add("Greater", {sum, s.number(1)}), 10, 1);
    if (length == 900) {
      expect_constant(s.times_x(c), 10);
    } else {
      EXPECT_THROW((void)s.times_x(c), Error);
    }
  }
}

// Integers that a constant need not be known exactly for, and results nobody uses.
TEST(ComputedConstants, WhatIsDecidedByFarIsNotRefused) {
  Sheet s;
  const Name e = s.add("Exp", {s.number(1)});
  expect_constant(s.times_x(s.choose(s.add("Greater", {e, s.number(2.7)}), 10, 1)), 10);
  Sheet t;
  const Name power = t.add("Exp", {t.numbers({3}, {1, 1, 2})});
  const Name values = t.add_two("TopK", {power, t.integers({1}, {1})})[0];
  const Proved b = proved_bracket(t.times_x(values));
  EXPECT_LE(b.lower, 7.389056098930651);
  EXPECT_GE(b.upper, 7.389056098930649);
}

// A classifier whose weights such a condition chooses: W = [[0, 1], [1, 0]] instead of the
// identity. At x = (1, -2) the logits are (-2, 1).
TEST(ComputedConstants, DecisionsOfClassifiers) {
  Sheet s;
  const Name c = s.add("Greater", {s.one_and(), s.number(1)});
  const Name w =
      s.add("Where", {c, s.numbers({2, 2}, {0, 1, 1, 0}), s.numbers({2, 2}, {1, 0, 0, 1})});
  const Graph graph = s.finish(s.add("MatMul", {s.x({1, 2}), w}));
  const std::vector<double> x{1, -2};
  const std::vector<Index> label{1};
  Certifier certifier(graph, {});
  certifier.find_constants(std::chrono::seconds(1), {});
  const Decision decision = certifier.decide(x, label)[0];
  EXPECT_EQ(decision.predicted, 1);
  EXPECT_TRUE(decision.certain);
  EXPECT_LE(decision.radius, 3 / std::sqrt(2.0));
  EXPECT_GE(decision.radius, 2.12);
}

// The other input may be anything, whatever becomes of it on the way.
TEST(ComputedConstants, OtherInputsAreUnknownInEveryType) {
  const auto upper = [](Sheet& s, const Name& y) {
    return proved_bracket(s.finish(y), {.wrt = "x"}).upper;
  };
  {
    Sheet s;
    const Name m = s.input("m", {1, 1}, Type::DOUBLE);
    const Name whole = s.real(s.add("Cast", {m}, {Type::INT64}));
    EXPECT_EQ(upper(s, s.add("Mul", {s.x(), whole})), HUGE_VAL);
  }
  for (const int type : {Type::INT64, Type::INT8, Type::UINT8}) {
    Sheet s;
    const Name m = s.input("m", {1, 1}, type);
    EXPECT_GE(upper(s, s.add("Mul", {s.x(), s.real(m)})), type == Type::INT8 ? 128 : 255);
  }
  {
    Sheet s;
    const Name x = s.x(), ten = s.add("Mul", {x, s.number(10)});
    EXPECT_GE(upper(s, s.add("Where", {s.input("m", {1, 1}, Type::BOOL), ten, x})), 10);
  }
  for (const char* op : {"Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"}) {
    Sheet s;
    const Name m = s.input("m", {1, 1}, Type::DOUBLE), x = s.x();
    const Name c = s.add(op, {m, s.number(0)}), ten = s.add("Mul", {x, s.number(10)});
    EXPECT_GE(upper(s, s.add("Where", {c, ten, x})), 10) << op;
    Sheet t;
    const Name n = t.input("m", {1, 1}, Type::DOUBLE);
    const Name d = t.add("Not", {t.add(op, {n, t.number(0)})});
    EXPECT_GE(upper(t, t.add("Mul", {t.x(), t.choose(d, 10, 1)})), 10) << op;
  }
  for (const char* op : {"ArgMax", "ArgMin"}) {
    Sheet s;
    const Name m = s.input("m", {3}, Type::DOUBLE);
    const Name at = s.add(op, {m});
    EXPECT_GE(upper(s, s.add("Mul", {s.x(), s.add("Gather", {s.numbers({3}, {1, 10, 100}), at})})),
              100)
        << op;
  }
  {
    Sheet s;
    const Name m = s.input("m", {3}, Type::DOUBLE);
    const Name at = s.add_two("TopK", {m, s.integers({1}, {1})})[1];
    EXPECT_GE(upper(s, s.add("Mul", {s.x(), s.real(at)})), 2);
  }
  {
    Sheet s;
    const Name m = s.input("m", {1}, Type::DOUBLE);
    const Name level = s.real(s.add("QuantizeLinear", {m, s.number(1)}));
    EXPECT_GE(upper(s, s.add("Mul", {s.x(), level})), 255);
  }
  for (const char* op : {"Floor", "Ceil", "Round", "Sign"}) {
    Sheet s;
    const Name m = s.input("m", {1}, Type::DOUBLE);
    EXPECT_GE(upper(s, s.add("Mul", {s.x(), s.add(op, {m})})), op[0] == 'S' ? 1 : 1e300) << op;
  }
  {
    Sheet s;
    const Name m = s.input("m", {1}, Type::INT64);
    const Name hot = s.add("OneHot", {m, s.integers({}, {3}), s.numbers({2}, {1, 7})});
    EXPECT_GE(upper(s, s.add("Mul", {s.x(), hot})), 7);
  }
}

// A shape that depends on such an input is refused when the model is read.
TEST(ComputedConstants, ShapesOfOtherInputsAreRefused) {
  Sheet s;
  const Name m = s.input("m", {1}, Type::INT64);
  EXPECT_THROW((void)s.finish(s.add("Expand", {s.x({1}), m})), Error);
}

// min(x, 9.9e-301) has slope 1 up to there and none beyond.
TEST(ComputedConstants, KinksNextToZeroAreNotAtZero) {
  for (const double at : {9.9e-301, 5e-310, 0x1p-1074}) {
    Sheet s;
    const Name cut = s.add("Clip", {s.x(), "", s.number(at)});
    const Graph graph = s.finish(s.add("Mul", {cut, s.number(3)}));
    Domain domain;
    domain.box = Box{Tensor::vector({at * 0.5}), Tensor::vector({at})};
    EXPECT_GE(proved_bracket(graph, {}, domain).upper, 3) << at;
    expect_constant(graph, 3);
  }
}

}  // namespace
}  // namespace lipscope
