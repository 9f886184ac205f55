// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/checkpoint.h"
#include "base/memory_budget.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "io/arrays/bytes.h"
#include "io/arrays/gzip.h"
#include "io/input_file.h"
#include "io/onnx/onnx_external.h"
#include "io/onnx/onnx_file.h"
#include "io/onnx/onnx_import.h"
#include "io/onnx/onnx_tensor.h"
#include "lipscope/error.h"
#include "lipscope/model.h"
#include "passes/pass.h"

namespace lipscope {
namespace {

constexpr double kWorkPerByte = 10;  // operations of digesting and parsing a file
constexpr std::size_t kManyBytes = std::size_t{4} << 20;  // worth several threads

ModelInput read_input(const onnx::ValueInfoProto& info) {
  ModelInput input{.name = info.name()};
  if (!info.type().has_tensor_type()) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("input '{}' is not a tensor (sequence, map, optional or sparse)", info.name()));
  }
  const auto& type = info.type().tensor_type();
  try {
    input.type = element_type(type.elem_type());
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("input '{}': {}", info.name(), error.what()));
  }
  input.has_shape = type.has_shape();
  for (const auto& dim : type.shape().dim()) {
    const bool known = dim.has_dim_value() && dim.dim_value() >= 0;
    input.dims.push_back(known ? dim.dim_value() : -1);
    input.dim_names.push_back(dim.dim_param());
  }
  return input;
}

// Operators whose weights cannot be infinite; masks elsewhere (Add, Where) can.
bool multiplies(const std::string& op) {
  static const std::set<std::string> kOps = {"Conv",
                                             "ConvTranspose",
                                             "Gemm",
                                             "MatMul",
                                             "BatchNormalization",
                                             "Einsum",
                                             "InstanceNormalization",
                                             "LayerNormalization",
                                             "PRelu"};
  return kOps.contains(op);
}

void check_finite(const std::string& name, const Tensor& tensor, const onnx::GraphProto& graph) {
  if (!is_floating(tensor.type())) return;
  bool nan = false, infinite = false;
  for (const double entry : tensor.doubles()) {
    nan = nan || std::isnan(entry);
    infinite = infinite || std::isinf(entry);
  }
  if (!nan && !infinite) return;
  for (const auto& node : graph.node()) {
    const bool used =
        std::find(node.input().begin(), node.input().end(), name) != node.input().end();
    if (!used || (!nan && !multiplies(node.op_type()))) continue;
    throw Error(
        ErrorCode::kBadFile,
        fmt::format("node '{}': weight '{}' contains {}; the training has diverged or the file is "
                    "damaged, export the model again",
                    node.name().empty() ? node.op_type() : node.name(), name,
                    nan ? "NaN" : "infinite entries"));
  }
}

void read_initializers(const onnx::GraphProto& graph, const std::string& folder, bool small,
                       OnnxModel::Parts& parts) {
  const auto count = static_cast<Index>(graph.initializer_size());
  std::vector<std::shared_ptr<const Tensor>> tensors(static_cast<std::size_t>(count));
  parallel_for(count, small ? count : 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto& proto = graph.initializer(static_cast<int>(i));
      Tensor tensor = to_tensor(proto, folder);
      check_finite(proto.name(), tensor, graph);
      tensors[static_cast<std::size_t>(i)] = std::make_shared<const Tensor>(std::move(tensor));
    }
  });
  for (Index i = 0; i < count; ++i)
    parts.initializers.emplace(graph.initializer(static_cast<int>(i)).name(),
                               std::move(tensors[static_cast<std::size_t>(i)]));
}

// A node must not make what is given: an input or an initializer of the same name would be lost.
void check_made_once(const OnnxModel::Parts& parts) {
  std::set<std::string> given;
  for (const ModelInput& input : parts.inputs) {
    if (!given.insert(input.name).second)
      throw Error(ErrorCode::kBadFile, fmt::format("input '{}' occurs twice", input.name));
  }
  for (const auto& [name, tensor] : parts.initializers) given.insert(name);
  for (const FileNode& node : parts.nodes) {
    for (const std::string& output : node.outputs) {
      if (given.contains(output))
        throw Error(ErrorCode::kBadFile,
                    fmt::format("node '{}': value '{}' is made twice", node.name, output));
    }
  }
}

}  // namespace

