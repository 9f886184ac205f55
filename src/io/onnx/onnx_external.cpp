// SPDX-License-Identifier: Apache-2.0
#include "io/onnx/onnx_external.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>

#include "lipscope/error.h"

namespace lipscope {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const onnx::TensorProto& proto, const std::string& why) {
  throw Error(ErrorCode::kBadFile, fmt::format("tensor '{}': {}", proto.name(), why));
}

Index to_number(const onnx::TensorProto& proto, const std::string& text) {
  Index value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc() || stop != end || value < 0) {
    refuse(proto, fmt::format("external data has the offset or length '{}'", text));
  }
  return value;
}

bool leaves(const fs::path& root, const fs::path& file) {
  const auto [end, ignored] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  return end != root.end();
}

std::string location_of(const onnx::TensorProto& proto) {
  std::string location;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
  }
  return location;
}

class Locations {
 public:
  void add(const onnx::TensorProto& proto) {
    if (std::string location = location_of(proto); !location.empty())
      all.insert(std::move(location));
  }
  void add(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_t()) add(attribute.t());
      for (const auto& tensor : attribute.tensors()) add(tensor);
      if (attribute.has_g()) add(attribute.g());
      for (const auto& graph : attribute.graphs()) add(graph);
    }
  }
  void add(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) add(tensor);
    for (const auto& node : graph.node()) add(node);
  }

  std::set<std::string> all;
};

}  // namespace

std::vector<std::string> external_files(const onnx::ModelProto& model, const std::string& folder) {
  Locations locations;
  locations.add(model.graph());
  for (const auto& function : model.functions()) {
    for (const auto& node : function.node()) locations.add(node);
  }
  std::vector<std::string> files;
  for (const std::string& location : locations.all)
    files.push_back((fs::path(folder) / location).string());
  return files;
}

std::string read_external(const onnx::TensorProto& proto, const std::string& folder,
                          Index bytes_wanted) {
  const std::string location = location_of(proto);
  Index offset = 0, length = -1;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "offset") offset = to_number(proto, entry.value());
    if (entry.key() == "length") length = to_number(proto, entry.value());
  }
  if (location.empty()) refuse(proto, "external data without a location");
  if (folder.empty())
    refuse(proto, "its data is in another file, which a model in memory cannot have");
  const fs::path relative(location);
  std::error_code ignored;
  const fs::path root = fs::weakly_canonical(folder, ignored);
  const fs::path file = fs::weakly_canonical(root / relative, ignored);
  if (relative.is_absolute() || leaves(root, file)) {
    refuse(proto, fmt::format("external data path '{}' leaves the model's folder", location));
  }
  if (!fs::is_regular_file(file, ignored)) {
    refuse(proto, fmt::format("external data file '{}' is missing; it belongs beside the model",
                              location));
  }
  if (length >= 0 && length != bytes_wanted) {
    refuse(proto,
           fmt::format("external data has {} bytes, the tensor needs {}", length, bytes_wanted));
  }
  const auto available = static_cast<Index>(fs::file_size(file, ignored));
  if (offset > available || available - offset < bytes_wanted) {
    refuse(proto, fmt::format("external data file '{}' has {} bytes, {} are needed from byte {} on",
                              location, available, bytes_wanted, offset));
  }
  std::string bytes(static_cast<std::size_t>(bytes_wanted), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(offset);
  stream.read(bytes.data(), bytes_wanted);
  if (!stream) refuse(proto, fmt::format("external data file '{}' cannot be read", location));
  return bytes;
}

}  // namespace lipscope
