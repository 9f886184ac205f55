// SPDX-License-Identifier: Apache-2.0
#include "machine/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/emulator.h"

namespace lipscope {
namespace {

using testing_support::EmulatedFormat;
using Type = ElementType;

Machine machine_of(Type type, bool flush = false) {
  return Machine(NumberFormat::of(type), NumberFormat::of(type), flush);
}

// A number anywhere in the range of the format, and beyond it now and then.
double any_number(Rng& rng, const NumberFormat& format) {
  const int low = std::ilogb(format.tiny) - 2, high = std::ilogb(format.most) + 1;
  const double mantissa = std::uniform_real_distribution<double>(1, 2)(rng);
  const double size = std::ldexp(mantissa, std::uniform_int_distribution<int>(low, high)(rng));
  return rng() % 16 == 0 ? 0 : rng() % 2 == 0 ? size : -size;
}

// The computed number lies where the error says, or nothing was said.
void expect_inside(double seen, const Computed& said, const char* what) {
  if (!(said.error < kInf)) return;
  ASSERT_TRUE(std::isfinite(seen)) << what;
  ASSERT_GE(seen, said.seen().lo) << what;
  ASSERT_LE(seen, said.seen().hi) << what;
}

TEST(Machine, OperationsHoldTheResultsOfTheFormat) {
  Rng rng(3);
  for (const Type type : {Type::kFloat16, Type::kBFloat16, Type::kFloat32}) {
    for (const bool flush : {false, true}) {
      const Machine machine = machine_of(type, flush);
      int finite = 0;
      for (int t = 0; t < 4000; ++t) {
        const EmulatedFormat format(type, flush && t % 2 == 0);
        const double a = any_number(rng, machine.values()), b = any_number(rng, machine.values());
        const double c = any_number(rng, machine.values());
        const double x = format.round(a), y = format.round(b), z = format.round(c);
        const Computed sa = machine.stored(a), sb = machine.stored(b), sc = machine.stored(c);
        expect_inside(x, sa, "stored");
        expect_inside(format.add(x, y), machine.add(sa, sb), "add");
        expect_inside(format.add(x, -y), machine.sub(sa, sb), "sub");
        expect_inside(format.mul(x, y), machine.mul(sa, sb), "mul");
        expect_inside(format.div(x, y), machine.div(sa, sb), "div");
        expect_inside(format.mul(x, format.div(1, y)), machine.div(sa, sb), "reciprocal");
        expect_inside(format.sqrt(x), machine.sqrt(sa), "sqrt");
        expect_inside(format.fma(x, y, z), machine.add(machine.mul(sa, sb), sc), "fused");
        finite += machine.mul(sa, sb).error < kInf ? 1 : 0;
      }
      EXPECT_GT(finite, 1000);
    }
  }
}

TEST(Machine, LimitsOfTheFormats) {
  const Machine half = machine_of(Type::kFloat16);
  EXPECT_EQ(half.stored(65504).error, 0);
  EXPECT_EQ(half.stored(65519.9).error, 65519.9 - 65504);
  EXPECT_EQ(half.stored(65520).error, kInf);
  EXPECT_EQ(half.stored(-65520).error, kInf);
  EXPECT_EQ(half.stored(kInf).error, kInf);
  EXPECT_EQ(half.stored(std::nan("")).error, kInf);
  EXPECT_EQ(half.stored(-0.0).error, 0);
  EXPECT_EQ(half.stored(0x1p-26).error, 0x1p-26);  // becomes 0
  // Divisors that become zero.
  EXPECT_EQ(half.div(half.stored(1), half.stored(0x1p-26)).error, kInf);
  EXPECT_EQ(half.div(half.stored(1), half.stored(1e5)).error, kInf);
  EXPECT_EQ(half.mul(half.stored(256), half.stored(256)).error, kInf);
  EXPECT_EQ(half.mul(half.stored(0), half.stored(1e5)).error, kInf);  // 0 * inf
  EXPECT_EQ(half.add(half.stored(0), half.stored(3)).error, 0);
  EXPECT_EQ(half.sqrt(half.stored(-1)).error, kInf);
  // The range of bfloat16 is that of float32.
  EXPECT_LT(machine_of(Type::kBFloat16).stored(3e38).error, 2e36);
  EXPECT_EQ(machine_of(Type::kBFloat16).stored(3.4e38).error, kInf);
  EXPECT_LT(machine_of(Type::kFloat32).stored(3.4e38).error, kInf);
  // Subnormal numbers are kept, or not.
  EXPECT_EQ(half.stored(0x1p-20).error, 0);
  EXPECT_EQ(machine_of(Type::kFloat16, true).stored(0x1p-20).error, 0x1p-20);
  EXPECT_GE(machine_of(Type::kFloat16, true).mul({point(0x1p-10), 0}, {point(0x1p-10), 0}).error,
            0x1p-20);
}

}  // namespace
}  // namespace lipscope
