// SPDX-License-Identifier: Apache-2.0
// Every model below the folder LIPSCOPE_NETS, run in the formats, against the bounds of its
// rounding. Nothing is done where the variable is not set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/rounding.h"
#include "bounds/boxes.h"
#include "io/onnx/onnx_proto.h"
#include "lipscope/error.h"
#include "lipscope/model.h"
#include "lipscope/robustness.h"
#include "tests/support/emulator.h"

namespace lipscope {
namespace {

namespace fs = std::filesystem;
using namespace testing_support;
using Type = ElementType;

// The floating attributes of all nodes, by the name of their first output.
std::map<std::string, Attributes> attributes_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  onnx::ModelProto model;
  std::map<std::string, Attributes> found;
  if (!model.ParseFromIstream(&file)) return found;
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.type() == onnx::AttributeProto::FLOAT)
        found[node.output(0)][attribute.name()] = static_cast<double>(attribute.f());
    }
  }
  return found;
}

// False for a model that is refused.
bool attack_file(const fs::path& path, Rng& rng) {
  constexpr std::size_t kMostInputs = 4000;
  const OnnxModel model = OnnxModel::read(path.string());
  const EmulatedGraph net{model.graph({}), attributes_in(path)};
  const Graph& graph = net.graph;
  Reals x(static_cast<std::size_t>(input_size(graph)));
  if (x.size() > kMostInputs) return false;
  for (double& e : x) e = std::uniform_real_distribution<double>(0, 1)(rng);
  std::vector<Box> boxes;
  for (const Tensor& tensor : split_inputs(graph, x)) boxes.push_back({tensor, tensor});
  const Box real = ValueBoxes(graph, boxes).at(graph.outputs()[0]);
  for (const InferenceFormat& format : {InferenceFormat{Type::kFloat32, Type::kFloat32},
                                        InferenceFormat{Type::kFloat16, Type::kFloat32},
                                        InferenceFormat{Type::kBFloat16, Type::kBFloat16},
                                        InferenceFormat{Type::kFloat16, Type::kFloat16, true}}) {
    const Reals bound = inference_error(graph, graph.outputs()[0], format, Norm::infinity())(x, 0);
    std::vector<Habits> habits = all_habits(format);
    std::ranges::shuffle(habits, rng);
    for (const Habits& h : std::span(habits).first(3)) {
      const Reals seen = emulate(net, x, h);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        if (!(bound[i] < kInf)) continue;
        EXPECT_LE(seen[i], add_up(real.upper.doubles()[i], bound[i])) << path;
        EXPECT_GE(seen[i], sub_down(real.lower.doubles()[i], bound[i])) << path;
      }
    }
  }
  return true;
}

TEST(InferenceFiles, ResultsLieWithinTheirBounds) {
  const char* folder = std::getenv("LIPSCOPE_NETS");
  if (folder == nullptr) return;
  Rng rng(41);
  int attacked = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    try {
      attacked += attack_file(entry.path(), rng) ? 1 : 0;
    } catch (const Error&) {
      // An operator whose rounding is not known, here or there.
    }
  }
  std::printf("%d models\n", attacked);
}

}  // namespace
}  // namespace lipscope
