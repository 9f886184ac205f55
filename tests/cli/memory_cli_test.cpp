// SPDX-License-Identifier: Apache-2.0
// --memory is kept: what does not fit is refused by name, and what was found before is printed.
#include <sys/resource.h>

#include <random>

#include "io/arrays/gzip.h"
#include "tests/cli/cli_fixture.h"
#include "tests/support/model_writer.h"

namespace {

using namespace lipscope::testing_support;
using lipscope::Index;

class MemoryCli : public Cli {
 protected:
  struct Measured {
    Outcome outcome;
    double peak;  // bytes
  };
  Measured measure(const std::string& arguments) const {
    const std::string out = (folder_ / "out").string(), err = (folder_ / "err").string();
    const std::string command = "exec " LIPSCOPE_PROGRAM " " + arguments + " >" + out + " 2>" + err;
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    rusage usage{};
    EXPECT_EQ(wait4(child, &status, 0, &usage), child);
    return {{WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(out), slurp(err)},
            1024.0 * static_cast<double>(usage.ru_maxrss)};
  }

  // Dense layers of these widths with ReLU between them.
  std::string dense(const std::vector<Index>& widths) const {
    ModelWriter w;
    std::mt19937 rng(7);
    std::normal_distribution<float> normal;
    w.input("x", {1, widths[0]});
    std::string at = "x";
    for (std::size_t l = 1; l < widths.size(); ++l) {
      const std::string tag = std::to_string(l);
      std::vector<float> weights(static_cast<std::size_t>(widths[l - 1] * widths[l]));
      for (float& entry : weights)
        entry = normal(rng) / std::sqrt(static_cast<float>(widths[l - 1]));
      w.weight("W" + tag, {widths[l - 1], widths[l]}, weights);
      w.node("MatMul", {at, "W" + tag}, {"a" + tag}, "dense" + tag);
      at = "a" + tag;
      if (l + 1 == widths.size()) break;
      w.node("Relu", {at}, {"r" + tag}, "relu" + tag);
      at = "r" + tag;
    }
    w.output(at);
    return file("dense.onnx", w.bytes());
  }
};

bool has_own_allocator() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

constexpr double allowed(double gigabytes) { return 1.05e9 * gigabytes + 3e7; }

// The semidefinite program of this network takes 150 MB, the product of its layers 60.
const std::string kLarge = kModels + "fashion_cnn.onnx --memory 0.08 --time 20 ";

TEST_F(MemoryCli, WhatIsFoundBeforeTheLimitIsPrinted) {
  if (!has_own_allocator()) GTEST_SKIP() << "sanitizers have an allocator of their own";
  const std::string proof = (folder_ / "proof.json").string();
  const std::string command = "bound " + kLarge + "--methods layer-product,lipsdp ";
  const Measured found = measure(command + "--json --certificate " + proof);
  ASSERT_EQ(found.outcome.code, 0) << found.outcome.err;
  EXPECT_LE(found.peak, allowed(0.08));
  const Json document = Json::parse(found.outcome.out);
  EXPECT_EQ(document["outcome"], "memory-limit");
  EXPECT_EQ(document["upper"]["method"], "layer-product");
  for (const Json& row : document["methods"]) {
    if (row["method"] == "lipsdp") {
      EXPECT_EQ(row["skipped"], "memory limit reached");
    }
  }
  EXPECT_EQ(run("check " + kModels + "fashion_cnn.onnx " + proof).code, 0);
  const Outcome text = run(command);
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("memory limit reached; raise --memory"), std::string::npos) << text.out;
}

TEST_F(MemoryCli, NothingFoundIsAFailure) {
  if (!has_own_allocator()) GTEST_SKIP() << "sanitizers have an allocator of their own";
  expect_failure("bound " + kLarge + "--methods lipsdp", 4, "raise --memory");
}

TEST_F(MemoryCli, RadiiAreCertifiedWithinTheLimit) {
  if (!has_own_allocator()) GTEST_SKIP() << "sanitizers have an allocator of their own";
  const Measured found = measure(
      "certify " + kLarge + "--scope local --limit 2 --radii 0.1 --scale 1/255 --json --data " +
      kModels + "fashion_test_images.idx3.gz --labels " + kModels + "fashion_test_labels.idx1.gz");
  ASSERT_EQ(found.outcome.code, 0) << found.outcome.err;
  EXPECT_LE(found.peak, allowed(0.08));
  EXPECT_EQ(Json::parse(found.outcome.out)["outcome"], "memory-limit");
}

TEST_F(MemoryCli, ALimitThatLeavesNoRoomIsRefused) {
  expect_failure("bound --memory 0.01 " + kModels + "fashion_mlp.onnx", 4, "leaves no room");
  expect_failure("inspect --memory 0 " + kModels + "fashion_mlp.onnx", 4, "give --memory");
  EXPECT_EQ(run("inspect --memory inf " + kModels + "fashion_mlp.onnx").code, 0);
}

TEST_F(MemoryCli, AModelThatDoesNotFitSaysSo) {
  if (!has_own_allocator()) GTEST_SKIP() << "sanitizers have an allocator of their own";
  const Measured run_ = measure("inspect --memory 0.1 " + dense({2500, 2500, 1}));
  EXPECT_EQ(run_.outcome.code, 4) << run_.outcome.err;
  EXPECT_LE(run_.peak, allowed(0.1));
  EXPECT_NE(run_.outcome.err.find("raise --memory"), std::string::npos) << run_.outcome.err;
}

