// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lipscope/op.h"

namespace lipscope {

// The types of a Cast to a floating type; nothing for any other operator.
struct CastTypes {
  ElementType from, to;
};
[[nodiscard]] std::optional<CastTypes> as_cast_to_real(const Op& op);

// Whether some value of one type is none of the other, which is floating: the file rounds there.
// Analyses take such a Cast of a value that moves as the identity, and say so.
[[nodiscard]] bool loses_values(const CastTypes& types);

// A Cast between floating types.
[[nodiscard]] std::shared_ptr<const Op> make_real_cast(const CastTypes& types);

}  // namespace lipscope
