// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/arrays/formats.h"
#include "io/arrays/test_bytes.h"

namespace lipscope {
namespace {

using testing::bytes_of;
using testing::expect_error;

Tensor parse_csv_text(std::string_view text) { return parse_csv(bytes_of(text), "a.csv"); }

Tensor matrix(Index rows, Index columns, std::vector<double> values) {
  return Tensor(ElementType::kFloat64, {rows, columns}, std::move(values));
}

void expect_bad_csv(std::string_view text, std::string_view message) {
  expect_error([&] { (void)parse_csv_text(text); }, ErrorCode::kBadFile, message);
}

TEST(Csv, RowsAndColumnsAreKept) {
  EXPECT_EQ(parse_csv_text("1,2,3\n4,5,6\n"), matrix(2, 3, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(parse_csv_text("1\n2"), matrix(2, 1, {1, 2}));
  EXPECT_EQ(parse_csv_text("7"), matrix(1, 1, {7}));
}

TEST(Csv, SpacesCommentsBlankLinesAndWindowsLineEndsAreSkipped) {
  EXPECT_EQ(parse_csv_text("\xef\xbb\xbf# title\r\n\r\n 1 ,\t2 # first\r\n   \n3,4\r\n#end"),
            matrix(2, 2, {1, 2, 3, 4}));
}

TEST(Csv, NumbersAsNumpySpellsThem) {
  const Tensor t =
      parse_csv_text("1.000000000000000056e-01,-2E+3,+5,.5,1.,inf,-inf,+Inf,Infinity\n");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(t, matrix(1, 9, {0.1, -2000, 5, 0.5, 1, inf, -inf, inf, inf}));
  EXPECT_TRUE(std::isnan(parse_csv_text("nan").at(0)));
  EXPECT_TRUE(std::isnan(parse_csv_text("-NaN").at(0)));
}

TEST(Csv, DoublesSurviveARoundTrip) {
  std::string text;
  std::vector<double> values;
  double x = 1.0 / 3.0;
  for (int i = 0; i < 200; ++i) {
    values.push_back(x);
    text += fmt::format("{}\n", x);
    x *= i % 2 == 0 ? -1e3 / 7.0 : 1.1e-6;
  }
  EXPECT_EQ(parse_csv_text(text), matrix(200, 1, values));
}

TEST(Csv, NumbersTooSmallBecomeZeroAndTooLargeAreRefused) {
  EXPECT_EQ(parse_csv_text("1e-400,4.9e-324"), matrix(1, 2, {0, 4.9e-324}));
  expect_bad_csv("1\n1e400\n", "a.csv: line 2: '1e400' does not fit a float64");
  expect_bad_csv("-1e99999", "a.csv: line 1: '-1e99999' does not fit a float64");
}

TEST(Csv, RaggedRowsAreRefusedWithTheirLine) {
  expect_bad_csv("# c\n1,2\n3,4\n5\n", "a.csv: line 4: 1 numbers where line 2 has 2");
  expect_bad_csv("1\n2,3\n", "a.csv: line 2: 2 numbers where line 1 has 1");
}

TEST(Csv, WhatIsNoNumberIsRefusedWithItsLine) {
  expect_bad_csv("x,y\n1,2\n", "a.csv: line 1: 'x' is not a number; remove the header line");
  expect_bad_csv("1,2\n3,abc\n", "a.csv: line 2: 'abc' is not a number; give numbers separated by");
  expect_bad_csv("1;2\n", "'1;2' is not a number; give numbers separated by commas");
  expect_bad_csv("1 2\n", "'1 2' is not a number; give numbers separated by commas");
  expect_bad_csv("1,,2\n", "a.csv: line 1: a field is empty");
  expect_bad_csv("1,2,\n", "a.csv: line 1: a field is empty");
  for (const std::string_view field :
       {"0x10", "1e", "--1", "+-1", "++1", "1_000", "\"1\"", "1.2.3", "e5", "infi", "None"}) {
    expect_bad_csv(field, "is not a number");
  }
}

TEST(Csv, LongGarbageMakesAShortMessage) {
  try {
    (void)parse_csv_text(std::string(100000, 'x'));
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 200U);
  }
}

TEST(Csv, AFileWithoutNumbersIsRefused) {
  expect_bad_csv("# only a comment\n\n", "a.csv: no numbers in it");
  expect_bad_csv("", "a.csv: no numbers in it");
}

}  // namespace
}  // namespace lipscope
