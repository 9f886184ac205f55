// SPDX-License-Identifier: Apache-2.0
// softmax as a user calls it.
#include "tests/cli/cli_fixture.h"

namespace {

using namespace lipscope::testing_support;

TEST_F(Cli, SoftmaxPrintsConstantsForPeopleAndMachines) {
  const std::string rows =
      file("rows.csv", "0,0,-inf\n1,2,3\n-1.6094379124341003,0,-1.6094379124341003\n");
  const Outcome human = run("softmax " + rows + " --norm 2 --norm inf:1");
  EXPECT_EQ(human.code, 0) << human.err;
  EXPECT_NE(human.out.find("inf:1"), std::string::npos) << human.out;
  const Json document =
      Json::parse(run("softmax --json " + rows +
                      " --norm 2 --norm 1:inf --norm 1.5 --lambda 2 --empirical 1e-4,0.1")
                      .out);
  EXPECT_EQ(document["schema"], "lipscope.softmax/1");
  EXPECT_EQ(document["lambda"], 2);
  EXPECT_EQ(document["rows"], 3);
  EXPECT_EQ(document["global"]["2:2"]["value"], 1);
  EXPECT_EQ(document["global"]["1:inf"]["value"], 0.5);
  EXPECT_EQ(document["global"]["2:2"]["guarantee"], "proved");
  ASSERT_EQ(document["local"].size(), 3U);
  EXPECT_EQ(document["local"][0]["row"], 0);
  EXPECT_NEAR(document["local"][0]["norms"]["2:2"]["lower"]["value"].get<double>(), 1, 1e-13);
  EXPECT_EQ(document["local"][0]["norms"]["2:2"]["upper"]["value"], 1);
  EXPECT_EQ(document["local"][0]["probabilities"][2], 0);
  EXPECT_EQ(document["summary"]["1.5:1.5"]["max"], 1);
  EXPECT_TRUE(document["summary"]["2:2"].contains("median"));
  EXPECT_TRUE(document["summary"]["2:2"].contains("share_above_0.4"));
  ASSERT_EQ(document["empirical"].size(), 6U);
  for (const Json& cell : document["empirical"]) {
    EXPECT_LE(cell["directed_max"], 1);
    EXPECT_LE(cell["random_max"], 1);
  }
  const Json summary = Json::parse(run("softmax --json --summary " + rows).out);
  EXPECT_TRUE(summary["local"].empty());
  EXPECT_TRUE(summary["summary"].contains("2:2"));
}

TEST_F(Cli, SoftmaxGoldenRow) {
  // Logarithms of (0.5, 0.3, 0.2).
  const std::string row =
      file("row.csv", "-0.6931471805599453,-1.2039728043259361,-1.6094379124341003\n");
  const Json norms =
      Json::parse(run("softmax --json " + row + " --norm 2 --norm 1").out)["local"][0]["norms"];
  EXPECT_NEAR(norms["2:2"]["lower"]["value"].get<double>(), 0.388102496759067, 3e-15);
  EXPECT_NEAR(norms["2:2"]["upper"]["value"].get<double>(), 0.388102496759067, 3e-15);
  EXPECT_NEAR(norms["1:1"]["upper"]["value"].get<double>(), 0.5, 3e-15);
}

TEST_F(Cli, SoftmaxStopsWhenTheTimeIsUp) {
  const std::string rows = file("rows.csv", "1,2,3\n0,0,0\n5,1,2\n");
  const Json done = Json::parse(run("softmax --json " + rows).out);
  EXPECT_EQ(done["complete"], true);
  EXPECT_EQ(done["outcome"], "finished");
  EXPECT_EQ(done["rows_done"], 3);
  const Outcome stopped = run("softmax --json --time 0 --empirical 0.1 " + rows);
  EXPECT_EQ(stopped.code, 0) << stopped.err;
  const Json document = Json::parse(stopped.out);
  EXPECT_EQ(document["complete"], false);
  EXPECT_EQ(document["outcome"], "time-limit");
  EXPECT_EQ(document["rows"], 3);
  EXPECT_EQ(document["rows_done"], 1);
  ASSERT_EQ(document["local"].size(), 1U);
  EXPECT_EQ(document["local"][0], done["local"][0]);
  EXPECT_EQ(document["global"], done["global"]);
  const std::string text = run("softmax --time 0 " + rows).out;
  EXPECT_NE(text.find("time limit reached (--time): 1 of 3 rows"), std::string::npos) << text;
}

TEST_F(Cli, AnInterruptKeepsTheRowsOfSoftmax) {
  std::string entries;
  for (int i = 0; i < 400; ++i) entries += "1,2,3,4,5,6\n";
  const std::string rows = file("rows.csv", entries);
  const fs::path out = folder_ / "interrupted.json";
  const std::string command = "timeout --preserve-status -s INT 1 " +
                              std::string(LIPSCOPE_PROGRAM) +
                              " softmax --json --empirical 0.1 --directions 1000000 " + rows +
                              " >" + out.string() + " 2>/dev/null";
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const Json document = Json::parse(slurp(out));
  EXPECT_EQ(document["complete"], false);
  EXPECT_EQ(document["outcome"], "interrupted");
  EXPECT_GE(document["rows_done"], 1);
  EXPECT_EQ(document["local"].size(), document["rows_done"].get<std::size_t>());
  EXPECT_GT(document["empirical"][0]["directed_max"], 0);
}

// Whatever the signs of scale and lambda.
TEST_F(Cli, SoftmaxMasksStayMasked) {
  const std::string masked = file("masked.csv", "1,-inf,2\n"), plain = file("plain.csv", "1,2\n");
  for (const std::string flags : {" --lambda -1", " --scale -1", " --scale -2 --lambda -0.5"}) {
    const Json with = Json::parse(run("softmax --json " + masked + flags).out)["local"][0];
    const Json without = Json::parse(run("softmax --json " + plain + flags).out)["local"][0];
    EXPECT_EQ(with["norms"], without["norms"]) << flags;
    EXPECT_EQ(with["probabilities"][0], without["probabilities"][0]);
    EXPECT_EQ(with["probabilities"][1], 0);
    EXPECT_EQ(with["probabilities"][2], without["probabilities"][1]);
  }
}

TEST_F(Cli, SoftmaxRefusesBadInput) {
  const std::string good = file("good.csv", "1,2\n3,4\n");
  expect_failure("softmax " + file("nan.csv", "1,2\n3,nan\n"), 3, "row 1, column 1");
  expect_failure("softmax " + file("masked.csv", "1,2\n-inf,-inf\n"), 3, "row 1");
  expect_failure("softmax " + file("ragged.csv", "1,2\n3\n"), 3, "line 2");
  expect_failure("softmax " + file("empty.csv", ""), 3, "empty");
  expect_failure("softmax " + good + " --lambda 0", 2, "lambda");
  expect_failure("softmax " + good + " --lambda inf", 2, "lambda");
  expect_failure("softmax " + good + " --norm 0.5", 2, "0.5");
  expect_failure("softmax " + good + " --empirical 0", 2, "epsilon");
  expect_failure("softmax " + (folder_ / "missing.npy").string(), 3, "missing.npy");
}

}  // namespace
