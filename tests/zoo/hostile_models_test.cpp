// SPDX-License-Identifier: Apache-2.0
// Valid models that are made to take long: loading them and finding their gains takes work in
// proportion to their size.
#include <gtest/gtest.h>

#include <functional>

#include "attention/find.h"
#include "base/checkpoint.h"
#include "lipscope/error.h"
#include "lipscope/gains.h"
#include "tests/support/model_writer.h"

namespace lipscope {
namespace {

using testing_support::ModelWriter;
using testing_support::set_attribute;

constexpr double kSecond = 1e9;  // operations

std::string value_name(Index i) { return i == 0 ? "x" : "t" + std::to_string(i); }

// t = op(t, t), again and again.
ModelWriter doubling(const std::string& op, Index count) {
  ModelWriter w;
  w.input("x", {1, 4});
  for (Index i = 0; i < count; ++i) {
    auto* node = w.node(op, {value_name(i), value_name(i)}, {value_name(i + 1)});
    if (op == "Concat") set_attribute(node, "axis", Index{1});
  }
  w.output(value_name(count));
  return w;
}
// Each of the two before: as many paths as Fibonacci has numbers.
ModelWriter sharing(const std::string& op, Index count) {
  ModelWriter w;
  w.input("x", {1, 4});
  for (Index i = 0; i < count; ++i)
    w.node(op, {value_name(std::max<Index>(i - 1, 0)), value_name(i)}, {value_name(i + 1)});
  w.output(value_name(count));
  return w;
}
ModelWriter chain(const std::vector<std::string>& ops, Index count) {
  ModelWriter w;
  w.input("x", {1, 4});
  for (Index i = 0; i < count; ++i)
    w.node(ops[static_cast<std::size_t>(i) % ops.size()], {value_name(i)}, {value_name(i + 1)});
  w.output(value_name(count));
  return w;
}
// The same on numbers that the file holds: folded when it is loaded.
ModelWriter doubled_constants(const std::string& op, Index count) {
  ModelWriter w;
  w.input("input", {1, 4});
  w.weight("x", {1, 4}, {1.0F, 0.5F, -1.25F, 3.0F});
  for (Index i = 0; i < count; ++i) w.node(op, {value_name(i), value_name(i)}, {value_name(i + 1)});
  w.node("Add", {"input", value_name(count)}, {"y"});
  w.output("y");
  return w;
}
ModelWriter wide(const std::string& op, Index count) {
  ModelWriter w;
  w.input("x", {1, 4});
  std::vector<std::string> inputs;
  for (Index i = 0; i < count; ++i) {
    inputs.push_back("n" + std::to_string(i));
    w.node("Neg", {"x"}, {inputs.back()});
  }
  auto* node = w.node(op, inputs, {"y"});
  if (op == "Concat") set_attribute(node, "axis", Index{1});
  w.output("y");
  return w;
}
ModelWriter padded_conv(Index pad) {
  ModelWriter w;
  w.input("x", {1, 1, 8, 8});
  w.weight("w", {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  set_attribute(w.node("Conv", {"x", "w"}, {"y"}), "pads", std::vector<Index>{pad, 0, pad, 0});
  w.output("y");
  return w;
}

// Work of loading the model, looking for attention in it and finding the gains of all its nodes;
// ends by an exception when that is far too much.
double work_of(const ModelWriter& writer) {
  const auto clock = RunClock::by_work(1);
  const RunScope scope(*clock, clock->limit());
  const Graph graph = writer.read().graph();
  EXPECT_TRUE(find_attention(graph).empty());
  NodeGains gains(graph, {parse_norms("1"), parse_norms("2"), parse_norms("inf")});
  EXPECT_TRUE(gains.find(*clock, HUGE_VAL));
  return clock->now() * kSecond;
}

struct Family {
  std::string name;
  std::function<ModelWriter(Index)> make;
  Index size;
  double most;  // operations for each unit of size
};

class HostileModels : public testing::TestWithParam<Family> {};

TEST_P(HostileModels, TakeWorkInProportionToTheirSize) {
  const auto& [name, make, size, most] = GetParam();
  const double half = work_of(make(size / 2)), whole = work_of(make(size));
  EXPECT_LT(whole, most * static_cast<double>(size));
  EXPECT_LT(whole, 2.5 * half + 1e5);
}

std::vector<Family> families() {
  std::vector<Family> list;
  for (const std::string op : {"Mul", "Add", "Sub", "Div", "Pow", "Max", "Sum"}) {
    list.push_back({op + "Doubling", [op](Index n) { return doubling(op, n); }, 60, 1e5});
    list.push_back({op + "Sharing", [op](Index n) { return sharing(op, n); }, 200, 1e5});
  }
  for (const std::string op : {"Concat", "Max", "Sum"})
    list.push_back({op + "Wide", [op](Index n) { return wide(op, n); }, 4000, 1e5});
  list.push_back({"Chain", [](Index n) { return chain({"Neg", "Relu"}, n); }, 2000, 1e5});
  list.push_back({"ConvPads", padded_conv, 10'000, 1e4});
  return list;
}
INSTANTIATE_TEST_SUITE_P(All, HostileModels, testing::ValuesIn(families()),
                         [](const auto& made) { return made.param.name; });

// Numbers that squaring makes too long are dropped by rational arithmetic, not carried along.
TEST(HostileConstants, AreFoldedInLittleWork) {
  for (const std::string op : {"Mul", "Add", "Sub", "Div"})
    EXPECT_LT(work_of(doubled_constants(op, 60)), 1e8) << op;
}

TEST(HostileSizes, ThatDoubleEndByThemselves) { EXPECT_LT(work_of(doubling("Concat", 12)), 1e8); }

// A function that calls another twice, and so on, with nothing in the innermost.
TEST(HostileFunctions, AreRefused) {
  ModelWriter w;
  w.input("x", {1});
  w.output("y");
  constexpr int kLevels = 60;
  for (int level = 0; level <= kLevels; ++level) {
    auto* f = w.model.add_functions();
    f->set_domain("com.example");
    f->set_name("F" + std::to_string(level));
    f->add_opset_import()->set_version(13);
    for (int call = 0; call < 2 && level > 0; ++call) {
      auto* node = f->add_node();
      node->set_op_type("F" + std::to_string(level - 1));
      node->set_domain("com.example");
    }
  }
  w.node("F" + std::to_string(kLevels), {}, {})->set_domain("com.example");
  w.node("Neg", {"x"}, {"y"});
  const auto clock = RunClock::by_work(10);
  const RunScope scope(*clock, clock->limit());
  EXPECT_THROW((void)w.read(), Error);
}

TEST(LoadingInTime, EndsWhereTheClockSays) {
  const auto clock = RunClock::by_work(1);
  const RunScope scope(*clock, 1e-3);
  EXPECT_THROW((void)chain({"Neg"}, 5000).read().graph(), Stopped);
}

// Cheap gains come first; what is known when the time is over is there.
TEST(GainsInTime, AreOpenLooseOrFound) {
  ModelWriter w;
  w.input("x", {1, 64});
  w.weight("w", {64, 300}, std::vector<float>(64 * 300, 0.25F));
  w.node("MatMul", {"x", "w"}, {"y"});
  w.output("y");
  const Graph graph = w.read().graph();
  const auto work = RunClock::by_work(1);
  NodeGains gains(graph, {parse_norms("2"), parse_norms("1"), parse_norms("inf")});
  std::size_t lines = 0;
  EXPECT_FALSE(gains.find(*work, 0, [&](std::size_t) { ++lines; }));
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(gains.at(0, 0).state, NodeGain::State::kOpen);

  // Entries are alike: the norm is 0.25 sqrt(64 * 300), and so is the mean of the sums.
  gains.glance(*work, HUGE_VAL);
  for (const std::size_t norm : {0, 1, 2})
    EXPECT_EQ(gains.at(0, norm).state, NodeGain::State::kLoose) << norm;
  const double norm = 0.25 * std::sqrt(64.0 * 300);
  EXPECT_GE(gains.at(0, 0).value, norm);
  EXPECT_LE(gains.at(0, 0).value, norm * (1 + 1e-9));
  const double loose = gains.at(0, 0).value;
  std::vector<std::size_t> told;
  EXPECT_TRUE(gains.find(*work, HUGE_VAL, [&](std::size_t node) { told.push_back(node); }));
  EXPECT_EQ(told, std::vector<std::size_t>{0});
  EXPECT_EQ(gains.at(0, 0).state, NodeGain::State::kFound);
  EXPECT_LE(gains.at(0, 0).value, loose);
  EXPECT_GE(gains.at(0, 0).value, norm * (1 - 1e-12));
}

}  // namespace
}  // namespace lipscope
