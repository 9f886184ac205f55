// SPDX-License-Identifier: Apache-2.0
// The real program on real files: standard output, standard error, exit code.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace lipscope::testing_support {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Outcome {
  int code;
  std::string out, err;
};

inline const std::string kModels = LIPSCOPE_SOURCE "/models/";

inline std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("lipscope_cli_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Outcome run(const std::string& arguments) const { return run_with("", arguments); }
  // `before`: what the shell reads before the name of the program.
  Outcome run_with(const std::string& before, const std::string& arguments) const {
    const fs::path out = folder_ / "stdout", err = folder_ / "stderr";
    const std::string command = before + " " + LIPSCOPE_PROGRAM + " " + arguments + " >" +
                                out.string() + " 2>" + err.string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(out), slurp(err)};
  }
  std::string file(const std::string& name, const std::string& contents) const {
    std::ofstream(folder_ / name, std::ios::binary) << contents;
    return (folder_ / name).string();
  }
  // A failure: exit code, one line on standard error that mentions `word`, JSON on request.
  void expect_failure(const std::string& arguments, int code, const std::string& word) const {
    const Outcome plain = run(arguments);
    EXPECT_EQ(plain.code, code) << arguments << "\n" << plain.err;
    EXPECT_EQ(plain.out, "");
    EXPECT_NE(plain.err.find(word), std::string::npos) << plain.err;
    EXPECT_EQ(std::count(plain.err.begin(), plain.err.end(), '\n'), 1) << plain.err;
    const Outcome machine = run(arguments + " --json");
    EXPECT_EQ(machine.code, code);
    const Json document = Json::parse(machine.out);
    EXPECT_EQ(document["schema"], "lipscope.error/1");
    EXPECT_TRUE(document["code"].is_string());
    EXPECT_NE(document["message"].get<std::string>().find(word), std::string::npos);
  }

  fs::path folder_;
};

}  // namespace lipscope::testing_support