// A megabyte that stands for one gigabyte.
TEST_F(MemoryCli, UnpackingIsBoundedByTheInput) {
  const std::vector<std::byte> zeros(10'000'000);
  const auto packed = lipscope::deflate_bytes(zeros, lipscope::DeflateFormat::kGzip);
  std::string bomb;
  for (int i = 0; i < 100; ++i)
    bomb.append(reinterpret_cast<const char*>(packed.data()), packed.size());
  const std::string array = file("bomb.npy.gz", bomb);
  expect_failure("softmax " + array, 3, "unpacks to more than");
  if (!has_own_allocator()) return;
  const Measured model = measure("inspect --memory 0.1 " + array);
  EXPECT_EQ(model.outcome.code, 4) << model.outcome.err;
  EXPECT_NE(model.outcome.err.find("bomb.npy.gz: what it unpacks to"), std::string::npos)
      << model.outcome.err;
  EXPECT_LE(model.peak, allowed(0.1));
}

// Each node asks for an output that no machine can hold; none is computed.
class HugeValues : public MemoryCli {
 protected:
  void expect_refused(ModelWriter& w, bool at_inspect = true) const {
    w.output("y");
    const std::string model = file("huge.onnx", w.bytes());
    expect_failure("bound --memory 1 " + model, 4, "node 'huge'");
    if (!at_inspect) return;
    const Measured seen = measure("inspect --memory 1 " + model);
    EXPECT_EQ(seen.outcome.code, 0) << seen.outcome.err;
    EXPECT_NE(seen.outcome.out.find("raise --memory"), std::string::npos) << seen.outcome.out;
    if (has_own_allocator()) {
      EXPECT_LE(seen.peak, 2e8);
    }
  }
};

TEST_F(HugeValues, Windows) {
  for (const char* op : {"Conv", "MaxPool", "AveragePool", "LpPool"}) {
    ModelWriter w;
    w.input("x", {1, 1, 8, 8});
    w.weight("W", {1, 1, 3, 3}, std::vector<float>(9, 1));
    const bool conv = op == std::string("Conv");
    auto* node =
        w.node(op, conv ? std::vector<std::string>{"x", "W"} : std::vector<std::string>{"x"}, {"y"},
               "huge");
    set_attribute(node, "kernel_shape", std::vector<Index>{3, 3});
    set_attribute(node, "pads", std::vector<Index>(4, 100'000));
    expect_refused(w);
  }
}

TEST_F(HugeValues, CopiesOfAnInput) {
  const std::vector<Index> sides = {100'000, 100'000};
  for (const char* op : {"Expand", "Tile", "Resize", "Pad"}) {
    ModelWriter w;
    w.input("x", {1, 1});
    w.integers("sides", {2}, sides);
    w.integers("pads", {4}, {0, 0, 100'000, 100'000});
    w.weight("none", {0}, {});
    const std::string name = op;
    const std::vector<std::string> inputs =
        name == "Resize" ? std::vector<std::string>{"x", "", "none", "sides"}
        : name == "Pad"  ? std::vector<std::string>{"x", "pads"}
                         : std::vector<std::string>{"x", "sides"};
    w.node(op, inputs, {"y"}, "huge");
    expect_refused(w);
  }
}

TEST_F(HugeValues, Constants) {
  for (const Index side : {20'000, 2'000'000'000}) {
    ModelWriter w;
    w.input("x", {1, 1});
    w.integers("sides", {2}, {side, side});
    w.node("ConstantOfShape", {"sides"}, {"c"}, "huge");
    w.node("Add", {"x", "c"}, {"y"}, "add");
    expect_refused(w);
  }
  ModelWriter range;
  range.input("x", {1});
  range.weight("zero", {}, {0});
  range.weight("one", {}, {1});
  range.weight("many", {}, {1e8F});
  range.node("Range", {"zero", "many", "one"}, {"c"}, "huge");
  range.node("Mul", {"x", "c"}, {"y"}, "mul");
  expect_refused(range);
}

TEST_F(HugeValues, Indices) {
  ModelWriter gather;
  gather.input("x", {1000, 1000});
  gather.integers("rows", {200'000}, std::vector<Index>(200'000, 3));
  gather.node("Gather", {"x", "rows"}, {"y"}, "huge");
  expect_refused(gather);
  ModelWriter one_hot;
  one_hot.input("x", {1});
  one_hot.integers("i", {1000}, std::vector<Index>(1000, 3));
  one_hot.integers("depth", {}, {2'000'000});
  one_hot.weight("values", {2}, {0, 1});
  one_hot.node("OneHot", {"i", "depth", "values"}, {"c"}, "huge");
  one_hot.node("Mul", {"x", "c"}, {"y"}, "mul");
  expect_refused(one_hot);
}

TEST_F(HugeValues, Broadcasts) {
  ModelWriter outer;
  outer.input("x", {1, 100'000});
  outer.node("Transpose", {"x"}, {"t"}, "turn");
  outer.node("Mul", {"x", "t"}, {"y"}, "huge");
  expect_refused(outer);
}

}  // namespace
