// SPDX-License-Identifier: Apache-2.0
#include "machine/number_format.h"

#include "lipscope/error.h"

namespace lipscope {

NumberFormat NumberFormat::of(ElementType type) {
  switch (type) {
    case ElementType::kFloat32: return {type, 0x1p-24, 0x1p-150, 0x1p-126, 0x1.fffffep127};
    case ElementType::kFloat16: return {type, 0x1p-11, 0x1p-25, 0x1p-14, 65504};
    case ElementType::kBFloat16: return {type, 0x1p-8, 0x1p-134, 0x1p-126, 0x1.fep127};
    default: throw Error(ErrorCode::kUnsupported, "inference in float32, float16 or bfloat16 only");
  }
}

}  // namespace lipscope
