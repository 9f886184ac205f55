// SPDX-License-Identifier: Apache-2.0
// Shapes come out of files: whether their values can be held at all, asked before anything of their
// size is made. GraphBuilder asks for every value; an operator that lists the entries of its output
// when it is imported asks before.
#pragma once

#include <string>

#include "lipscope/tensor.h"

namespace lipscope {

// kUnsupported where the entries alone are more than the memory limit.
void require_room(const Shape& shape, const std::string& what = "a value");
// The same for a constant that is about to be computed, with its box.
void require_room_now(const Shape& shape);

}  // namespace lipscope
