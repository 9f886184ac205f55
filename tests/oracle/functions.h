// SPDX-License-Identifier: Apache-2.0
// The elementary functions of real numbers.
#pragma once

#include "tests/oracle/number.h"

namespace oracle {

Number exp(const Number& x);
Number expm1(const Number& x);
Number log(const Number& x);
Number log1p(const Number& x);
Number sqrt(const Number& x);
Number erf(const Number& x);
Number sin(const Number& x);
Number cos(const Number& x);
Number tan(const Number& x);
Number asin(const Number& x);
Number acos(const Number& x);
Number atan(const Number& x);
Number sinh(const Number& x);
Number cosh(const Number& x);
Number tanh(const Number& x);
Number asinh(const Number& x);
Number acosh(const Number& x);
Number atanh(const Number& x);
Number pow(const Number& x, const Number& y);
Number pi();

Number sigmoid(const Number& x);
Number softplus(const Number& x);

}  // namespace oracle
