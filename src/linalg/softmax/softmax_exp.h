// SPDX-License-Identifier: Apache-2.0
// Constants of the exponential of softmax_exp-inl.h, in plain C++ so that tests can check them.
//
//   exp(lambda x) = 2^(n / kSteps) * exp(lambda r),   r = x - n ln 2 / (kSteps lambda)
//
// for the integer n nearest to kSteps lambda x / ln 2. exp(lambda r) is a polynomial in r whose
// coefficients hold the powers of lambda; 2^(n / kSteps) is made of bits. Nothing is subtracted
// from x before, so no difference is rounded: a row is shifted by a whole power of two.
#pragma once

#include <cmath>
#include <cstddef>

namespace lipscope::softmax_detail {

// Coefficients of 1, r, r^2, ...: minimax for the relative error with the first ones kept. The
// bounds are proved by the test ExpPolynomial [softmax-kernel-1].
template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr double kSteps = 8;
  static constexpr bool kTable = true;
  static constexpr int kShift = 20;  // bits of k that hold n / 8: from 3 up, to bit 23
  static constexpr double kMagic = 0x1.8p23, kBias = 0;
  static constexpr double kDepth = 127;  // where 2^-kDepth has the bits of 0
  static constexpr double kMaxExponent = 0x1p14;
  static constexpr double kMaxLambda = 0x1p30;
  static constexpr std::size_t kMaxDegree = 4;
  static constexpr std::size_t degree(bool accurate) { return accurate ? 4 : 3; }
  static constexpr double kRadius = 0.0451;  // of the interval of lambda r
  static constexpr double kFast[] = {1, 1, 0x1.000928p-1, 0x1.55566ap-3, 0};
  static constexpr double kFastError = 3.1e-8;
  static constexpr double kAccurate[] = {1, 1, 0.5, 0x1.555d06p-3, 0x1.55567ap-5};
  static constexpr double kAccurateError = 2.2e-10;
  // 2^(j/8), rounded to nearest: relative errors below kRootError.
  static constexpr float kRoots[] = {1,
                                     0x1.172b84p0f,
                                     0x1.306fe0p0f,
                                     0x1.4bfdaep0f,
                                     0x1.6a09e6p0f,
                                     0x1.8ace54p0f,
                                     0x1.ae89fap0f,
                                     0x1.d5818ep0f};
  static constexpr double kRootError = 0.54 * 0x1p-24;
};

template <>
struct ExpConstants<double> {
  static constexpr double kSteps = 1;
  static constexpr bool kTable = false;
  static constexpr int kShift = 52;
  static constexpr double kMagic = 0x1.8p52, kBias = 1023;
  static constexpr double kDepth = 1023;
  static constexpr double kMaxExponent = 0x1p20;
  static constexpr double kMaxLambda = 0x1p60;
  static constexpr std::size_t kMaxDegree = 11;
  static constexpr std::size_t degree(bool) { return 11; }
  static constexpr double kRadius = 0.346576;
  static constexpr double kAccurate[] = {1,
                                         1,
                                         0.5,
                                         0x1.5555555555501p-3,
                                         0x1.555555555320dp-5,
                                         0x1.1111111128833p-7,
                                         0x1.6c16c17cc0f5ep-10,
                                         0x1.a01a011c35fc5p-13,
                                         0x1.a019ab34ede63p-16,
                                         0x1.71df5525a02c5p-19,
                                         0x1.289f8282435b8p-22,
                                         0x1.ad20292ae3c3cp-26};
  static constexpr const auto& kFast = kAccurate;
  static constexpr double kAccurateError = 6e-18;
  static constexpr double kFastError = kAccurateError;
};

inline constexpr double kLn2Hi = 0x1.62e42fefa39efp-1, kLn2Lo = 0x1.abc9e3b39803fp-56;

// What depends on lambda only.
template <class T>
struct ExpSetup {
  double lambda = 0;
  double per_unit = 0;         // lambda / ln 2
  double unit = 0;             // ln 2 / lambda
  T scale = 0;                 // kSteps lambda / ln 2
  T step_hi = 0, step_lo = 0;  // ln 2 / (kSteps lambda)
  T a[ExpConstants<T>::kMaxDegree + 1] = {};
  T table[16] = {};  // as bits: 2^(j/8) less j / 8 in the exponent's place

  // False: lambda is out of range.
  bool set(double value, bool accurate);
};
extern template struct ExpSetup<float>;
extern template struct ExpSetup<double>;

// What depends on the row: 2^exponent is near exp(lambda top).
template <class T>
struct ExpShift {
  T magic = 0, floor = 0;
  double exponent = 0;
};

}  // namespace lipscope::softmax_detail
