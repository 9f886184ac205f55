// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/cli_fixture.h"

namespace {

using namespace lipscope::testing_support;

const char* const kPennies = "1,-1\n-1,1\n";

TEST_F(Cli, GameFollowsTheContract) {
  const std::string payoff = file("pennies.csv", kPennies);
  const Outcome result = run("game --json --tau 2 " + payoff);
  ASSERT_EQ(result.code, 0) << result.err;
  const Json document = Json::parse(result.out);
  EXPECT_EQ(document["schema"], "lipscope.game/1");
  EXPECT_NEAR(document["value"].get<double>(), 0, 1e-12);
  EXPECT_NEAR(document["x"][0].get<double>(), 0.5, 1e-14);
  EXPECT_EQ(document["y"].size(), 2U);
  EXPECT_EQ(document["gap"]["guarantee"], "proved");
  EXPECT_LT(document["gap"]["value"].get<double>(), 1e-25);
  EXPECT_LT(document["distance"]["value"].get<double>(), 1e-13);
  EXPECT_TRUE(document["iterations"].is_number_integer());
  EXPECT_EQ(document["method"], "double-softmax");
  EXPECT_EQ(document["contraction"]["factor"]["value"], 0.25);
  EXPECT_EQ(document["contraction"]["norm"], "1");
  EXPECT_EQ(document["contraction"]["tau_guaranteed"], 1.0);
}

TEST_F(Cli, GameTraceStaysBelowItsBounds) {
  const std::string payoff = file("payoff.csv", "0,2,-1\n1,0,3\n");
  for (const std::string tau : {"0.3", "4"}) {
    const Json document = Json::parse(run("game --json --trace --tau " + tau + " " + payoff).out);
    ASSERT_GE(document["trace"]["steps"].size(), 3U);
    for (const Json& step : document["trace"]["steps"]) {
      EXPECT_LE(step["error"].get<double>(), step["a_priori"].get<double>() + 1e-13);
      EXPECT_LE(step["error"].get<double>(), step["a_posteriori"].get<double>() + 1e-13);
    }
  }
  const Outcome human = run("game --trace --tau 4 " + payoff);
  EXPECT_NE(human.out.find("a posteriori"), std::string::npos) << human.out;
}

TEST_F(Cli, GameRefusesBadInput) {
  const std::string good = file("pennies.csv", kPennies);
  for (const std::string tau : {"0", "-1", "nan", "inf"})
    expect_failure("game --tau " + tau + " " + good, 2, "tau");
  expect_failure("game " + good, 2, "tau");
  expect_failure("game --tau 1 " + file("nan.csv", "1,2\n3,nan\n"), 3, "row 1, column 1");
  expect_failure("game --tau 1 " + file("inf.csv", "1,2\n-inf,3\n"), 3, "row 1, column 0");
  expect_failure("game --tau 1 " + file("ragged.csv", "1,2\n3\n"), 3, "line 2");
  expect_failure("game --tau 1 " + file("empty.csv", ""), 3, "empty");
  expect_failure("game --tau 1 nothing.csv", 3, "nothing.csv");
}

}  // namespace
