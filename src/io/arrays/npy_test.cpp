// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "io/arrays/formats.h"
#include "io/arrays/test_bytes.h"

namespace lipscope {
namespace {

using testing::Buffer;
using testing::bytes_of;
using testing::expect_error;
using testing::operator+;
using testing::npy_file;
using testing::truncated;

Tensor parse_npy_text(std::string_view header, const Buffer& entries) {
  return parse_npy(npy_file(header, entries), "a.npy");
}

void expect_bad_npy(std::string_view header, const Buffer& entries, std::string_view text,
                    ErrorCode code = ErrorCode::kBadFile) {
  expect_error([&] { (void)parse_npy_text(header, entries); }, code, text);
}

TEST(Npy, ReadsWhatNumpyWrites) {
  // numpy.save of numpy.array([[1, 2]], 'f4'), with its padding.
  const Buffer file = npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }     \n",
                               bytes_of({0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}));
  const Tensor tensor = parse_npy(file, "a.npy");
  EXPECT_EQ(tensor, Tensor(ElementType::kFloat32, {1, 2}, std::vector<double>{1, 2}));
}

TEST(Npy, EveryTypeSurvivesARoundTrip) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const ElementType type :
       {ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64}) {
    const Tensor tensor(type, {2, 2}, std::vector<double>{0.5, -2.0, inf, 1024.0});
    EXPECT_EQ(parse_npy(write_npy(tensor), "x"), tensor) << to_string(type);
  }
  for (const ElementType type : {ElementType::kInt8, ElementType::kInt16, ElementType::kInt32,
                                 ElementType::kInt64, ElementType::kUInt8, ElementType::kUInt16,
                                 ElementType::kUInt32, ElementType::kUInt64, ElementType::kBool}) {
    std::vector<Index> values = {0, 1, wrap_integer(type, -1)};
    const Tensor tensor(type, {3, 1}, std::move(values));
    EXPECT_EQ(parse_npy(write_npy(tensor), "x"), tensor) << to_string(type);
  }
}

TEST(Npy, BFloat16IsWrittenAsItsBits) {
  const Tensor tensor(ElementType::kBFloat16, {2}, std::vector<double>{1.0, -3.0});
  EXPECT_EQ(parse_npy(write_npy(tensor), "x"),
            Tensor(ElementType::kUInt16, {2}, std::vector<Index>{0x3f80, 0xc040}));
}

TEST(Npy, ScalarsAndEmptyArraysAreArrays) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{0, 5}, Shape{5, 0}, Shape{1, 1, 1}}) {
    const Tensor tensor = Tensor::zeros(ElementType::kFloat32, shape);
    EXPECT_EQ(parse_npy(write_npy(tensor), "x"), tensor) << to_string(shape);
  }
}

TEST(Npy, EntriesBeginAtAMultipleOf64) {
  for (Index n : {Index{1}, Index{12345}, Index{1234567}}) {
    const std::size_t size = write_npy(Tensor::zeros(ElementType::kUInt8, {n})).size();
    EXPECT_EQ((size - static_cast<std::size_t>(n)) % 64, 0U);
  }
}

TEST(Npy, BigEndianIsRead) {
  EXPECT_EQ(parse_npy_text("{'descr': '>i4', 'fortran_order': False, 'shape': (1,)}",
                           bytes_of({0xff, 0xff, 0xff, 0xfe})),
            Tensor(ElementType::kInt32, {1}, std::vector<Index>{-2}));
  EXPECT_EQ(parse_npy_text("{'descr': '>f8', 'fortran_order': False, 'shape': ()}",
                           bytes_of({0x3f, 0xf0, 0, 0, 0, 0, 0, 0})),
            Tensor::scalar(1.0));
}

