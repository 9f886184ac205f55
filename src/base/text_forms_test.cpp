// SPDX-License-Identifier: Apache-2.0
// JSON text and digests.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/printable.h"
#include "base/sha256.h"

namespace lipscope {
namespace {

std::string digest(const std::string& text) { return sha256(std::as_bytes(std::span(text))); }

// FIPS 180-4 examples.
TEST(Sha256, KnownDigests) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Printable, TextOfFilesFitsOnALine) {
  EXPECT_EQ(printable("a\nb\xff"), "a\\x0ab\\xff");
  EXPECT_EQ(in_quotes("abcdef", 3), "'abc...'");
  EXPECT_EQ(one_line("node 'a\r\n\x1b[2J\x7f' é"), "node 'a\\x0d\\x0a\\x1b[2J\\x7f' é");
  EXPECT_EQ(one_line("a\xc2\x9b"
                     "2J \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8 \xc2\xa0 \xe2\x80\x93"),
            "a\\xc2\\x9b"
            "2J \\xe2\\x80\\xae \\xe2\\x81\\xa6 \\xe2\\x80\\xa8 \xc2\xa0 \xe2\x80\x93");
  EXPECT_EQ(one_line("\xe2\x80"), "\xe2\x80");
  EXPECT_EQ(plain_text("a\n\tb\x1b[0m\r\n"), "a\n\tb\\x1b[0m\\x0d\n");
  EXPECT_EQ(listed({"a", "b\n"}), "a, b\\x0a");
  EXPECT_EQ(listed(std::vector<std::string>(10, "a")), "a, a, a, a, a, a, a, a and 2 more");
}

TEST(Json, NumbersAreShortestAndExact) {
  EXPECT_EQ(to_text(Json{0.1, 1.0, 1e300, 5e-324, 3}), "[0.1,1,1e+300,5e-324,3]");
  for (const double x :
       {0.1 + 0.2, 1.0 / 3, std::nextafter(1.0, 2.0), std::numeric_limits<double>::max()}) {
    EXPECT_EQ(Json::parse(to_text(Json(x))).get<double>(), x);
  }
}

TEST(Json, InfinityIsAString) {
  EXPECT_EQ(to_text(Json{HUGE_VAL, -HUGE_VAL, NAN}), R"(["inf","-inf","nan"])");
}

TEST(Json, KeepsOrderOrSorts) {
  const Json value{{"b", 1}, {"a", {{"d", nullptr}, {"c", true}}}};
  EXPECT_EQ(to_text(value), R"({"b":1,"a":{"d":null,"c":true}})");
  EXPECT_EQ(to_canonical_text(value), R"({"a":{"c":true,"d":null},"b":1})");
}

TEST(Json, EscapesTextAndReplacesBadUtf8) {
  EXPECT_EQ(to_text(Json("a\"b\n")), R"("a\"b\n")");
  EXPECT_TRUE(Json::parse(to_text(Json("\xff\xfe"))).is_string());
}

}  // namespace
}  // namespace lipscope
