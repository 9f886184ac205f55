// SPDX-License-Identifier: Apache-2.0
// Budgets of work: the same command gives the same document.
#include "tests/cli/cli_fixture.h"

namespace lipscope::testing_support {
namespace {

const std::string kMlp = kModels + "fashion_mlp.onnx";

Json without_seconds(Json value) {
  if (value.is_object()) value.erase("seconds");
  for (auto& part : value) {
    if (part.is_structured()) part = without_seconds(part);
  }
  return value;
}

TEST_F(Cli, AnEffortGivesOneDocumentForAnyNumberOfThreads) {
  const std::string at = " --at " + kModels + "fashion_image.npy --radius 0.01,0.1 --margin 3,5";
  for (const std::string& question : {std::string(), at}) {
    const std::string call = "bound --json --effort 1/50 " + kMlp + question + " --threads ";
    const Outcome first = run(call + "1");
    ASSERT_EQ(first.code, 0) << first.err;
    const Json expected = without_seconds(Json::parse(first.out));
    EXPECT_TRUE(expected["upper"].is_object());
    for (const char* threads : {"1", "2", "4"})
      EXPECT_EQ(without_seconds(Json::parse(run(call + threads).out)), expected) << threads;
  }
}

TEST_F(Cli, AnEffortIsAPositiveNumberAndNoTime) {
  for (const char* word : {"0", "-1", "nan", "inf", "much", "1/0"})
    expect_failure("bound " + kMlp + " --effort=" + word, 2, "--effort");
  expect_failure("bound " + kMlp + " --effort 1 --time 1", 2, "--time");
}

TEST_F(Cli, ARunWithoutTimeSaysWhatMoreWouldBring) {
  const Outcome human = run("bound " + kMlp);
  EXPECT_EQ(human.code, 0);
  EXPECT_NE(human.out.find("more time would bring little"), std::string::npos) << human.out;
}

TEST_F(Cli, NoTimeIsAnAnswer) {
  const Outcome none = run("bound --json --time 0 " + kMlp);
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(Json::parse(none.out)["outcome"], "time-limit");
}

}  // namespace
}  // namespace lipscope::testing_support
