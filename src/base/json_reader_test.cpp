// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lipscope/error.h"

namespace lipscope {
namespace {

// The message with which reading is refused.
template <class Read>
std::string refusal(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadFile) << error.what();
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const std::string& text, const JsonLimits& limits = {}) {
  return refusal([&] { (void)parse_json(text, "file", limits); });
}

TEST(JsonReader, ReadsWhatIsWritten) {
  for (const char* text : {R"({"b":[1,-2,0.5,"x",null,true],"a":{}})", "[]", "3", "[[[]]]",
                           "[9007199254740992,-9223372036854775808,18446744073709551615,5e-324]"})
    EXPECT_EQ(to_text(parse_json(text, "file")), text);
}

TEST(JsonReader, KeepsMinusZero) {
  for (const char* text : {"[-0]", "[-0.0]", "[-0e5]"}) {
    const Json list = parse_json(text, "file");
    EXPECT_TRUE(std::signbit(JsonValue(list, "file")[0].finite())) << text;
    EXPECT_EQ(to_canonical_text(list), "[-0]");
  }
  EXPECT_FALSE(std::signbit(parse_json("0", "file").get<double>()));
}

TEST(JsonReader, RefusesDepthSizeAndNumberOfValues) {
  for (const std::string open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 300'000; ++i) deep += open;
    EXPECT_EQ(refusal_of(deep), "file: more than 32 brackets in each other");
  }
  EXPECT_EQ(refusal_of("[[]]", {.depth = 2}), "accepted");
  EXPECT_EQ(refusal_of("[[[]]]", {.depth = 2}), "file: more than 2 brackets in each other");
  EXPECT_EQ(refusal_of("[1,2]", {.bytes = 4}), "file: 5 bytes; 4 are read at most");
  EXPECT_EQ(refusal_of("[1,[2]]", {.values = 3}), "file: [1][0]: more than 3 values");
}

TEST(JsonReader, RefusesWhatIsNoJson) {
  EXPECT_EQ(refusal_of("{\"a\":\n [1,2,}"), "file: not JSON: line 2, column 7");
  for (const char* text : {"", "{\"a\"", "[1,", "\"abc", "{\"a\":tru", "[1,2"})
    EXPECT_EQ(refusal_of(text), "file: truncated; copy or make the file again") << text;
  for (const char* text : {"nan", "[NaN]", "[Infinity]", "[01]", "[+1]", "[1,]", "{} {}", "// a\n1",
                           "['a']", "[\"\xff\"]", "[\"a\nb\"]", "[0x1p3]", "[1.]"})
    EXPECT_TRUE(refusal_of(text).starts_with("file: not JSON")) << text;
  EXPECT_EQ(refusal_of(std::string("{}\0garbage", 10)), "file: not JSON: byte 2 is zero");
}

TEST(JsonReader, RefusesNumbersBeyondDouble) {
  EXPECT_EQ(refusal_of("{\"a\":[0,1e309]}"), "file: a[1]: a number beyond the largest double");
  EXPECT_EQ(refusal_of("[-1e999]"), "file: [0]: a number beyond the largest double");
  EXPECT_EQ(refusal_of("[1e-400]"), "file: [0]: a number that no double comes near");
  EXPECT_EQ(refusal_of("[0e-400,0.0,5e-324]"), "accepted");
}

TEST(JsonReader, RefusesAFieldThatIsThereTwice) {
  EXPECT_EQ(refusal_of(R"({"q":[1,{"a":1,"b":2,"a":1}]})"),
            "file: q[1]: the field 'a' is there twice");
  EXPECT_EQ(refusal_of(R"({"a":1,"\u0061":2})"), "file: the field 'a' is there twice");
  std::string many = "{";  // in a time that does not grow with the square
  for (int i = 0; i < 100'000; ++i) many += "\"" + std::to_string(i) + "\":0,";
  EXPECT_EQ(refusal_of(many + "\"7\":0}"), "file: the field '7' is there twice");
}

TEST(JsonReader, NamesThePlaceAndBothTypes) {
  const Json document =
      parse_json(R"({"query":{"wrt":[],"n":1.5,"big":9007199254740993,"s":"nan","l":[1,"x"]}})",
                 "certificate");
  const auto asked = [&](auto&& read) {
    return refusal([&] {
      JsonValue(document, "certificate").object([&](JsonFields& fields) {
        fields.at("query").object(read);
      });
    });
  };
  EXPECT_EQ(asked([](JsonFields& f) { (void)f.at("wrt").text_or_null(); }),
            "certificate: query.wrt: expected a string or null, found an array");
  EXPECT_EQ(asked([](JsonFields& f) { (void)f.at("wrt").flag(); }),
            "certificate: query.wrt: expected true or false, found an array");
  EXPECT_EQ(asked([](JsonFields& f) { (void)f.at("n").integer(); }),
            "certificate: query.n: expected a whole number");
  EXPECT_EQ(asked([](JsonFields& f) { (void)f.at("big").number(); }),
            "certificate: query.big: an integer that is no double");
  EXPECT_EQ(asked([](JsonFields& f) { (void)f.at("s").number(); }),
            "certificate: query.s: 'nan' is no number");
  EXPECT_EQ(asked([](JsonFields& f) { (void)f.at("l").counts(); }),
            "certificate: query.l[1]: expected a whole number, found a string");
  EXPECT_EQ(asked([](JsonFields& f) { (void)f.at("l").of_size(3); }),
            "certificate: query.l: expected 3 entries, found 2");
  EXPECT_EQ(asked([](JsonFields& f) { (void)f.at("to"); }),
            "certificate: query: there is no field 'to'");
  EXPECT_EQ(asked([](JsonFields& f) {
              for (const char* field : {"wrt", "n", "big", "l"}) (void)f.find(field);
            }),
            "certificate: query: unknown field 's'");
}

TEST(JsonReader, MessagesStayShortAndOnOneLine) {
  const Json document = parse_json("{\"a\\nb" + std::string(500, 'c') + "\":1}", "file");
  const std::string message =
      refusal([&] { JsonValue(document, "file").object([](JsonFields&) {}); });
  EXPECT_TRUE(message.starts_with("file: unknown field 'a\\x0abccc")) << message;
  EXPECT_LT(message.size(), 120U);
  EXPECT_EQ(refusal([&] { JsonValue(document, "file").refuse("no\nline"); }), "file: no\\x0aline");
}

}  // namespace
}  // namespace lipscope
