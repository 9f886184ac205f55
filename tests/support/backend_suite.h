// SPDX-License-Identifier: Apache-2.0
// The official ONNX backend tests (Debian package libonnx-testdata), one folder for each model.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lipscope::testing_support {

// Thrown for a model that is not tried.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline std::vector<std::filesystem::path> backend_models(const std::filesystem::path& data) {
  std::vector<std::filesystem::path> folders;
  for (const auto& kind : std::filesystem::directory_iterator(data)) {
    if (!kind.is_directory()) continue;
    for (const auto& test : std::filesystem::directory_iterator(kind.path())) {
      if (std::filesystem::exists(test.path() / "model.onnx")) folders.push_back(test.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// The main function of a program PROGRAM DATA_FOLDER [MINIMUM]. `run_set` gets a model's folder and
// that of one data set and returns the first difference, or nothing. Fewer than MINIMUM models
// passed is a failure, too.
using RunSet =
    std::function<std::string(const std::filesystem::path&, const std::filesystem::path&)>;
inline int backend_suite(int argc, char** argv, const RunSet& run_set) {
  if (argc < 2 || !std::filesystem::is_directory(argv[1])) {
    fmt::print(stderr, "{}: no data folder; install libonnx-testdata\n", argv[0]);
    return 2;
  }
  const auto run_model = [&](const std::filesystem::path& folder) -> std::string {
    for (int set = 0;; ++set) {
      const std::filesystem::path data = folder / fmt::format("test_data_set_{}", set);
      if (!std::filesystem::exists(data)) return set == 0 ? "no data set" : "";
      const std::string difference = run_set(folder, data);
      if (!difference.empty()) return difference;
    }
  };
  int passed = 0, failed = 0, skipped = 0;
  for (const std::filesystem::path& folder : backend_models(argv[1])) {
    const std::string name = folder.filename().string();
    try {
      const std::string difference = run_model(folder);
      difference.empty() ? ++passed : ++failed;
      if (!difference.empty()) fmt::print("failed   {}: {}\n", name, difference);
    } catch (const Skipped& reason) {
      ++skipped;
      fmt::print("skipped  {}: {}\n", name, reason.what());
    } catch (const std::exception& error) {
      ++failed;
      fmt::print("failed   {}: {}\n", name, error.what());
    }
  }
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  const int minimum = argc > 2 ? std::atoi(argv[2]) : 0;
  return failed == 0 && passed >= minimum ? 0 : 1;
}

}  // namespace lipscope::testing_support
