// SPDX-License-Identifier: Apache-2.0
// The ONNX importer: parse, import, survey. Models are small; what they claim to be may be huge.
#include "driver.h"
#include "io/onnx/onnx_proto.h"
#include "lipscope/model.h"
#include "tests/support/model_writer.h"

namespace lipscope::fuzz {
namespace {

using testing_support::ModelWriter;
using testing_support::set_attribute;

std::string dense_net() {
  ModelWriter w;
  w.input("x", {-1, 2});
  w.weight("W", {2, 3}, {1, 2, 3, -1, 0, 1});
  w.weight("b", {3}, {0, 0, -1});
  set_attribute(w.node("Gemm", {"x", "W", "b"}, {"h"}, "dense"), "alpha", 0.5F);
  w.node("Relu", {"h"}, {"r"});
  set_attribute(w.node("Softmax", {"r"}, {"y"}), "axis", Index{-1});
  w.output("y");
  return w.bytes();
}

std::string conv_net() {
  ModelWriter w;
  w.input("x", {1, 1, 5, 5});
  w.weight("k", {2, 1, 3, 3}, std::vector<float>(18, 0.5F));
  auto* conv = w.node("Conv", {"x", "k"}, {"c"}, "conv");
  set_attribute(conv, "pads", std::vector<Index>{1, 1, 1, 1});
  set_attribute(conv, "strides", std::vector<Index>{2, 2});
  auto* pool = w.node("MaxPool", {"c"}, {"p"}, "pool");
  set_attribute(pool, "kernel_shape", std::vector<Index>{2, 2});
  w.integers("shape", {2}, {1, -1});
  w.node("Reshape", {"p", "shape"}, {"f"}, "flat");
  w.node("LeakyRelu", {"f"}, {"y"});
  w.output("y");
  return w.bytes();
}

std::string shape_net() {
  ModelWriter w;
  w.input("x", {-1, 2, 3});
  w.integers("zero", {1}, {0});
  w.integers("minus", {1}, {-1});
  w.integers("starts", {1}, {0});
  w.integers("ends", {1}, {2});
  w.node("Shape", {"x"}, {"s"});
  w.node("Gather", {"s", "zero"}, {"n"});
  set_attribute(w.node("Concat", {"n", "minus"}, {"t"}), "axis", Index{0});
  w.node("Reshape", {"x", "t"}, {"r"});
  w.node("Slice", {"r", "starts", "ends"}, {"l"});
  set_attribute(w.node("Transpose", {"l"}, {"y"}), "perm", std::vector<Index>{1, 0});
  w.node("Expand", {"y", "ends"}, {"e"});
  w.output("y");
  w.output("e");
  return w.bytes();
}

}  // namespace

std::vector<Input> seeds() { return {input(dense_net()), input(conv_net()), input(shape_net())}; }

}  // namespace lipscope::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lipscope;
  return fuzz::run([&] {
    const OnnxModel model = OnnxModel::parse(fuzz::bytes(data, size), "fuzz.onnx");
    GraphOptions options;
    options.guess_dims = true;
    (void)model.survey(options);
    (void)model.graph(options);
  });
}
