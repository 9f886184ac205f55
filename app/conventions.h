// SPDX-License-Identifier: Apache-2.0
// How answers name the conventions that the function they are about rests on.
#pragma once

#include <string>

#include "base/json.h"
#include "lipscope/select.h"

namespace lipscope::app {

// "integers_as_reals" and "casts_as_identity", those that apply.
void add_conventions(const Conventions& conventions, Json& object);
// The same as lines of text; empty where none applies.
[[nodiscard]] std::string conventions_text(const Conventions& conventions);
// Integers are what they are: throws kUsage where they are given with another --scale than 1.
void require_unscaled(const Conventions& conventions, double scale);

}  // namespace lipscope::app