TEST(Npy, FortranOrderBecomesRowMajor) {
  EXPECT_EQ(parse_npy_text("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}",
                           bytes_of({1, 4, 2, 5, 3, 6})),
            Tensor(ElementType::kUInt8, {2, 3}, std::vector<Index>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(parse_npy_text("{'descr': '|u1', 'fortran_order': True, 'shape': (0, 3)}", {}).shape(),
            (Shape{0, 3}));
}

TEST(Npy, HeadersOfOtherWritersAreRead) {
  const Tensor expected(ElementType::kInt8, {2}, std::vector<Index>{1, 2});
  const Buffer entries = bytes_of({1, 2});
  EXPECT_EQ(parse_npy_text("{\"shape\":(2,),\"descr\":\"i1\",\"fortran_order\":False}", entries),
            expected);
  EXPECT_EQ(
      parse_npy_text(" { 'shape' : ( 2L , ) , 'fortran_order':True,'descr':'=i1' , } ", entries),
      expected);
}

TEST(Npy, VersionsTwoAndThreeHaveALongerLength) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }";
  for (const int version : {2, 3}) {
    const Buffer file = bytes_of("\x93NUMPY") +
                        bytes_of({version, 0, static_cast<int>(header.size()), 0, 0, 0}) +
                        bytes_of(header) + bytes_of({9});
    EXPECT_EQ(parse_npy(file, "x").at(0), 9.0);
  }
}

TEST(Npy, AnotherVersionIsUnsupported) {
  Buffer file = npy_file("{}", {});
  file[6] = std::byte{9};
  expect_error([&] { (void)parse_npy(file, "a.npy"); }, ErrorCode::kUnsupported,
               "a.npy: .npy version 9.0");
}

TEST(Npy, EveryTruncationIsRefused) {
  const Buffer whole = write_npy(Tensor::vector({1, 2, 3}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    expect_error([&] { (void)parse_npy(truncated(whole, size), "a.npy"); }, ErrorCode::kBadFile,
                 "a.npy: ");
  }
  expect_error([&] { (void)parse_npy(truncated(whole, whole.size() - 1), "a.npy"); },
               ErrorCode::kBadFile,
               "a.npy: truncated: the header says float64 [3], 24 bytes, but 23 follow");
}

TEST(Npy, BytesAfterTheEntriesAreRefused) {
  expect_error([] { (void)parse_npy(write_npy(Tensor::scalar(1)) + bytes_of("abc"), "a.npy"); },
               ErrorCode::kBadFile, "a.npy: 3 bytes too many");
}

TEST(Npy, SizesBeyondTheFileAreRefusedBeforeAllocating) {
  expect_bad_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846975,)}", {},
                 "a.npy: truncated: the header says float64 [1152921504606846975]");
  expect_bad_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", {},
                 "a.npy: the shape [4294967296, 4294967296] in its header is impossible");
  expect_bad_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", {},
                 "a.npy: the shape in its header is impossible");
  expect_bad_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", {}, "[-1]");
}

TEST(Npy, TooManyDimensionsAreRefused) {
  std::string shape;
  for (int i = 0; i < 65; ++i) shape += "1,";
  expect_bad_npy("{'descr': '|u1', 'fortran_order': False, 'shape': (" + shape + ")}",
                 bytes_of({1}), "more than 64 dimensions");
}

TEST(Npy, DamagedHeadersAreRefused) {
  for (const std::string_view header :
       {"", "{", "{}", "garbage", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '', 'fortran_order': False, 'shape': (1,)}", "{'descr': '<f4",
        "{'other': 1, 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} and more"}) {
    expect_bad_npy(header, bytes_of({0, 0, 0, 0}), "a.npy: damaged .npy header");
  }
}

TEST(Npy, TypesThatAreNoNumbersAreUnsupported) {
  const auto refused = [](const std::string& type, std::string_view text) {
    expect_bad_npy("{'descr': " + type + ", 'fortran_order': False, 'shape': (1,)}", {}, text,
                   ErrorCode::kUnsupported);
  };
  refused("'|O'", "a.npy: holds Python objects (dtype 'O'); convert the array");
  refused("'<U5'", "holds strings");
  refused("'|S5'", "holds strings");
  refused("'<c16'", "holds complex numbers");
  refused("'<M8[ns]'", "holds dates");
  refused("'<f16'", "holds floating-point numbers of another width");
  refused("'|V2'", "bfloat16: save its bits as uint16");
  refused("'zz\\n'", "entries of another type");
  refused("[('x', '<f4'), ('y', '<i4')]", "holds structured records; save each field");
}

TEST(Npy, WhatIsNoNpyFileIsRefused) {
  expect_error([] { (void)parse_npy(bytes_of("hello"), "a.npy"); }, ErrorCode::kBadFile,
               "a.npy: not a .npy file");
}

}  // namespace
}  // namespace lipscope
