// SPDX-License-Identifier: Apache-2.0
#include "conventions.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "lipscope/error.h"

namespace lipscope::app {

void add_conventions(const Conventions& conventions, Json& object) {
  if (!conventions.integers_as_reals.empty())
    object["integers_as_reals"] = conventions.integers_as_reals;
  if (!conventions.casts_as_identity.empty())
    object["casts_as_identity"] = conventions.casts_as_identity;
}

std::string conventions_text(const Conventions& conventions) {
  std::string text;
  if (!conventions.integers_as_reals.empty())
    text += fmt::format("whole numbers taken as real ones: input {}\n",
                        listed(conventions.integers_as_reals));
  if (!conventions.casts_as_identity.empty())
    text += fmt::format("casts to a smaller type taken as the identity: {}\n",
                        listed(conventions.casts_as_identity));
  return text;
}

void require_unscaled(const Conventions& conventions, double scale) {
  if (conventions.integers_as_reals.empty() || scale == 1) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("--scale {}: input '{}' takes whole numbers; give them as they are, with "
                          "--scale 1",
                          scale, conventions.integers_as_reals.front()));
}

}  // namespace lipscope::app