OnnxModel OnnxModel::read(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  return parse(read_file(path), display_name(path), folder.string());
}

OnnxModel OnnxModel::parse(std::span<const std::byte> bytes, const std::string& name,
                           const std::string& folder) {
  auto parts = std::make_shared<Parts>();
  parts->name = name;
  checkpoint(kWorkPerByte * static_cast<double>(bytes.size()));
  onnx::ModelProto model;
  const auto digest = [&] { parts->sha256 = lipscope::sha256(bytes); };
  const auto unpack = [&] {
    const auto unpacked = gunzip_if_gzip(bytes, name);
    model = parse_model_proto(unpacked ? *unpacked : bytes, name);
  };
  parallel_for(2, bytes.size() < kManyBytes ? 2 : 1, [&](Index begin, Index end) {
    if (begin == 0) digest();
    if (end == 2) unpack();
  });
  if (!folder.empty()) parts->data_files = external_files(model, folder);
  try {
    parts->opset = model_opset(model);
    parts->producer = model.producer_name();
    if (!model.producer_version().empty()) parts->producer += " " + model.producer_version();
    std::set<std::string> initialized;
    for (const auto& proto : model.graph().initializer()) {
      if (!initialized.insert(proto.name()).second) {
        throw Error(ErrorCode::kBadFile,
                    fmt::format("initializer '{}' occurs twice", proto.name()));
      }
    }
    if (model.graph().sparse_initializer_size() > 0) {
      throw Error(ErrorCode::kUnsupported, "sparse initializers are not supported");
    }
    for (const auto& info : model.graph().input()) {
      if (!initialized.contains(info.name())) parts->inputs.push_back(read_input(info));
    }
    for (const auto& info : model.graph().output()) {
      if (info.has_type() && !info.type().has_tensor_type()) {
        throw Error(ErrorCode::kUnsupported,
                    fmt::format("output '{}' is not a tensor", info.name()));
      }
      parts->outputs.push_back(info.name());
    }
    read_initializers(model.graph(), folder, bytes.size() < kManyBytes, *parts);
    model.mutable_graph()->clear_initializer();
    parts->nodes = read_nodes(take_nodes(model), folder);
    check_made_once(*parts);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", name, one_line(error.what())));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the model takes {}", name, over_memory_limit()));
  }
  return OnnxModel(std::move(parts));
}

const std::string& OnnxModel::name() const { return parts_->name; }
std::span<const ModelInput> OnnxModel::inputs() const { return parts_->inputs; }
std::vector<std::string> OnnxModel::output_names() const { return parts_->outputs; }
int OnnxModel::opset() const { return parts_->opset; }
std::string OnnxModel::producer() const { return parts_->producer; }
const std::string& OnnxModel::sha256() const { return parts_->sha256; }
std::span<const std::string> OnnxModel::data_files() const { return parts_->data_files; }

Graph OnnxModel::graph(const GraphOptions& options) const {
  try {
    return run_passes(import_graph(*parts_, options));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", parts_->name, one_line(error.what())));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the model takes {}", parts_->name, over_memory_limit()));
  }
}

void OnnxModel::require_supported() const {
  for (const FileNode& node : parts_->nodes) {
    if (const std::string reason = refusal(*parts_, node); !reason.empty()) {
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("{}: {}", parts_->name,
                              one_line(fmt::format("node '{}': {}", node.name, reason))));
    }
  }
}

std::vector<NodeSurvey> OnnxModel::survey(const GraphOptions& options) const {
  try {
    return survey_nodes(*parts_, options);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", parts_->name, one_line(error.what())));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}: the model takes {}", parts_->name, over_memory_limit()));
  }
}

}  // namespace lipscope
