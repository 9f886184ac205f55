// SPDX-License-Identifier: Apache-2.0
#include "base/checkpoint.h"

namespace lipscope {

Errand& errand() {
  thread_local Errand mine;
  return mine;
}

}  // namespace lipscope
