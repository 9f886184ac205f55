// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "certify_run.h"

namespace lipscope::app {

// The document of lipscope.certify/1.
[[nodiscard]] Json certify_document(const Certified& found);

// Per class: how many samples, how many right, and their radii.
struct ClassRow {
  Index count = 0, right = 0, certain = 0;
  std::vector<double> radii, attacks;  // of the right ones, ascending
};
[[nodiscard]] std::vector<ClassRow> class_rows(const Certified& found);
// The middle of an ascending list; 0 without entries.
[[nodiscard]] double median_of(const std::vector<double>& ascending);

}  // namespace lipscope::app
