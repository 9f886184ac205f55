// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/arrays/formats.h"
#include "io/arrays/test_bytes.h"

namespace lipscope {
namespace {

using testing::Buffer;
using testing::bytes_of;
using testing::expect_error;
using testing::operator+;

Buffer record(int label, int red, int green, int blue) {
  const auto plane = [](int value) { return Buffer(1024, static_cast<std::byte>(value)); };
  return bytes_of({label}) + plane(red) + plane(green) + plane(blue);
}

TEST(Cifar, RecordsGiveImagesAndLabels) {
  const auto arrays = parse_cifar(record(3, 10, 20, 30) + record(9, 255, 0, 1), "x");
  ASSERT_EQ(arrays.size(), 2U);
  EXPECT_EQ(arrays[0].name, "data");
  EXPECT_EQ(arrays[0].tensor.type(), ElementType::kUInt8);
  EXPECT_EQ(arrays[0].tensor.shape(), (Shape{2, 3, 32, 32}));
  EXPECT_EQ(arrays[0].tensor.at(1023), 10.0);
  EXPECT_EQ(arrays[0].tensor.at(1024), 20.0);
  EXPECT_EQ(arrays[0].tensor.at(3072), 255.0);
  EXPECT_EQ(arrays[1].name, "labels");
  EXPECT_EQ(arrays[1].tensor, Tensor(ElementType::kUInt8, {2}, std::vector<Index>{3, 9}));
}

TEST(Cifar, OtherSizesAndLabelsAreNotRecords) {
  EXPECT_TRUE(is_cifar(record(0, 1, 2, 3)));
  EXPECT_FALSE(is_cifar({}));
  EXPECT_FALSE(is_cifar(record(10, 1, 2, 3)));
  EXPECT_FALSE(is_cifar(record(0, 1, 2, 3) + record(77, 1, 2, 3)));
  EXPECT_FALSE(is_cifar(testing::truncated(record(0, 1, 2, 3), 3072)));
  expect_error([] { (void)parse_cifar(record(10, 1, 2, 3), "a.bin"); }, ErrorCode::kBadFile,
               "a.bin: not CIFAR-10 records (a label below 10 and 3072 bytes each)");
}

}  // namespace
}  // namespace lipscope
