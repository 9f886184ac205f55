// SPDX-License-Identifier: Apache-2.0
#include "softmax/study.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/parallel.h"
#include "lipscope/error.h"

namespace lipscope {
namespace {

Tensor array(Shape shape, std::vector<double> entries) {
  return {ElementType::kFloat64, std::move(shape), std::move(entries)};
}
std::string message_of(const Tensor& logits, const SoftmaxQuestion& question) {
  try {
    (void)study_softmax(logits, question, "file");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Example 1 of Nair (2025): K = 20, epsilon = 1e-4, n = 10.
TEST(SoftmaxStudy, PublishedExample) {
  std::vector<double> x(10, -20.0);
  x[0] = x[1] = 0;
  const SoftmaxRow row(x, 1);
  std::vector<double> d(10);
  d[0] = 1e-4 / std::sqrt(2), d[1] = -d[0];
  EXPECT_NEAR(softmax_quotient(row, d, parse_norms("2")), 0.499999995044, 5e-13);
  SoftmaxQuestion question;
  question.norms = {parse_norms("2")};
  question.epsilons = {1e-4};
  const SoftmaxReport report = study_softmax(array({10}, x), question, "file");
  EXPECT_NEAR(report.empirical[0].directed_max, 0.499999995044, 5e-13);
}

TEST(SoftmaxStudy, QuotientOfTinyPerturbations) {
  const std::vector<double> x{0.3, -0.2, 1, 0};
  const SoftmaxRow row(x, 2);
  const std::vector<double> d{1, -1, 0.5, 2};
  const NormPair norms = parse_norms("2");
  std::vector<double> small = d;
  for (double& v : small) v *= 1e-12;
  // The derivative, to the accuracy of the step.
  EXPECT_NEAR(softmax_quotient(row, small, norms), softmax_quotient_down(row, d, norms), 1e-11);
  // A long step, against values computed apart.
  std::vector<double> y = x;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += d[i];
  double sum = 0, size = 0, total_x = 0, total_y = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    total_x += std::exp(2 * x[i]), total_y += std::exp(2 * y[i]);
  // d has one entry per weight, in the order of the weights.
  std::vector<double> ordered;
  for (const Index place : row.places()) ordered.push_back(d[static_cast<std::size_t>(place)]);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double change = std::exp(2 * y[i]) / total_y - std::exp(2 * x[i]) / total_x;
    sum += change * change, size += d[i] * d[i];
  }
  EXPECT_NEAR(softmax_quotient(row, ordered, norms), std::sqrt(sum / size), 1e-14);
}

TEST(SoftmaxStudy, SummaryAndRows) {
  const Tensor logits = array({2, 2, 3}, {0, 0, -kInf, 1, 2, 3, 50, 0, 0, 0, 0, 0});
  SoftmaxQuestion question;
  question.lambda = 2;
  question.norms = {parse_norms("2"), parse_norms("inf"), parse_norms("1.5")};
  question.epsilons = {1e-3, 1};
  const SoftmaxReport report = study_softmax(logits, question, "file");
  EXPECT_EQ(report.rows, 4);
  ASSERT_EQ(report.local.size(), 4U);
  EXPECT_DOUBLE_EQ(report.summary[0].max, 1);  // (1/2, 1/2), lambda 2
  EXPECT_EQ(report.summary[0].worst_row, 0);
  EXPECT_EQ(report.local[0].probabilities[2], 0);
  EXPECT_NEAR(midpoint(report.local[3].log_sum_exp), std::log(3) / 2, 1e-15);
  for (const EmpiricalConstant& cell : report.empirical) {
    EXPECT_LE(cell.directed_max, 1);
    EXPECT_LE(cell.random_max, 1);
    if (cell.epsilon < 0.1) {
      EXPECT_LE(cell.random_max, cell.directed_max * (1 + 1e-2));
    }
  }
  question.rows = false;
  EXPECT_TRUE(study_softmax(logits, question, "file").local.empty());
}

// Whoever has to write the rows can end in time for that.
TEST(SoftmaxStudy, TheEndCanDependOnTheRowsDone) {
  SoftmaxQuestion question;
  question.norms = {parse_norms("2")};
  const Tensor logits = array({500, 2}, std::vector<double>(1000, 0.5));
  const auto report =
      study_softmax(logits, question, "file", [](Index rows) { return rows >= 20; });
  EXPECT_FALSE(report.complete);
  EXPECT_GE(report.rows_done, 20);
  EXPECT_LE(report.rows_done, 20 + threads());
  EXPECT_EQ(std::ssize(report.local), report.rows_done);
}

TEST(SoftmaxStudy, RandomDirectionsMissMost) {
  std::vector<double> x(1000, -40.0);
  x[0] = x[1] = 0;
  SoftmaxQuestion question;
  question.norms = {parse_norms("2")};
  question.epsilons = {0.01};
  question.directions = 200;
  const SoftmaxReport report = study_softmax(array({1000}, x), question, "file");
  EXPECT_GT(report.empirical[0].directed_max, 0.49);
  EXPECT_LT(report.empirical[0].random_max, 0.1);
}

TEST(SoftmaxStudy, BadInput) {
  SoftmaxQuestion question;
  question.norms = {parse_norms("2")};
  EXPECT_EQ(message_of(array({2, 2}, {0, 1, 2, kNaN}), question), "file: row 1, column 1 is nan");
  EXPECT_EQ(message_of(array({2, 2}, {0, kInf, 2, 1}), question), "file: row 0, column 1 is inf");
  EXPECT_NE(message_of(array({2, 2}, {0, 1, -kInf, -kInf}), question).find("row 1"),
            std::string::npos);
  EXPECT_NE(message_of(array({3, 0}, {}), question).find("row 0"), std::string::npos);
  EXPECT_NE(message_of(array({0, 3}, {}), question).find("no rows"), std::string::npos);
  question.epsilons = {0};
  EXPECT_NE(message_of(array({2}, {0, 1}), question).find("epsilon"), std::string::npos);
  question.epsilons = {};
  question.lambda = kInf;
  EXPECT_NE(message_of(array({2}, {0, 1}), question).find("lambda"), std::string::npos);
}

}  // namespace
}  // namespace lipscope
