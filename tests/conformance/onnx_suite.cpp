// SPDX-License-Identifier: Apache-2.0
// Runs the official ONNX backend tests through the library:
//   onnx_suite DATA_FOLDER [MINIMUM]
// A model is passed when every data set gives the reference outputs, skipped when it is refused as
// unsupported with a reason, and failed otherwise.
#include <fmt/format.h>

#include "io/input_file.h"
#include "io/onnx/onnx_tensor.h"
#include "lipscope/compare.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/samples.h"
#include "tests/support/backend_suite.h"

namespace lipscope {
namespace {

namespace fs = std::filesystem;

std::vector<NamedTensor> read_set(const fs::path& folder, const std::string& prefix) {
  std::vector<NamedTensor> arrays;
  for (int k = 0;; ++k) {
    const fs::path file = folder / fmt::format("{}_{}.pb", prefix, k);
    if (!fs::exists(file)) return arrays;
    arrays.push_back(
        {fmt::format("{}_{}", prefix, k), parse_tensor_proto(read_file(file.string()))});
  }
}

std::string difference(const std::string& name, const Tensor& got, const Tensor& reference) {
  const bool bits =
      got.type() == ElementType::kBFloat16 && reference.type() == ElementType::kUInt16;
  if (got.type() != reference.type() && !bits) return "output type";
  if (got.shape() != reference.shape()) {
    return fmt::format("output shape {} against {}", to_string(got.shape()),
                       to_string(reference.shape()));
  }
  constexpr double kTolerance = 1e-4;
  const Comparison comparison = compare_tensors(name, got, reference, kTolerance);
  return comparison.agrees ? "" : comparison.reason;
}

std::string compared(const fs::path& folder, const fs::path& data) {
  const OnnxModel model = OnnxModel::read((folder / "model.onnx").string());
  model.require_supported();
  const Samples samples = match_samples(model, read_set(data, "input"));
  const Graph graph = model.graph(samples.options);
  const std::vector<Tensor> outputs = evaluate(graph, samples.for_graph(graph), samples.count);
  const auto references = read_set(data, "output");
  if (references.size() != outputs.size()) return "number of outputs";
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::string found = difference(graph.value(graph.outputs()[k]).name,
                                         rounded_to_type(outputs[k]), references[k].tensor);
    if (!found.empty()) return found;
  }
  return "";
}

std::string run_library(const fs::path& folder, const fs::path& data) {
  try {
    return compared(folder, data);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnsupported) throw testing_support::Skipped(error.what());
    throw;
  }
}

}  // namespace
}  // namespace lipscope

int main(int argc, char** argv) {
  return lipscope::testing_support::backend_suite(argc, argv, lipscope::run_library);
}
