// SPDX-License-Identifier: Apache-2.0
// Runs the official ONNX backend tests (Debian package libonnx-testdata) through the library:
//   onnx_suite DATA_FOLDER [MINIMUM]
// A model is passed when every data set gives the reference outputs, skipped when it is refused as
// unsupported with a reason, and failed otherwise. Fewer than MINIMUM passed is a failure too.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/gzip.h"
#include "io/onnx_tensor.h"
#include "lipscope/compare.h"
#include "lipscope/error.h"
#include "lipscope/evaluate.h"
#include "lipscope/samples.h"

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

// The first difference; empty when all data sets agree.
std::string run_model(const fs::path& folder) {
  const OnnxModel model = OnnxModel::read((folder / "model.onnx").string());
  model.require_supported();
  for (int set = 0;; ++set) {
    const fs::path data = folder / fmt::format("test_data_set_{}", set);
    if (!fs::exists(data)) return set == 0 ? "no data set" : "";
    const Samples samples = match_samples(model, read_set(data, "input"));
    const Graph graph = model.graph(samples.options);
    std::vector<Tensor> outputs = evaluate(graph, samples.for_graph(graph), samples.count);
    for (Tensor& output : outputs) output = rounded_to_type(output);
    std::vector<std::string> names;
    for (const ValueId id : graph.outputs()) names.push_back(graph.value(id).name);
    const auto references = read_set(data, "output");
    if (references.size() != outputs.size()) return "number of outputs";
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const Tensor& reference = references[k].tensor;
      const bool bits =
          outputs[k].type() == ElementType::kBFloat16 && reference.type() == ElementType::kUInt16;
      if (outputs[k].type() != reference.type() && !bits) return "output type";
      if (outputs[k].shape() != reference.shape()) {
        return fmt::format("output shape {} against {}", to_string(outputs[k].shape()),
                           to_string(reference.shape()));
      }
      constexpr double kTolerance = 1e-4;
      const Comparison comparison = compare_tensors(names[k], outputs[k], reference, kTolerance);
      if (!comparison.agrees) return comparison.reason;
    }
  }
}

int main(int argc, char** argv) {
  if (argc < 2 || !fs::is_directory(argv[1])) {
    fmt::print(stderr, "onnx_suite: no data folder; install libonnx-testdata\n");
    return 2;
  }
  std::vector<fs::path> folders;
  for (const auto& kind : fs::directory_iterator(argv[1])) {
    if (!fs::is_directory(kind.path())) continue;
    for (const auto& test : fs::directory_iterator(kind.path())) {
      if (fs::exists(test.path() / "model.onnx")) folders.push_back(test.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  int passed = 0, failed = 0, skipped = 0;
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    try {
      const std::string difference = run_model(folder);
      difference.empty() ? ++passed : ++failed;
      if (!difference.empty()) fmt::print("failed   {}: {}\n", name, difference);
    } catch (const Error& error) {
      const bool refused = error.code() == ErrorCode::kUnsupported;
      refused ? ++skipped : ++failed;
      fmt::print("{}  {}: {}\n", refused ? "skipped" : "failed ", name, error.what());
    } catch (const std::exception& error) {
      ++failed;
      fmt::print("failed   {}: {}\n", name, error.what());
    }
  }
  fmt::print("ONNX: {} passed, {} failed, {} skipped\n", passed, failed, skipped);
  const int minimum = argc > 2 ? std::atoi(argv[2]) : 0;
  return failed == 0 && passed >= minimum ? 0 : 1;
}

}  // namespace
}  // namespace lipscope

int main(int argc, char** argv) { return lipscope::main(argc, argv); }
