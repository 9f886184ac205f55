// SPDX-License-Identifier: Apache-2.0
#include "io/onnx/onnx_file.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "io/arrays/bytes.h"
#include "io/arrays/formats.h"

namespace lipscope {
namespace {

constexpr std::string_view kExportPytorch =
    "a PyTorch file; export it with torch.onnx.export(model, example_input, \"model.onnx\")";
constexpr std::string_view kExportKeras =
    "a Keras file; export it with tf2onnx (python -m tf2onnx.convert --keras model.h5 --output "
    "model.onnx)";

bool mentions(Bytes bytes, std::string_view word) {
  const std::string_view text = as_text(bytes);
  return text.find(word) != std::string_view::npos;
}

// What the bytes are when they are not an ONNX model; empty when they may be one.
std::string_view what_else(Bytes bytes) {
  if (starts_with(bytes, "PK\x03\x04")) {
    if (mentions(bytes, "data.pkl") || mentions(bytes, "constants.pkl")) return kExportPytorch;
    if (mentions(bytes, "model.weights.h5")) return kExportKeras;
    return "a zip archive (an .npz or .zip), not an ONNX model";
  }
  if (starts_with(bytes, "\x80\x02") || starts_with(bytes, "\x80\x03") ||
      starts_with(bytes, "\x80\x04")) {
    return kExportPytorch;
  }
  if (starts_with(bytes, "\x89HDF")) return kExportKeras;
  if (starts_with(bytes, "\x93NUMPY")) return "an .npy array, not an ONNX model";
  if (bytes.size() > 8 && as_text(bytes.subspan(4, 4)) == "TFL3") {
    return "a TensorFlow Lite file; export it with python -m tf2onnx.convert --tflite model.tflite";
  }
  return {};
}

}  // namespace

onnx::ModelProto parse_model_proto(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.empty()) bad_file(name, "the file is empty");
  if (const std::string_view kind = what_else(bytes); !kind.empty())
    bad_file(name, "this is {}", kind);
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    bad_file(name, "larger than 2 GiB; export with external data");
  }
  [[maybe_unused]] static const auto silence = google::protobuf::SetLogHandler(nullptr);
  onnx::ModelProto model;
  const bool parsed = model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const bool plausible = model.has_graph() && model.graph().output_size() > 0;
  if (parsed && plausible) return model;
  if (parsed && model.has_graph()) bad_file(name, "the ONNX graph has no output");
  // A model cut short still has its first fields: the IR version and mostly the producer.
  if (model.has_ir_version() && (model.has_producer_name() || model.has_graph())) {
    bad_file(name, "the ONNX file is truncated or damaged; copy or export it again");
  }
  const std::string_view kind = describe_foreign(bytes);
  if (kind.empty()) bad_file(name, "this is a text file, not an ONNX model");
  if (kind == "an ONNX model")
    bad_file(name, "the ONNX file is truncated or damaged; copy or export it again");
  bad_file(name, "not an ONNX model (it looks like {})", kind);
}

}  // namespace lipscope
