// SPDX-License-Identifier: Apache-2.0
// Functions without a value.
#pragma once

#include <string>

#include "bounds/boxes.h"

namespace lipscope {

// Which node on the way to the first output has no value for any of the inputs in the boxes (a root
// of a negative number, a quotient by zero), and that it has none; empty where none is known. There
// the function has no values to compare, hence no constant [composition-11].
[[nodiscard]] std::string no_value_anywhere(ValueBoxes& boxes);

}  // namespace lipscope
