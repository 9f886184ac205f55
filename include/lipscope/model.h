// SPDX-License-Identifier: Apache-2.0
// ONNX files: parsed once, made into a Graph for given input shapes.
//
//   const OnnxModel model = OnnxModel::read("net.onnx");
//   const Graph graph = model.graph();            // one sample
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lipscope/graph.h"

namespace lipscope {

// One declared input of the file that is not an initializer.
struct ModelInput {
  std::string name;
  ElementType type = ElementType::kFloat32;
  bool has_shape = false;
  std::vector<Index> dims;             // -1 where symbolic
  std::vector<std::string> dim_names;  // "" where the dimension is a number or has no name

  // The leading dimension counts samples: it is symbolic or 1.
  [[nodiscard]] bool batched() const {
    return has_shape && !dims.empty() && (dims[0] == -1 || dims[0] == 1);
  }
};

struct NodeSurvey {
  std::string name, op;
  std::vector<Shape> shapes;  // of the outputs; empty where unknown
  bool supported = false;
  std::string reason;  // why not
};

struct GraphOptions {
  // Sizes of symbolic dimensions by name. A leading symbolic dimension is 1 unless named here.
  std::map<std::string, Index> dims;
  // Shapes of whole inputs by name, for inputs without a declared shape.
  std::map<std::string, Shape> shapes;
  // Values of inputs that may be needed to know shapes: integer inputs from which a shape-like
  // argument is computed, and any input that is such an argument itself. Those become constants and
  // are no longer inputs of the graph; the others are ignored.
  std::map<std::string, Tensor> known;
  // Symbolic dimensions that nothing determines: an error, or taken as 1.
  bool guess_dims = false;
};

// Immutable after reading; copies share the file's contents.
class OnnxModel {
 public:
  // Throws kBadFile or kUnsupported with a one-line message that starts with the path.
  [[nodiscard]] static OnnxModel read(const std::string& path);
  // From bytes in memory; external data is looked for in `folder`, nowhere when it is empty.
  [[nodiscard]] static OnnxModel parse(std::span<const std::byte> bytes, const std::string& name,
                                       const std::string& folder = "");

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::span<const ModelInput> inputs() const;
  [[nodiscard]] std::vector<std::string> output_names() const;
  [[nodiscard]] int opset() const;
  [[nodiscard]] std::string producer() const;
  // SHA-256 of the file as read, external data files not included.
  [[nodiscard]] const std::string& sha256() const;
  // The files beside the model that hold external data, whether tensors from there are used or not.
  [[nodiscard]] std::span<const std::string> data_files() const;

  // Throws kUnsupported for an operator that no input could make work, before any input is looked
  // at.
  void require_supported() const;

  // The graph of one sample, with all passes applied. Shapes are all known.
  [[nodiscard]] Graph graph(const GraphOptions& options = {}) const;
  // Every node of the file and whether it can be used; never throws for an unsupported operator.
  [[nodiscard]] std::vector<NodeSurvey> survey(const GraphOptions& options = {}) const;

  struct Parts;

 private:
  explicit OnnxModel(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace lipscope
