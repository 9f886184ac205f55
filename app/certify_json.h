// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "certify_run.h"

namespace lipscope::app {

// The document of lipscope.certify/1.
[[nodiscard]] Json certify_document(const Certified& found);

}  // namespace lipscope::app
